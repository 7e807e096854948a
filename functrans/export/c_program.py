"""`to_c`: a function as C sources that build and run without Python."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase
from functrans.core.bounds import Bound
from functrans.core.dims import bounds_of
from functrans.core.errors import ArgumentError, ExportError, public
from functrans.core.jaxpr import Jaxpr
from functrans.core.trace import Tracer
from functrans.export.c_files import (
    LIBRARY,
    LOCALS,
    REAL_MATRICES,
    Function,
    SizeParameter,
    cmake_text,
    constants_files,
    function_text,
    header_text,
    is_replaceable,
    runtime_text,
)
from functrans.export.c_names import (
    function_name,
    input_parameters,
    output_parameters,
    unique,
)
from functrans.export.exported import Exported
from functrans.lowering.backend import Backend, backend_for, get_backend
from functrans.lowering.portable import StandaloneProgram
from functrans.primitives.callback import Callback
from functrans.transforms.jit.api import jit

__all__ = ["to_c"]


@public
def to_c(fun: Callable[..., Any] | Exported, specs: Sequence[Any],
         folder: str | os.PathLike[str], *, name: str | None = None, isa: str = "generic",
         overwrite: bool = False) -> Path:
    """Write `fun`, for arguments of these types, as C: sources, a header and a CMake file.

    `fun` may also be what `export` or `load` returned.
    `specs` are the arguments, as arrays or ShapeDtypeStructs, whose symbolic sizes become arguments
    of the C function; what `fun` closes over is written too. `cmake -B build && cmake --build
    build` in the folder makes a static library with the function of `<name>.h`. `isa` is the
    instruction set: "generic", "avx2", "avx512", "neon" or this machine's, "host". Files that
    `to_c` wrote are replaced, others only with `overwrite`. Returns the path of the header. Raises
    ArgumentError for a name that C or its library has already, and ExportError for what C does not
    compute, such as callbacks, with the line that asks for it, and for files of others.

    >>> import functrans as ft, tempfile
    >>> B = ft.dim("B")
    >>> header = to_c(ft.jit(lambda x: ft.numpy.tanh(x).sum(-1)),
    ...               [ft.ShapeDtypeStruct((B, 3), "float32")], tempfile.mkdtemp(), name="f")
    >>> print(header.read_text())
    // Exported by functrans. ...
    int f(
        int64_t B,
        const float *x,
        float *out);
    ...
    """
    derived = fun.fun_name if isinstance(fun, Exported) else ""
    fun = fun.call if isinstance(fun, Exported) else fun
    jitted: Any = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    backend = get_backend(backend_for("cpu"))
    if isa not in backend.instruction_sets:
        raise ArgumentError(f"to_c: there is no instruction set {isa!r}.",
                            fix=f"isa is one of {', '.join(map(repr, backend.instruction_sets))}")
    if not isinstance(specs, (list, tuple)):
        raise ArgumentError(f"to_c: the arguments are a {type(specs).__name__}.",
                            why="they are a list of what the function takes.",
                            fix='to_c(f, [ft.ShapeDtypeStruct((8, 2), "float32")], folder)')
    lowered = jitted.lower(*specs, target="cpu")
    consts = lowered._traced.consts
    if any(isinstance(c, Tracer) for c in consts):
        raise ExportError(f"{jitted.__name__} closes over a traced value.",
                          fix="export outside of the transform, or pass it as an argument")
    program = _program(backend, lowered.jaxpr, isa, jitted.__name__)
    name = function_name(name, derived or jitted.__name__, _globals(program.text) | {*LOCALS})
    sizes = _sizes(program, [name, *LOCALS])
    reserved = [*(size.name for size in sizes), name, *LOCALS]
    in_avals = lowered.jaxpr.in_avals[len(consts):]
    inputs = input_parameters(jitted.__wrapped__, lowered._in_tree, in_avals, reserved)
    outputs = output_parameters(lowered.out_tree, lowered.jaxpr.out_avals,
                                [*reserved, *(p.name for p in inputs)])
    arrays = [c._np if isinstance(c, ArrayBase) else np.asarray(c) for c in consts]
    function = Function(name, program, sizes, lowered._traced.guards, inputs, outputs,
                        [*arrays, *program.constants], len(arrays))
    files: dict[str, str | bytes] = {
        f"{name}.c": function_text(function),
        f"{name}_runtime.c": runtime_text(function), **constants_files(function)}
    files["CMakeLists.txt"] = cmake_text(function, list(files))
    files[f"{name}.h"] = header_text(function, list(files))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    others = [] if overwrite else [file for file in files if not is_replaceable(target / file)]
    if others:
        raise ExportError(f"{', '.join(others)} in {target} would be lost.", where=None,
                          why="to_c did not write what is there.",
                          fix="another folder, or to_c(..., overwrite=True)")
    for file, content in files.items():
        (target / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return target / f"{name}.h"


KEPT_IN_PYTHON: Final = ("ft.export.export(jit(f))(*specs), which runs in Python; or export what "
                         "comes before it and after it, and call that in between")


def _program(backend: Backend, jaxpr: Jaxpr, isa: str, name: str) -> StandaloneProgram:
    """The program as C; raises ExportError where it calls what cannot be exported."""
    made = backend.standalone(jaxpr, isa)
    if made is None:
        raise ExportError(f"{name} has no C program.", where=None,
                          why="it computes nothing, or decides the sizes of its results.")
    for call in made.library_calls:
        of_complex = call.function in REAL_MATRICES and call.is_complex
        if call.function not in LIBRARY or of_complex:
            raise ExportError(
                f"{call.function} {'of complex numbers ' * of_complex}cannot be exported to C.",
                where=call.source, why="it is computed by a library (LAPACK) that comes with "
                                       "Python alone.", fix=KEPT_IN_PYTHON)
    for eqn in made.host_equations:
        types = ", ".join(str(a.aval) for a in eqn.invars)
        why = "it calls a Python function." if isinstance(eqn.primitive, Callback) else \
            "it raises an error in Python." if eqn.primitive.has_effect else \
            f"the C compiler has no code for it on {types}."
        raise ExportError(f"{eqn.primitive.name} cannot be exported to C.", where=eqn.source,
                          why=why, fix=KEPT_IN_PYTHON)
    return made


def _globals(text: str) -> set[str]:
    """The words of a program outside of its functions, whose bodies are indented or in braces."""
    found: set[str] = set()
    for line in re.findall(r"^\S.*", text, re.MULTILINE):
        outside, count = line, 1
        while count:  # from the inside out
            outside, count = re.subn(r"\([^()]*\)|\{[^{}]*\}", "", outside)
        found.update(re.findall(r"\b[A-Za-z_]\w*", outside))
    return found


def _sizes(program: StandaloneProgram, taken: Sequence[str]) -> list[SizeParameter]:
    """The symbolic sizes in the order in which the program has them."""
    found: list[SizeParameter] = []
    for size in program.sizes:
        name = unique(size.name, [*taken, *(s.name for s in found)])
        found.append(SizeParameter(name, size.name, bounds_of(size).get(size.name, Bound())))
    return found
