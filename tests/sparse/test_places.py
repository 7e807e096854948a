"""Places of any dtype, size and order mean the same to every function."""

import collections

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans._runtime import JitFunction
from functrans.experimental import sparse
from functrans.sparse import BCOO, BCSR, COO, CSC, CSR

rng = np.random.default_rng(7)
FORMATS = (BCOO, BCSR, COO, CSR, CSC)


def same(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-12)


@pytest.mark.parametrize("pointers", [[3, 1, 5, 2], [1, 2, 3, 4], [-4, 2, 9, 9], [0, 0, 0, 0]])
def test_rows_of_any_pointers(pointers):
    m = BCSR((rng.normal(size=5), np.array([0, 1, 7, 2, 1]), np.array(pointers)), shape=(3, 3))
    full = m @ np.eye(3)
    for run in (lambda f: f(m), lambda f: ft.jit(f)(m)):
        same(run(lambda m: m.todense()), full)
        same(run(lambda m: m.T.todense()), full.T)
        same(run(lambda m: BCSR.from_bcoo(m.to_bcoo()) @ np.eye(3)), full)
        same(run(lambda m: m.sum(0).todense()), full.sum(0))


@pytest.mark.parametrize("places", [[[-1, 0], [0, 1], [1, 1]], [[0, -1], [0, 1], [1, 1]],
                                    [[0, 1], [0, 5], [1, 1]], [[0, 1], [1, 1], [2, 0]]])
@pytest.mark.parametrize("indices_sorted", [False, True])
def test_compressed_rows_of_places_out_of_bounds(places, indices_sorted):
    m = BCOO((np.array([1.0, 2.0, 4.0]), np.array(places)), shape=(2, 3),
             indices_sorted=indices_sorted)
    expected = np.zeros((2, 3))
    for (i, j), v in zip(places, (1.0, 2.0, 4.0)):
        if 0 <= i < 2 and 0 <= j < 3:
            expected[i, j] += v
    for run in (lambda f: f(m), lambda f: ft.jit(f)(m)):
        same(run(lambda m: m.todense()), expected)
        same(run(lambda m: BCSR.from_bcoo(m).todense()), expected)
        same(run(lambda m: BCSR.from_bcoo(m) @ np.eye(3)), expected)


@pytest.mark.parametrize("index", ["int8", "uint8", "uint16", "uint32", "int64", "uint64"])
def test_index_dtypes(index):
    x = np.zeros((100, 3))
    x[[5, 70, 99, 99], [0, 1, 2, 0]] = 1, 2, 3, 4
    m = BCOO.fromdense(x, index_dtype=index)
    assert m.indices.dtype in (np.int32, np.int64)
    many = BCOO((np.ones(300), np.stack([np.arange(300) // 3, np.arange(300) % 3], -1)
                 .astype("uint16")), shape=(100, 3))
    same(BCSR.from_bcoo(many) @ np.ones(3), np.full(100, 3.0))
    for got, expected in [(m[::-1], x[::-1]), (m[71:], x[71:]), (m[::5], x[::5]), (m.T, x.T),
                          (m.reshape(-1), x.reshape(-1)), (m @ m.T, x @ x.T),
                          (sparse.bcoo_concatenate([m, m, m], dimension=0), np.vstack([x] * 3)),
                          (m.sum_duplicates(nse=9), x), (BCSR.from_bcoo(m), x),
                          (BCSR.fromdense(x, index_dtype=index).T, x.T)]:
        same(got.todense(), expected)


def test_more_places_than_int64_counts():
    far = np.array([[2**40, 2**41], [3, 2**40], [2**40, 2**41]])
    m = BCOO((np.array([1.0, 2.0, 4.0]), far), shape=(2**41, 2**42))
    for run in (lambda f: f(m), lambda f: ft.jit(f)(m)):
        same(run(lambda m: m.sort_indices().indices), far[[1, 0, 2]])
        same(run(lambda m: m.sum_duplicates(nse=3).data), [2.0, 5.0, 0.0])
        same(run(lambda m: (m * m).data), [5.0, 4.0, 20.0])
    same(m.T.sum_duplicates().indices, [[2**40, 3], [2**41, 2**40]])
    same((m @ m.T).sum(), 4.0 + 25.0)
    same(m[2**40:2**40 + 2, 2**41 - 1:2**41 + 1].todense(), [[0, 5], [0, 0]])
    with pytest.raises(ft.core.errors.ArgumentError, match="int64"):
        m.reshape(2**42, 2**41)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_added_up_in_float32(dtype):
    n = 4000
    m = BCSR((jnp.ones(n, dtype), np.arange(n), np.array([0, n])), shape=(1, n))
    x = jnp.ones(n, dtype)
    for f in (lambda m, x: m @ x, lambda m, x: (m.T @ x[:1]).sum(dtype="float32")[None],
              lambda m, x: sparse.grad(lambda m: (m @ x)[0].astype("float32"))(m).data[:1] * n):
        for run in (f, ft.jit(f)):
            same(jnp.asarray(run(m, x)).astype("float32"), [4000.0])


@pytest.mark.parametrize("form", FORMATS)
def test_more_that_fits_and_does_not(form):
    x = np.round(4 * rng.normal(size=(3, 4)) * (rng.random((3, 4)) < 0.6))
    m = form.fromdense(x)
    same(np.ones((2, 3, 3)) @ m, np.ones((2, 3, 3)) @ x)
    same(m @ np.ones((2, 4, 2)), x @ np.ones((2, 4, 2)))
    same(m.transpose((-1, -2)).todense(), x.T)
    for bad in ((0, 0), (0,), (1, 2)):
        with pytest.raises((ft.core.errors.ShapeError, ft.core.errors.ArgumentError)):
            m.transpose(bad)
    with pytest.raises(ft.core.errors.ShapeError, match="divisor"):
        2.0 / m
    with pytest.raises(ft.core.errors.ArgumentError, match="nse"):
        form.fromdense(x, nse=-1)
    with pytest.raises(ft.core.errors.ArgumentError, match="dtype"):
        form.fromdense(x, index_dtype="float32")


def test_nodes_stay_in_the_call_path_of_jit():
    """The second call with registered classes and named tuples does not come to Python."""
    pair = collections.namedtuple("pair", "m x")
    calls = []
    f = JitFunction(lambda call, args, kwargs, key: calls.append(key))
    f(pair(sparse.eye(3), {"a": sparse.eye(3, sparse_format="bcsr")}))
    assert calls[0] is not None
