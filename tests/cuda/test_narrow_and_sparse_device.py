"""On a GPU: sparse products, 8-bit weights, and complex32 in memory of 4 bytes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import quantize
from functrans.experimental import sparse

pytestmark = pytest.mark.gpu

rng = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _on_gpu():
    with ft.config.scope(backend="auto", matmul_precision="highest", autotune="off"), \
            ft.config.default_device("gpu"):
        yield


def matrix(rows, columns, nse, skewed, dtype):
    at = np.minimum((rng.pareto(0.6, nse) * 8).astype(int), rows - 1) if skewed \
        else rng.integers(0, rows, nse)
    order = np.argsort(at, kind="stable")
    indices = rng.integers(0, columns, nse).astype(np.int32)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=rows))]).astype(np.int32)
    data = rng.normal(size=nse).astype(dtype)
    full = np.zeros((rows, columns))
    np.add.at(full, (at[order], indices), data)
    return sparse.BCSR((data, indices, pointers), shape=(rows, columns)), full


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("width", [(), (3,), (32,), (200,)])
def test_sparse_products(dtype, skewed, width):
    m, full = matrix(900, 700, 20_000, skewed, "float64")
    m = ft.device_put(m.astype(dtype))
    x, y = (rng.normal(size=(n, *width)) for n in (700, 900))
    a, b = (jnp.asarray(v).astype(dtype) for v in (x, y))
    tol = {"float64": 1e-11, "bfloat16": 0.03}.get(dtype, 2e-5)

    def near(got, expected):
        got = np.asarray(got.astype("complex128"))
        assert np.abs(got - expected).max() < tol * np.abs(expected).max()

    near(ft.jit(lambda m, x: m @ x)(m, a), full @ x)
    near(ft.jit(lambda m, y: m.T @ y)(m, b), full.T @ y)
    near(ft.jit(lambda m, x: m.to_bcoo() @ x)(m, a), full @ x)
    if dtype in ("float32", "float64"):
        g = ft.jit(sparse.grad(lambda m, x, y: (y * (m @ x)).sum()))(m, a, b)
        row = np.repeat(np.arange(900), np.diff(np.asarray(m.indptr)))
        column = np.asarray(m.indices)
        near(g.data, (y[row] * x[column]).reshape(len(row), -1).sum(1))


def test_sums_of_sparse_arrays():
    m, full = matrix(300, 200, 4_000, True, "float64")
    s = ft.jit(lambda m: (m.to_bcoo() + m.to_bcoo()).sum_duplicates(nse=5_000))(m)
    np.testing.assert_allclose(s.todense(), 2 * full, atol=1e-12)
    np.testing.assert_allclose(sparse.BCSR.from_bcoo(s).T.todense(), 2 * full.T, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("rows", [1, 4, 16, 64])
def test_products_with_weights_of_8_bits(dtype, rows):
    q = quantize.quantize(rng.normal(size=(512, 384)).astype(np.float32), dtype)
    x = rng.normal(size=(rows, 512)).astype(np.float32)
    exact = x.astype(np.float64) @ np.asarray(quantize.dequantize(q)).astype(np.float64)
    got = np.asarray(ft.jit(quantize.matmul)(x, q))
    assert np.abs(got - exact).max() < 2e-3 * np.abs(exact).max()


def test_complex32_as_numpy():
    parts = rng.normal(size=(2, 2, 48, 64)).astype(np.float16).astype(np.float32)
    z, w = (p[0] + 1j * p[1] for p in (parts[:, 0], parts[:, 1]))
    a, b = (jnp.asarray(v).astype(jnp.complex32) for v in (z, w))
    np.testing.assert_array_equal(a.astype("complex64"), z)  # float16 has these numbers
    for f in (lambda a, b: a * b + a, lambda a, b: a / (b + 4), lambda a, b: a.conj() - 2 * b,
              lambda a, b: jnp.exp(a / 4), lambda a, b: jnp.sqrt(a), lambda a, b: a @ b.T,
              lambda a, b: a.sum(1), lambda a, b: jnp.fft.fft(a), lambda a, b: jnp.fft.ifft(a),
              lambda a, b: a.real, lambda a, b: jnp.abs(a), lambda a, b: jnp.concatenate([a, b])):
        got = ft.jit(f)(a, b)
        expected = np.asarray(ft.jit(f)(*[jnp.asarray(v, "complex128") for v in (z, w)]))
        wide = np.asarray(got.astype("complex128"))
        assert np.abs(wide - expected).max() < 4e-3 * np.abs(expected).max(), f
