"""Products with sparse matrices on GPUs, which have no functions of compressed rows."""

import numpy as np

import functrans as ft
from functrans.core.evaluate import interpret
from functrans.experimental import sparse
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import HostStep

rng = np.random.default_rng(0)
X = np.where(rng.random((12, 9)) < 0.3, rng.normal(size=(12, 9)), 0).astype("float32")
V, W, C = (rng.normal(size=s).astype("float32") for s in (9, (9, 3), 12))


def check(fun, *args):
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr.hoist_consts()
    program = write_program(simplify(jaxpr))
    assert not any(isinstance(s, HostStep) for s in program.steps)
    arrays = [*map(np.asarray, closed.consts), *map(np.asarray, ft.tree.leaves(args))]
    for got, expected in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays),
                             strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_products_with_vectors_and_columns():
    for m in (sparse.BCSR.fromdense(X), sparse.BCOO.fromdense(X)):
        check(lambda m: (m @ V, m @ W, C @ m), m)


def test_gradients():
    check(sparse.grad(lambda m: ((m @ V) ** 2).sum()), sparse.BCSR.fromdense(X))
