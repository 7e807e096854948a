"""Products and layouts that the runtime computes on known arrays, beside SciPy and traced ones."""

import numpy as np
import pytest
import scipy.sparse

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse


def drawn(rows, columns, seed, dtype="float64", per_row=4):
    rng = np.random.default_rng(seed)
    m = scipy.sparse.random(rows, columns, min(1, per_row / columns), "csr", random_state=rng)
    m.data = rng.normal(size=m.nnz)
    return m.astype(dtype)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(7, 5, 9), (300, 5000, 700), (1, 300, 1), (40, 3, 9000)])
def test_products_of_two(sizes, dtype, index):
    rows, inner, columns = sizes
    a, b = drawn(rows, inner, 0, dtype), drawn(inner, columns, 1, dtype)
    expected = (a @ b).tocsr()
    expected.sort_indices()
    m, o = (sparse.BCSR.from_scipy_sparse(x, index_dtype=index) for x in (a, b))
    got = m @ o
    assert got.shape == expected.shape and got.indices_sorted and got.unique_indices
    assert got.dtype == dtype and got.indices.dtype == index
    assert np.array_equal(got.indptr, expected.indptr)
    assert np.array_equal(got.indices, expected.indices)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    assert np.allclose(got.data, expected.data, tolerance, tolerance)
    as_bcoo = m.to_bcoo() @ o.to_bcoo()
    assert np.array_equal(as_bcoo.data, got.data)
    assert np.array_equal(as_bcoo.indices, got.to_bcoo().indices)
    turned = sparse.bcoo_dot_general(m.to_bcoo().T, o.to_bcoo().T,
                                     dimension_numbers=(((0,), (1,)), ((), ())))
    assert np.allclose(turned.todense(), expected.toarray(), tolerance, tolerance)


def test_products_store_alike_with_derivatives():
    """What is known and what is differentiated have their elements at the same places."""
    a, b = drawn(20, 30, 2), drawn(30, 25, 3)
    m, o = map(sparse.BCSR.from_scipy_sparse, (a, b))

    def product(x, y):
        return (m.with_data(x) @ o.with_data(y)).data

    value, tangent = ft.jvp(product, (m.data, o.data), (jnp.sin(m.data), o.data))
    assert np.allclose(value, product(m.data, o.data))
    assert np.allclose(tangent, product(jnp.sin(m.data), o.data) + product(m.data, o.data))
    ft.test_util.check_grads(product, (m.data, o.data), order=2, modes=["fwd", "rev"])
    assert np.allclose(ft.jit(product)(m.data, o.data), value)
    lanes = jnp.stack([m.data, 2 * m.data])
    assert np.allclose(ft.vmap(product, (0, None))(lanes, o.data), jnp.stack([value, 2 * value]))


def test_duplicates_and_places_out_of_bounds():
    data = jnp.arange(1.0, 8.0, dtype="float64")
    indices = jnp.array([0, 2, 2, 7, -1, 1, 0])
    m = sparse.BCSR((data, indices, jnp.array([0, 3, 3, 6])), shape=(3, 3))
    pairs = jnp.array([[2, 0], [0, 1], [5, 1], [0, 1], [1, -1], [2, 2], [0, 0]])
    c = sparse.BCOO((data, pairs), shape=(3, 3))
    for x in (m, c):
        dense = np.asarray(x.todense())
        for y in (m, c):
            got = (x if type(x) is type(y) else sparse.BCOO.fromdense(x.todense())) @ (
                y if type(x) is type(y) else sparse.BCOO.fromdense(y.todense()))
            assert np.allclose(got.todense(), dense @ np.asarray(y.todense()))
        v = jnp.arange(3.0, dtype="float64")
        assert np.allclose(x @ v, dense @ v) and np.allclose(v @ x, v @ dense)
    of_rows = sparse.BCSR.from_bcoo(c)
    assert np.allclose(of_rows.todense(), c.todense())
    traced = ft.jit(sparse.BCSR.from_bcoo)(c)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(of_rows, name), getattr(traced, name)), name
    assert np.array_equal(m.to_bcoo().indices, ft.jit(lambda m: m.to_bcoo())(m).indices)


@pytest.mark.parametrize("rows, columns, nse", [(6, 5, 40), (3, 2000, 50), (0, 4, 3), (4, 0, 3),
                                                (5, 5, 0), (100_000, 3, 20)])
def test_rows_of_coordinates_in_any_order(rows, columns, nse):
    rng = np.random.default_rng(nse)
    pairs = np.stack([rng.integers(-1, rows + 1, nse), rng.integers(-1, columns + 1, nse)], 1)
    m = sparse.BCOO((rng.normal(size=nse), pairs.astype(np.int32)), shape=(rows, columns))
    got, traced = sparse.BCSR.from_bcoo(m), ft.jit(sparse.BCSR.from_bcoo)(m)
    assert np.array_equal(got.indptr, traced.indptr) and np.allclose(got.todense(), m.todense())
    # elements that have no column are of no account, in whatever order they stand
    has = np.asarray(got.indices) < columns
    assert np.array_equal(np.asarray(got.data)[has], np.asarray(traced.data)[has])
    whole = sparse.BCOO((jnp.arange(nse), m.indices), shape=m.shape)  # of integers: by an order
    assert np.array_equal(sparse.BCSR.from_bcoo(whole).todense(), whole.todense())


def test_vectors_by_the_runtime_are_those_of_programs():
    a = drawn(50, 40, 5)
    x, y = jnp.asarray(np.random.default_rng(6).normal(size=(2, 50)))
    x = x[:40]
    for form in (sparse.BCSR, sparse.CSR, sparse.CSC, sparse.COO, sparse.BCOO):
        m = form.from_scipy_sparse(a)
        wide = jnp.stack([x, 2 * x], 1)
        for f in (lambda m: m @ x, lambda m, wide=wide: m @ wide, lambda m: y @ m,
                  lambda m: m.T @ y):
            got, expected = f(m), ft.jit(f)(m)
            assert np.allclose(got, expected) and got.dtype == expected.dtype, form
        assert np.allclose(m @ x, a @ np.asarray(x))
        with pytest.raises(ft.errors.ShapeError):
            m @ y
        assert (m @ x.astype("float32")).dtype == np.float64


@pytest.mark.parametrize("which", ["rows_sorted", "cols_sorted"])
def test_coordinates_that_are_sorted(which):
    a = drawn(30, 20, 7).tocoo()
    order = np.lexsort((a.col, a.row) if which == "rows_sorted" else (a.row, a.col))
    parts = a.data[order], a.row[order], a.col[order]
    m = sparse.COO(parts, shape=a.shape, **{which: True})
    x, y = np.arange(20.0), np.arange(30.0)
    for f in (lambda m: m @ x, lambda m: m.T @ y, lambda m: m @ np.eye(20), lambda m: y @ m):
        assert np.allclose(f(m), f(sparse.COO(parts, shape=a.shape)))
        assert np.allclose(ft.jit(f)(m), f(m))
    leaves, tree = ft.tree.flatten(m.T)
    assert ft.tree.unflatten(tree, leaves)._rows_sorted is (which == "cols_sorted")
    assert sparse.COO.fromdense(jnp.eye(3))._rows_sorted
    text = str(ft.make_jaxpr(lambda m: m @ x)(m))
    assert "csr_dot" in text and "scatter" not in text


def coordinates(shape, nse, dtype):
    """An array with duplicates and places out of bounds, and the dense one."""
    rng = np.random.default_rng(nse)
    indices = np.stack([rng.integers(0, n + 1, nse) for n in shape], -1).astype("int32")
    data = rng.normal(size=nse).astype(dtype)
    inside = (indices < np.array(shape)).all(-1)
    dense = np.zeros(shape, dtype)
    np.add.at(dense, tuple(indices[inside].T), data[inside])
    return sparse.BCOO((jnp.asarray(data), jnp.asarray(indices)), shape=shape), dense


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "nse"), [((30, 20), 200), ((1, 5), 3), ((0, 5), 0), ((4, 3), 0)])
def test_products_of_coordinates(shape, nse, dtype):
    mat, dense = coordinates(shape, nse, dtype)
    rng = np.random.default_rng(0)
    for other in (rng.normal(size=shape[1]), rng.normal(size=(shape[1], 3))):
        other = jnp.asarray(other.astype(dtype))
        found = mat @ other
        assert found.dtype == dtype
        np.testing.assert_allclose(found, dense @ np.asarray(other), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found, ft.jit(lambda m, x: m @ x)(mat, other), rtol=1e-5,
                                   atol=1e-5)
    row = jnp.asarray(rng.normal(size=shape[0]).astype(dtype))
    np.testing.assert_allclose(row @ mat, np.asarray(row) @ dense, rtol=1e-5, atol=1e-5)


def test_derivatives_of_products_of_coordinates():
    mat, dense = coordinates((30, 20), 200, "float32")
    slope = ft.grad(lambda x: (mat @ x).sum())(jnp.ones(20))
    np.testing.assert_allclose(slope, dense.sum(0), rtol=1e-5, atol=1e-5)
    slope = ft.grad(lambda d: (mat.with_data(d) @ jnp.ones(20)).sum())(mat.data)
    inside = (np.asarray(mat.indices) < np.array([30, 20])).all(-1)
    np.testing.assert_array_equal(slope, inside)


@pytest.mark.parametrize("kind", ["in order", "two in order", "in any order"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "columns", "nse"), [
    (5, 7, 0), (5, 7, 40), (1, 1, 9), (90, 80, 600), (100_000, 100_000, 50), (0, 4, 3)])
def test_sums_of_duplicates_as_under_jit(rows, columns, nse, dtype, index, kind):
    rng = np.random.default_rng(nse)
    at = np.stack([rng.integers(-1, n + 1, nse) for n in (rows, columns)], 1).astype(index)
    inside = ((at >= 0) & (at < (rows, columns))).all(1)
    key = np.where(inside, at[:, 0].astype("int64") * columns + at[:, 1], 2**62)
    parts = {"in order": [(0, nse)], "two in order": [(0, nse // 2), (nse // 2, nse)],
             "in any order": []}[kind]
    for first, last in parts:
        order = np.argsort(key[first:last], kind="stable")
        at[first:last] = at[first:last][order]
    m = sparse.BCOO((rng.normal(size=nse).astype(dtype), at), shape=(rows, columns))
    for room in (None, nse, nse // 3):
        got = m.sum_duplicates(nse=room, remove_zeros=False)
        expected = ft.jit(lambda m, nse=got.nse: m.sum_duplicates(nse=nse, remove_zeros=False))(m)
        np.testing.assert_array_equal(got.indices, expected.indices)
        np.testing.assert_allclose(got.data, expected.data, rtol=1e-5, atol=1e-5)
        assert (got.data.dtype, got.indices.dtype) == (dtype, index)
