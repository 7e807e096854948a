"""Programs of functions, and whether Triton's interpreter finds in them what eager NumPy does."""

import numpy as np

import functrans as ft
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import Launch


def program_of(fun, *args):
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = simplify(closed.jaxpr.hoist_consts())
    return jaxpr, write_program(jaxpr), [*map(np.asarray, closed.consts)]


def kernels_of(program):
    return [s.kernel for s in program.steps if isinstance(s, Launch)]


def check(fun, *args, tolerance=2e-4):
    """The program of a function, after a comparison of its results with those of no program."""
    closed = ft.make_jaxpr(fun)(*args)
    _, program, consts = program_of(fun, *args)
    arrays = [*consts, *map(np.asarray, ft.tree.leaves(args))]
    expected = interpret(closed.jaxpr.hoist_consts(), arrays)
    for a, e in zip(InterpretedProgram(program)(arrays), expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        limit = {"bfloat16": 3e-2, "float16": 4e-3}.get(a.dtype.name, tolerance)
        wide = "c16" if a.dtype.kind == "c" else "f8"
        scale = max(1.0, float(np.abs(np.asarray(e, wide)).max(initial=0)))
        np.testing.assert_allclose(a.astype(wide), e.astype(wide), limit, limit * scale)
    return program
