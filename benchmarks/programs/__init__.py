"""Whole research programs, a file each, one source for JAX and functrans.

`python benchmarks/programs.py` compares them: the first call, the steady time and the results. A
program is written as a researcher writes it, in 20 to 90 lines, with no regard to a compiler; it
shares no code with the others. Its file has:

```python
'''One sentence: what the program computes, and whose method it is.'''

FIELD = "graphs"
SIZES = {
    "tiny": dict(nodes=32, ...),     # the tests': compiled and run within a second on a CPU
    "small": dict(nodes=512, ...),   # a CPU's: up to some 20 ms a call on two cores
    "large": dict(nodes=65536, ...), # a GPU's: what research runs on one, 1 to 20 ms a call
}
TOLERANCE = {"cpu": 2e-3, "gpu": 1e-2}  # optional, these are the defaults; see `Folder`


def make(lib, **sizes):
    ...
    return step, arguments
```

`lib` is the module `jax` or `functrans`; `lib.numpy`, `lib.lax`, `lib.nn`, `lib.random`,
`lib.tree`, `lib.ops`, `lib.grad`, `lib.vmap`, `lib.scipy.special`, `lib.scipy.linalg`,
`lib.scipy.sparse.linalg` and `lib.scipy.stats` are there under the same names in both. `step` is a
pure function, which the caller gives to `lib.jit`. `arguments` is a tuple of trees of NumPy arrays
of 32 bits or less, drawn with a fixed seed. A program that draws random numbers takes a seed,
`np.uint32(0)`, and makes its key within the step: `lib.random.key(seed)` gives the same numbers in
both.

A step returns a tree of arrays, at most some tens of megabytes. Each is compared in norm, so that
the result may not be chaotic: no trajectory, sampler or iteration that amplifies rounding, no
decision (argmax, acceptance, the masks of many layers of relu) that rounding flips in more than a
few lanes. Where research takes a
gradient, the step does, and returns it or the parameters that it updated. Parameters that have
hardly moved hide a wrong gradient, so an optimiser's step returns its state as well, or the loss
after several steps.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
