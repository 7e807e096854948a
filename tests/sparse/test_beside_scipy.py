"""Sparse matrices and solvers beside SciPy's."""

import sys

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse
from functrans.scipy.sparse.linalg import bicgstab, cg, gmres, spsolve
from functrans.sparse import direct

rng = np.random.default_rng(2)
N = 12
FORMATS = (sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC)


def system(dtype="float64"):
    a = scipy.sparse.random(N, N, 0.2, format="csr", random_state=3).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a * (1 + 2j)
    return (a + 4 * scipy.sparse.eye(N)).tocsr().astype(dtype), rng.normal(size=N).astype(dtype)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia"])
def test_matrices_of_scipy(form, kind):
    a, x = system()
    m = form.from_scipy_sparse(a.asformat(kind))
    np.testing.assert_array_equal(m.todense(), a.todense())
    np.testing.assert_allclose(m @ x, a @ x)
    np.testing.assert_allclose((m @ m).todense(), (a @ a).todense(), atol=1e-12)
    assert m.nse == a.nnz


@pytest.mark.parametrize("form", FORMATS)
def test_krylov_methods_take_sparse_matrices(form):
    a, b = system()
    m, solution = form.from_scipy_sparse(a), np.linalg.solve(a.toarray(), b)
    for method in (gmres, bicgstab):
        np.testing.assert_allclose(method(m, b, tol=1e-10)[0], solution, atol=1e-7)
    spd = (a @ a.T).tocsr()
    m = form.from_scipy_sparse(spd)
    np.testing.assert_allclose(ft.jit(lambda m, b: cg(m, b, tol=1e-12)[0])(m, b),
                               np.linalg.solve(spd.toarray(), b), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_direct_solution(dtype):
    a, b = system(dtype)
    m, tol = sparse.BCSR.from_scipy_sparse(a), 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for right in (b, np.stack([b, 2 * b], -1)):
        expected = scipy.sparse.linalg.spsolve(a.tocsc(), right)
        got = ft.jit(sparse.linalg.spsolve)(m.data, m.indices, m.indptr, right)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected, rtol=tol, atol=tol)
    np.testing.assert_allclose(spsolve(m, b), expected[:, 0], rtol=tol, atol=tol)


def test_derivatives_and_lanes_of_direct_solutions():
    a, b = system()
    m = sparse.CSR.from_scipy_sparse(a)

    def solve(data, b):
        return sparse.linalg.spsolve(data, m.indices, m.indptr, b)

    ft.test_util.check_grads(solve, (m.data, b), order=2)
    many = np.stack([b, -b, 3 * b])
    np.testing.assert_allclose(ft.vmap(lambda b: solve(m.data, b))(many),
                               np.linalg.solve(a.toarray(), many.T).T)
    got = sparse.grad(lambda m: spsolve(m, b).sum())(sparse.BCOO.from_scipy_sparse(a))
    full = ft.grad(lambda a: jnp.linalg.solve(a, b).sum())(jnp.asarray(a.toarray()))
    np.testing.assert_allclose(got.todense(), np.where(a.toarray() != 0, full, 0), atol=1e-10)


def test_direct_solution_of_nothing_and_of_singular_systems():
    assert spsolve(sparse.empty((0, 0)), jnp.zeros(0)).shape == (0,)
    assert np.isnan(spsolve(sparse.BCOO.fromdense(np.zeros((2, 2))), np.ones(2))).all()


def test_what_direct_solvers_refuse(monkeypatch):
    m = sparse.eye(3)
    with pytest.raises(ft.core.errors.ShapeError):
        spsolve(m, jnp.ones(4))
    with pytest.raises(ft.core.errors.DTypeError):
        spsolve(m.astype("int32"), jnp.ones(3, "int32"))
    with pytest.raises(ft.core.errors.ArgumentError, match="no sparse"):
        spsolve(jnp.eye(3), jnp.ones(3))
    monkeypatch.setitem(sys.modules, "scipy.sparse.linalg", None)
    with pytest.raises(ft.core.errors.BackendError, match="functrans\\[sparse\\]"):
        direct.solve_rows(jnp.ones(1), jnp.zeros(1, int), jnp.array([0, 1]), jnp.ones(1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_largest_eigenvalues(dtype):
    a = scipy.sparse.random(60, 60, 0.1, random_state=1)
    a = (a + a.T).tocsr().astype(dtype)
    start = rng.normal(size=(60, 3)).astype(dtype)
    expected = np.linalg.eigvalsh(a.toarray())[::-1][:3]
    tol = 1e-4 if dtype == "float32" else 1e-9
    for matrix in (sparse.BCSR.from_scipy_sparse(a), jnp.asarray(a.toarray()),
                   lambda v: jnp.asarray(a.toarray()) @ v):
        values, vectors, count = sparse.linalg.lobpcg_standard(matrix, start, m=200)
        np.testing.assert_allclose(values, expected, rtol=tol)
        np.testing.assert_allclose(a @ np.asarray(vectors), vectors * values, atol=30 * tol)
        assert 1 < count < 200
    with pytest.raises(ft.core.errors.ArgumentError):
        sparse.linalg.lobpcg_standard(jnp.eye(4), jnp.ones((4, 1)))
    with pytest.raises(ft.core.errors.ShapeError):
        sparse.linalg.lobpcg_standard(jnp.eye(5), jnp.ones((7, 1)))


def large(index="int32"):
    """A matrix that several threads compute, with rows of very different lengths."""
    draw = np.random.default_rng(5)
    rows = np.minimum((draw.pareto(0.6, 60_000) * 8).astype(int), 2_999)
    a = scipy.sparse.coo_matrix((draw.normal(size=60_000), (rows, draw.integers(0, 700, 60_000))),
                                shape=(3_000, 700)).tocsr()
    return a, sparse.BCSR.from_scipy_sparse(a, index_dtype=index)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_large_products(dtype, index):
    a, m = large(index)
    a, m, tol = a.astype(dtype), m.astype(dtype), 2e-3 if dtype == "float32" else 1e-9
    for columns in ((), (1,), (3,), (40,)):
        x, y = (rng.normal(size=(n, *columns)).astype(dtype) for n in (700, 3_000))
        forward, back = ft.jit(lambda m, x: m @ x), ft.jit(lambda m, y: m.T @ y)
        np.testing.assert_allclose(forward(m, x), a @ x, rtol=tol, atol=tol)
        np.testing.assert_allclose(ft.jit(lambda m, y: (y.T @ m).T)(m, y), a.T @ y, rtol=tol,
                                   atol=tol)
        np.testing.assert_allclose(back(m, y), a.T @ y, rtol=tol, atol=tol)
        got = ft.jit(sparse.grad(lambda m, x=x, y=y: (y * (m @ x)).sum()))(m)
        row = np.repeat(np.arange(3_000), np.diff(a.indptr))
        expected = (y[row] * x[a.indices]).reshape(a.nnz, -1).sum(1)
        np.testing.assert_allclose(got.data, expected, rtol=tol, atol=tol)
    with ft.config.threads(count=1):
        one = ft.jit(lambda m, y: y @ m)(m, y[:, 0])
    np.testing.assert_array_equal(one, ft.jit(lambda m, y: y @ m)(m, y[:, 0]))


@pytest.mark.parametrize("pointers", [[3, 1, 5, 2], [-4, 2, 9, 9], [0, 0, 0, 0]])
def test_pointers_that_are_none(pointers):
    """What a matrix says of its rows is clipped, compiled as in NumPy."""
    m = sparse.BCSR((rng.normal(size=5), np.array([0, 7, -1, 2, 1]), np.array(pointers)),
                    shape=(3, 3))
    x = rng.normal(size=(3, 2))
    for f in (lambda m: m @ x, lambda m: x.T @ m, sparse.grad(lambda m: ((m @ x) ** 3).sum())):
        for got, expected in zip(ft.tree.leaves(ft.jit(f)(m)), ft.tree.leaves(f(m))):
            np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("form", FORMATS)
def test_conversions_are_of_sums(form):
    twice = scipy.sparse.coo_matrix((np.array([0.6, 0.6, 2.0, 1.0, -1.0]), (
        np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0]))), shape=(2, 2))
    m, x = form.from_scipy_sparse(twice), twice.toarray()
    for dtype in ("int32", "bool", "float32", "complex128"):
        np.testing.assert_allclose(m.astype(dtype).todense(), x.astype(dtype), rtol=1e-6)
    places = m.astype(bool)
    np.testing.assert_allclose(places.sum(), 2)
    np.testing.assert_allclose(places.sum(1).todense(), [1, 1])
    assert places.sum().dtype == jnp.sum(places.todense()).dtype
    small = form.fromdense(np.full((1, 200), 1, "int8"))
    np.testing.assert_allclose(small.sum(), 200)


def test_arrays_of_scipy_of_any_number_of_axes():
    x = np.array([0, 2.0, 0])
    m = sparse.BCOO.from_scipy_sparse(scipy.sparse.coo_array(x))
    np.testing.assert_array_equal(m.todense(), x)


@pytest.mark.parametrize("skewed, columns, index", [
    (False, (), "int32"), (True, (), "int32"), (True, (3,), "int64"), (False, (65,), "int64")])
def test_products_on_gpus(skewed, columns, index):
    """In Triton's interpreter: rows of few elements, and rows that have most of them."""
    draw, count = np.random.default_rng(8), 100 if columns == (65,) else 500
    rows = np.minimum((draw.pareto(0.6, count) * 8).astype(int), 36) if skewed \
        else draw.integers(0, 37, count)
    a = scipy.sparse.coo_matrix((draw.normal(size=count), (rows, draw.integers(0, 50, count))),
                                shape=(37, 50)).tocsr()
    m, x = sparse.BCSR.from_scipy_sparse(a, index_dtype=index), draw.normal(size=(50, *columns))
    odd = sparse.BCSR((m.data, m.indices - 1, m.indptr - 3), shape=m.shape)  # not all are inside
    with ft.config.use_backend("triton"):
        product = ft.jit(lambda m, x: m @ x)
        np.testing.assert_allclose(product(m, x), a @ x, atol=1e-12)
        np.testing.assert_allclose(product(odd, x), odd @ x, atol=1e-12)
        y, back = x[:37].T, ft.jit(lambda m, y: y @ m)
        np.testing.assert_allclose(back(m, y), y @ a, atol=1e-12)
        np.testing.assert_allclose(back(odd, y), y @ odd, atol=1e-12)
    assert "pieces" in [k.name for k in ft.explain(back, m, y, target="cuda:90").kernels]
    with ft.config.deterministic():
        assert "pieces" not in [k.name for k in ft.explain(back, m, y, target="cuda:90").kernels]
    assert "product of compressed rows" in str(ft.explain(lambda m, x: m @ x, m, x,
                                                          target="cuda:90"))
