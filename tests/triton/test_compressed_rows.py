"""Products with sparse matrices on GPUs, which have no functions of compressed rows."""

import numpy as np
import pytest

import functrans as ft
from functrans.core.evaluate import interpret
from functrans.experimental import sparse
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.sort_scan import compressed_rows
from functrans.lowering.triton.steps.spec import HostStep
from tests.triton.compiled import compile_kernels

rng = np.random.default_rng(0)
X = np.where(rng.random((12, 9)) < 0.3, rng.normal(size=(12, 9)), 0).astype("float32")
V, W, C = (rng.normal(size=s).astype("float32") for s in (9, (9, 3), 12))


def check(fun, *args):
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr.hoist_consts()
    program = write_program(simplify(jaxpr))
    assert not any(isinstance(s, HostStep) for s in program.steps)
    compile_kernels(program)  # the interpreter takes what the compiler refuses
    arrays = [*map(np.asarray, closed.consts), *map(np.asarray, ft.tree.leaves(args))]
    for got, expected in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays),
                             strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_products_with_vectors_and_columns():
    for m in (sparse.BCSR.fromdense(X), sparse.BCOO.fromdense(X)):
        check(lambda m: (m @ V, m @ W, C @ m), m)


def test_gradients():
    check(sparse.grad(lambda m: ((m @ V) ** 2).sum()), sparse.BCSR.fromdense(X))


TILE = 64
LENGTHS = {
    "a few": [5, 0, 3, 0, 0, 7],
    "long beside short": [190, 0, 0, 5, TILE, TILE - 1, 1, 600, 2, 0],
    "tiles": [TILE, TILE, TILE],
    "one": [40 * TILE],
    "nothing at the ends": [0, 0, 20, 0, 250, 0, 0],
    "power law": [300 // (k + 1) for k in range(20)],
    "hardly any": [1 if k % 50 == 0 else 0 for k in range(30)] + [100],
}


@pytest.fixture
def small_tiles(monkeypatch):
    """Kernels of tiles that tests fill, and that loop over their parts."""
    for name, value in {"PIECE": TILE, "WIDE_PIECE": TILE, "PIECE_TILE": 64, "WIDE_PIECE_TILE": 64,
                        "PIECE_AT_ONCE": 16, "WIDE_AT_ONCE": 8, "MOST_PIECES": 8,
                        "LONG": 2, "LISTED": 2, "WALKERS": 2, "COLUMNS": 2,
                        "CHECKED": 16, "CHECKERS": 2}.items():
        monkeypatch.setattr(compressed_rows, name, value)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("columns", [None, 3])
def test_rows_of_any_lengths(lengths, columns, small_tiles):
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    count = int(indptr[-1]) + 3  # what is behind the rows is padding
    indices = rng.integers(0, 60, count).astype(np.int32)
    indices[::7] = 60  # and so is what is no column
    data = rng.normal(size=count)
    x = rng.normal(size=(60,) if columns is None else (60, columns))
    ct = rng.normal(size=(len(lengths),) if columns is None else (columns, len(lengths)))

    def both(*parts):
        m = sparse.BCSR(parts, shape=(len(lengths), 60))
        return m @ x, ct @ m

    check(both, data, indices, indptr)


@pytest.mark.parametrize("indptr", [[-3, 4, 200, 900], [0, 700, 300, 2000], [5, 5, 10**6, 10**6]])
def test_pointers_that_are_none(indptr, small_tiles):
    indices = rng.integers(0, 9, 700).astype(np.int32)
    data, x = rng.normal(size=700), rng.normal(size=9)
    ct = rng.normal(size=3)

    def both(*parts):
        m = sparse.BCSR(parts, shape=(3, 9))
        return m @ x, ct @ m

    check(both, data, indices, np.asarray(indptr, np.int32))


def test_infinity_stays_in_its_row(small_tiles):
    data = np.ones(400)
    data[150] = np.inf
    indptr = np.array([0, 140, 260, 400], np.int32)
    check(lambda *parts: sparse.BCSR(parts, shape=(3, 9)) @ np.arange(1.0, 10), data,
          np.zeros(400, np.int32), indptr)
