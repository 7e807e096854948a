"""Small programs over lanes, each beside C++ with vectors and CUDA that were written by hand.

`python benchmarks/lanes.py` compares them. A lane is what `vmap` maps over: a trajectory, a pixel,
a chain. A file has what a file of benchmarks/programs/ has (`programs/__init__.py` says what), and:

```python
AXES = 1    # optional: how many axes of the first result are lanes
UNROLL = 1  # optional: on a CPU, how many vectors of lanes are at work at a time
BLOCK = 128 # optional: on a GPU, threads of a block


def outputs(**sizes):
    '''What the results are, in words.'''
    return [(shape, dtype), ...]


BY_HAND = r'''LANE void lane(int i, const float *argument, ..., float *result, ...) {...}'''
```

`make` returns `lib.vmap` of a function of one lane, or a function around it; its arguments are a
tuple of arrays, and its results are those of `outputs`, in their order. Each is compared in norm.
Whole numbers of the same operations have the tolerance 0. Chaotic systems run for short, so that
errors grow tenfold or so.

`BY_HAND` is the program as one writes it who knows the machine: a lane in registers from its first
step to its own last one, loops that end when no lane of the warp or vector goes on, common
subexpressions by hand, derivatives in the cheaper mode. by_hand.h is the language: its numbers are
a thread's on a GPU and vectors of lanes on a CPU, so that one text is both; `#ifdef __CUDACC__`
says what only one of them needs. So what the texts compute is checked on a CPU, for GPUs too, but
for by_hand.h and those lines. `lane(i, ...)` computes lane i, on a CPU the `WIDTH * UNROLL` lanes
from there on, the arguments being those of `make`. The sizes are macros in capitals, `LANES` is
how many lanes there are. Lanes, and pixels of a row, are a multiple of 64.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 1e-3, "gpu": 1e-3}  # ||a - b|| / ||b||
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
