"""Factors and systems of large matrices: NumPy's values, the same bits on any number of threads."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

SIZES = (255, 256, 300, 513)
DTYPES = ("float32", "float64", "complex64", "complex128")
RNG = np.random.default_rng(1)


def numbers(*shape, dtype="float64"):
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def definite(n, dtype, batch=()):
    x = numbers(*batch, n, n, dtype=dtype)
    return (x @ x.conj().swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


def assert_near(actual, expected, dtype, scale=200):
    actual, expected = np.asarray(actual), np.asarray(expected)
    error = np.abs(actual - expected).max() / np.abs(expected).max()
    assert error < scale * np.finfo(dtype).eps


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky_and_lu(n, dtype):
    a = definite(n, dtype)
    wide = a.astype(np.complex128)
    low = np.asarray(ft.jit(lax.linalg.cholesky)(a))
    assert (np.triu(low, 1) == 0).all()
    assert_near(low.astype(wide.dtype) @ low.conj().T, wide, dtype)
    x = numbers(n, n + 40, dtype=dtype)
    for matrix in (x, x.T.copy(), x[:, :n].copy()):
        factors, _, order = map(np.asarray, ft.jit(lax.linalg.lu)(matrix))
        k = min(matrix.shape)
        lower = np.tril(factors, -1)[:, :k] + np.eye(matrix.shape[0], k)
        assert np.abs(np.tril(factors, -1)).max() < 1.42  # of |re| + |im|
        assert_near(lower @ np.triu(factors)[:k].astype(np.complex128), matrix[order], dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ("float32", "complex128"))
@pytest.mark.parametrize("flags", list(np.ndindex(2, 2, 2, 2, 2)))
@pytest.mark.parametrize("n, k", [(300, 7), (20, 300), (5, 100), (129, 130), (256, 1)])
def test_substitution(n, k, flags, dtype):
    left, lower, transposed, unit, conjugated = map(bool, flags)
    conjugated = conjugated and transposed
    a = (numbers(n, n, dtype=dtype) / n + 2 * np.eye(n)).astype(dtype)
    b = numbers(*((n, k) if left else (k, n)), dtype=dtype)
    x = ft.jit(lambda a, b: lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugated,
        unit_diagonal=unit))(a, b)
    t = (np.tril(a) if lower else np.triu(a)).astype(np.complex128)
    if unit:
        np.fill_diagonal(t, 1)
    t = t.T if transposed else t
    t = t.conj() if conjugated else t
    x = np.asarray(x)
    assert_near(x, np.linalg.solve(t, b) if left else np.linalg.solve(t.T, b.T).T, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_and_determinants(dtype):
    a = np.stack([definite(280, dtype), definite(280, dtype)])[:, ::-1].copy()
    b = numbers(2, 280, 3, dtype=dtype)
    wide = a.astype(np.complex128)
    assert_near(wide @ np.asarray(ft.jit(jnp.linalg.solve)(a, b)), b.astype(np.complex128), dtype,
                1e4)
    sign, log = map(np.asarray, ft.jit(jnp.linalg.slogdet)(a))
    expected = np.linalg.slogdet(wide)
    np.testing.assert_allclose(sign, expected[0], atol=1e-3)
    np.testing.assert_allclose(log, expected[1], rtol=1e-3)
    scale = np.exp(expected[1].mean() / 280)  # so that the determinants are near 1
    np.testing.assert_allclose(np.asarray(ft.jit(jnp.linalg.det)((a / scale).astype(dtype))),
                               np.linalg.det(wide / scale), rtol=0.02)


def test_matrices_without_factors_are_nan_or_singular():
    a = definite(400, "float64")
    a[300, 300] = -1
    low = np.asarray(ft.jit(lax.linalg.cholesky)(a))
    assert np.isnan(low[np.tril_indices(400)]).all()
    assert (np.triu(low, 1) == 0).all()
    a[:, 7] = 0
    sign, log = ft.jit(jnp.linalg.slogdet)(a)
    assert (float(sign), float(log)) == (0, -np.inf)
    assert float(ft.jit(jnp.linalg.det)(a)) == 0
    assert np.isnan(np.asarray(ft.jit(jnp.linalg.solve)(a, np.ones(400)))).all()


@ft.jit
def everything(a, b, many):
    low = lax.linalg.cholesky(a)
    return (low, lax.linalg.triangular_solve(low, b, left_side=True, lower=True),
            lax.linalg.triangular_solve(low, b.T, left_side=False, lower=True, transpose_a=True),
            lax.linalg.lu(a), jnp.linalg.solve(a, b), jnp.linalg.slogdet(a),
            jnp.linalg.solve(a, b[:, 0]), lax.linalg.cholesky(many),
            jnp.linalg.solve(many, many), jnp.linalg.det(many / 10))


@pytest.mark.parametrize("dtype", ("float32", "complex128"))
def test_bits_do_not_depend_on_the_number_of_threads(dtype):
    a, b, many = definite(600, dtype), numbers(600, 200, dtype=dtype), definite(100, dtype, (9,))
    with ft.config.threads(count=1):
        expected = ft.tree.leaves(everything(a, b, many))
    for count in (2, 3, 4, 7):
        with ft.config.threads(count=count):
            for x, y in zip(ft.tree.leaves(everything(a, b, many)), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_a_matrix_has_the_bits_that_it_has_alone():
    many = definite(260, "float32", (9,))
    together = np.asarray(ft.jit(lax.linalg.cholesky)(many))
    for a, low in zip(many, together, strict=True):
        np.testing.assert_array_equal(np.asarray(ft.jit(lax.linalg.cholesky)(a)), low)
