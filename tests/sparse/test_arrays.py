"""Sparse arrays act as the dense ones that they stand for."""

import itertools

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.experimental import sparse
from functrans.sparse import BCOO, BCSR, COO, CSC, CSR

rng = np.random.default_rng(0)
FORMATS = (BCOO, BCSR, COO, CSR, CSC)


def dense(*shape, density=0.4, dtype="float64"):
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("c") else 0)
    x = np.round(4 * x) if dtype.startswith(("i", "u")) else x
    return np.where(rng.random(shape) < density, x, 0).astype(dtype)


def untidy(n_batch=0, n_dense=0, shape=(3, 4), nse=9):
    """Places in any order, with duplicates and some out of bounds, and the dense array."""
    end = len(shape) - n_dense
    batch, sizes, rest = shape[:n_batch], shape[n_batch:end], shape[end:]
    indices = rng.integers(0, np.array(sizes) + 1, (*batch, nse, len(sizes)), dtype=np.int32)
    indices[..., :2, :] = 0  # something is inside, and twice
    data = rng.normal(size=(*batch, nse, *rest))
    out = np.zeros(shape)
    for lane in np.ndindex(*batch):
        for i, v in zip(indices[lane], data[lane]):
            if all(i < sizes):
                out[(*lane, *i)] += v
    return BCOO((data, indices), shape=shape), out


LAYOUTS = [(0, 0), (1, 0), (0, 1), (1, 1)]


def check(sparse_array, expected, **kwargs):
    assert isinstance(sparse_array, sparse.JAXSparse)
    assert sparse_array.shape == expected.shape
    np.testing.assert_allclose(sparse_array.todense(), expected, rtol=1e-12, atol=1e-12, **kwargs)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
def test_dense_and_back(form, dtype):
    x = dense(4, 5, dtype=dtype)
    m = form.fromdense(x)
    assert m.dtype == x.dtype and m.nse == np.count_nonzero(x) and len(m) == 4 and m.ndim == 2
    np.testing.assert_array_equal(m.todense(), x)
    np.testing.assert_array_equal(ft.jit(lambda m: m.todense())(m), x)
    np.testing.assert_array_equal(ft.jit(lambda x: form.fromdense(x, nse=20).todense())(x), x)
    check(m.astype("complex128"), x)


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_layouts(n_batch, n_dense):
    x = dense(3, 4, 2)
    m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    assert (m.n_batch, m.n_dense, m.n_sparse) == (n_batch, n_dense, 3 - n_batch - n_dense)
    check(m, x)
    for b, d in itertools.product(range(3), range(2)):
        other = m.update_layout(n_batch=b, n_dense=d, on_inefficient=None)
        assert (other.n_batch, other.n_dense) == (b, d)
        check(other, x)
    with pytest.raises(sparse.SparseEfficiencyError):
        BCOO.fromdense(x).update_layout(n_dense=1)
    with pytest.warns(sparse.SparseEfficiencyWarning):
        BCOO.fromdense(x).update_layout(n_batch=1, on_inefficient="warn")


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_movement(n_batch, n_dense):
    m, x = untidy(n_batch, n_dense, (3, 4, 5))
    check(m, x)
    check(m.T, x.T)
    check(m.transpose((1, 0, 2)), x.transpose(1, 0, 2))
    for axes in [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]:
        check(sparse.bcoo_reduce_sum(m, axes=axes), x.sum(axes))
    check(m[1:3, ::2, 1], x[1:3, ::2, 1])
    check(m[:, ::-1, -2:], x[:, ::-1, -2:])
    check(m[..., None, 2], x[..., None, 2])
    check(m[1], x[1])
    np.testing.assert_allclose(m[1, 2, 3], x[1, 2, 3])
    check(m[:, 4:], x[:, 4:])
    check(ft.jit(lambda m, i: m[:, i])(m, 2), x[:, 2])
    check(sparse.bcoo_dynamic_slice(m, (1, -3, 4), (2, 3, 2)), x[1:3, 0:3, 3:5])
    check(sparse.bcoo_rev(m, (0, 1, 2)), x[::-1, ::-1, ::-1])
    for sizes in [(12, 5), (3, 20), (60,), (3, 2, 2, 5), (5, 12)]:
        check(m.reshape(sizes), x.reshape(sizes))
    check(m.reshape(3, -1), x.reshape(3, -1))
    other, y = untidy(n_batch, n_dense, (3, 4, 5), 4)
    for axis in range(3):
        check(sparse.bcoo_concatenate([m, other], dimension=axis), np.concatenate([x, y], axis))
        check(m[(slice(None),) * axis + (jnp.array([2, 0, -1]),)], np.take(x, [2, 0, -1], axis))
    check(sparse.bcoo_broadcast_in_dim(m, shape=(2, 3, 4, 5), broadcast_dimensions=(1, 2, 3)),
          np.broadcast_to(x, (2, 3, 4, 5)))
    check(sparse.bcoo_squeeze(m[:1], dimensions=(0,)), x[0])


def test_broadcasts_of_sparse_axes():
    m, x = untidy(shape=(1, 4))
    check(sparse.bcoo_broadcast_in_dim(m, shape=(3, 4), broadcast_dimensions=(0, 1)),
          np.broadcast_to(x, (3, 4)))
    check(sparse.bcoo_broadcast_in_dim(m, shape=(1, 2, 4, 3), broadcast_dimensions=(0, 2)),
          np.broadcast_to(x[:, None, :, None], (1, 2, 4, 3)))


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_order_and_duplicates(n_batch, n_dense):
    m, x = untidy(n_batch, n_dense, (3, 4, 2), nse=11)
    check(m.sort_indices(), x)
    summed = m.sum_duplicates()
    check(summed, x)
    assert summed.nse < 11 and summed.unique_indices and summed.indices_sorted
    assert summed.nse == BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense).nse
    check(ft.jit(lambda m: m.sum_duplicates(nse=13))(m), x)
    check(abs(m), abs(x))
    check(m ** 2, x ** 2)
    with pytest.raises(ft.core.errors.ConcretizationError):
        ft.jit(lambda m: m.sum_duplicates())(m)
    zeros = m.with_data(jnp.zeros_like(m.data))
    assert zeros.sum_duplicates().nse == 0 < zeros.sum_duplicates(remove_zeros=False).nse


@pytest.mark.parametrize("form", FORMATS)
def test_operators(form):
    x, y, v, w = dense(4, 5), dense(4, 5), rng.normal(size=5), rng.normal(size=(5, 3))
    m, n = form.fromdense(x), form.fromdense(y)
    for run in (lambda f, *a: f(*a), lambda f, *a: ft.jit(f)(*a)):
        np.testing.assert_allclose(run(lambda m: m @ v, m), x @ v)
        np.testing.assert_allclose(run(lambda m: m @ w, m), x @ w)
        np.testing.assert_allclose(run(lambda m: w.T @ m.T, m), w.T @ x.T)
        np.testing.assert_allclose(run(lambda m: v @ m.T, m), v @ x.T)
        check(run(lambda m, n: m + n, m, n), x + y)
        check(run(lambda m, n: m - n, m, n), x - y)
        check(run(lambda m, n: m * n, m, n), x * y)
        check(run(lambda m, n: m @ n.T, m, n), x @ y.T)
        check(run(lambda m: 2 * m * v / 3, m), 2 * x * v / 3)
        check(run(lambda m: -m / (1 + w.T[:1] ** 2), m), -x / (1 + w.T[:1] ** 2))
    np.testing.assert_allclose(m + v, x + v)
    np.testing.assert_allclose(y - m, y - x)
    np.testing.assert_allclose(m + 1.0, x + 1)
    np.testing.assert_allclose(m.sum(), x.sum())
    check(m.sum(1), x.sum(1))
    assert type(m[1:3]) is form and type(m + n) is form and type(m.sum(1)) is BCOO
    check(m[1:3, ::2], x[1:3, ::2])
    assert repr(m) == f"{form.__name__}(float64[4,5], nse={m.nse})"
    assert [row.shape for row in m] == [(5,)] * 4


@pytest.mark.parametrize("n_batch, n_dense", LAYOUTS)
def test_general_products(n_batch, n_dense):
    m, x = untidy(n_batch, n_dense, (3, 4, 5))
    y, t = rng.normal(size=(3, 4, 5)), untidy(n_batch, n_dense, (3, 4, 5), 6)
    for contract, batch in [(((), ()), ((), ())), (((2,), (2,)), ((0,), (0,))),
                            (((1,), (1,)), ((0, 2), (0, 2))), (((0, 2), (0, 2)), ((1,), (1,))),
                            (((0,), (0,)), ((), ())), (((0, 1, 2), (0, 1, 2)), ((), ())),
                            (((1,), (1,)), ((0,), (0,)))]:
        dims = (contract, batch)
        expected = lax.dot_general(x, y, dims)
        np.testing.assert_allclose(sparse.bcoo_dot_general(m, y, dimension_numbers=dims), expected)
        np.testing.assert_allclose(sparse.bcoo_dot_general(y, m, dimension_numbers=dims),
                                   lax.dot_general(y, x, dims))
        check(sparse.bcoo_dot_general(m, t[0], dimension_numbers=dims),
              np.asarray(lax.dot_general(x, t[1], dims)))
        check(ft.jit(lambda m, n, d=dims: sparse.bcoo_dot_general(m, n, dimension_numbers=d))(
            m, t[0]), np.asarray(lax.dot_general(x, t[1], dims)))
    check(m.with_data(sparse.bcoo_multiply_dense(m, y[:, :1])), x * y[:, :1])
    check(sparse.bcoo_multiply_sparse(m, t[0]), x * t[1])
    here = np.asarray(m.with_data(jnp.ones_like(m.data)).todense()) != 0
    check(sparse.bcoo_extract(m, y), np.where(here, y, 0))


def test_batched_products():
    x, y = dense(3, 4, 5), rng.normal(size=(3, 5, 2))
    m = BCOO.fromdense(x, n_batch=1)
    np.testing.assert_allclose(m @ y, x @ y)
    np.testing.assert_allclose(m @ y[0], x @ y[0])
    np.testing.assert_allclose(BCOO.fromdense(x[0]) @ y, x[0] @ y)
    np.testing.assert_allclose(y.transpose(0, 2, 1) @ m.transpose((0, 2, 1)),
                               (x @ y).transpose(0, 2, 1))
    np.testing.assert_allclose(BCSR.fromdense(x, n_batch=1) @ y, x @ y)
    np.testing.assert_allclose(ft.vmap(lambda m, y: m @ y)(m, y), x @ y)
    np.testing.assert_allclose(ft.vmap(lambda m: m @ y[0])(BCSR.fromdense(x, n_batch=1)), x @ y[0])
    doubled = ft.vmap(lambda m: m + m)(m)
    assert doubled.n_batch == 1
    check(doubled, 2 * x)
    total, _ = lax.scan(lambda c, m: (c + m @ y[0], None), jnp.zeros((4, 2), "float64"), m)
    np.testing.assert_allclose(total, (x @ y[0]).sum(0))


def test_sampled_products():
    a, b = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 3, 5))
    full = np.asarray(a @ b)
    m = BCOO.fromdense(dense(2, 4, 5), n_batch=1)
    got = sparse.bcoo_dot_general_sampled(a, b, m.indices,
                                          dimension_numbers=(((2,), (1,)), ((0,), (0,))))
    np.testing.assert_allclose(got, sparse.bcoo_extract(m, full).data)
    for n_sparse in (1, 2):
        at = BCOO.fromdense(dense(4, 5), n_dense=2 - n_sparse)
        got = sparse.bcoo_dot_general_sampled(a[0], b[0], at.indices,
                                              dimension_numbers=(((1,), (0,)), ((), ())))
        np.testing.assert_allclose(got, sparse.bcoo_extract(at, full[0]).data)


@pytest.mark.parametrize("n_batch", [0, 1])
def test_gathers(n_batch):
    m, x = untidy(n_batch, 0, (4, 5))
    starts = jnp.array([[2, 1], [0, 3], [3, 4]])
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0, 1))
    for mode in ("clip", "fill"):
        got = ft.jit(lambda m, s, k=mode: sparse.bcoo_gather(m, s, numbers, (1, 2), mode=k))(
            m, starts)
        check(got, np.asarray(lax.gather(x, starts, numbers, (1, 2), mode=mode, fill_value=0)))


def test_creation():
    assert sparse.empty((3, 4), "int32").nse == 0
    for form in ("bcoo", "bcsr", "coo", "csr", "csc"):
        check(sparse.eye(3, 4, 1, sparse_format=form), np.eye(3, 4, 1))
        check(sparse.eye(3, 2, -4, sparse_format=form), np.zeros((3, 2)))
        check(sparse.empty((3, 2), nse=2, sparse_format=form), np.zeros((3, 2)))
    m = sparse.random_bcoo(ft.random.key(0), (2, 5, 6, 3), n_batch=1, n_dense=1, nse=7)
    assert m.data.shape == (2, 7, 3) and m.indices.shape == (2, 7, 2)
    assert m.sum_duplicates(remove_zeros=False).nse == 7
    with pytest.raises(ft.core.errors.ArgumentError, match="sparse_format"):
        sparse.eye(3, sparse_format="dia")


def test_empty_axes():
    for shape in [(0, 3), (3, 0), (0, 0)]:
        x = np.zeros(shape)
        for form in FORMATS:
            m = form.fromdense(x)
            np.testing.assert_array_equal(m @ np.ones(shape[1]), x @ np.ones(shape[1]))
            check(m + m, x)
            check(m.T, x.T)
            check(m @ m.T, x @ x.T)
            check(m[:, :1], x[:, :1])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ft.core.errors.ShapeError, match="no array of shape"):
        BCOO((jnp.ones(3), jnp.zeros((3, 2), int)), shape=(3,))
    with pytest.raises(ft.core.errors.ShapeError, match="not those"):
        BCOO((jnp.ones(3), jnp.zeros((2, 1), int)), shape=(3,))
    with pytest.raises(ft.core.errors.ArgumentError, match="dtype"):
        BCOO((jnp.ones(3), jnp.zeros((3, 1))), shape=(3,))
    with pytest.raises(ft.core.errors.ShapeError):
        BCSR((jnp.ones(3), jnp.zeros(3, int), jnp.zeros(3, int)), shape=(3, 3))
    with pytest.raises(ft.core.errors.ShapeError, match="matmul"):
        sparse.eye(3) @ jnp.ones(4)
    with pytest.raises(ft.core.errors.IndexingError):
        sparse.eye(3)[3]
    with pytest.raises(ft.core.errors.ArgumentError):
        bool(sparse.eye(3))


PATTERNS = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=5),
                      elements=st.sampled_from([0.0, 0.0, 1.0, -2.5]))


@settings(max_examples=20, deadline=None)
@given(PATTERNS, st.data())
def test_any_pattern(x, data):
    y = data.draw(hnp.arrays(np.float64, (x.shape[1], 2), elements=st.sampled_from([0.0, 1.0])))
    for form in (BCOO, BCSR):
        m, n = form.fromdense(x), form.fromdense(y)
        np.testing.assert_allclose(m @ y, x @ y)
        check(m @ n, x @ y)
        check(m + m, x + x)
        check(m.T, x.T)


@pytest.mark.parametrize("form", FORMATS)
def test_derivatives(form):
    x, v = dense(4, 5), rng.normal(size=5)
    m = form.fromdense(x)

    def loss(m, v):
        return ((m @ v) ** 2).sum()

    full, in_v = ft.grad(lambda x, v: ((x @ v) ** 2).sum(), (0, 1))(x, v)
    got, got_v = sparse.grad(loss, (0, 1))(m, v)
    assert type(got) is form
    check(got, np.where(x != 0, full, 0))
    np.testing.assert_allclose(got_v, in_v)
    value, _ = ft.jit(sparse.value_and_grad(loss))(m, v)
    np.testing.assert_allclose(value, ((x @ v) ** 2).sum())
    ft.test_util.check_grads(lambda d, v: loss(m.with_data(d), v), (m.data, v), order=2)
    ft.test_util.check_grads(lambda d: (m.with_data(d) @ m.T).data, (m.data,), order=1)
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        j = jacobian(lambda m: m @ v)(BCOO.fromdense(x))
        assert j.shape == (4, 4, 5)
        check(j, np.where(x != 0, np.eye(4)[:, :, None] * v, 0))
