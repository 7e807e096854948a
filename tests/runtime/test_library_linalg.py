"""Factorizations and systems as compiled programs call them, against the primitives on NumPy."""

import numpy as np
import pytest
from library_helpers import I64, POINTER, code, library

from functrans.primitives import linalg, solve, spectral

REALS = [np.float32, np.float64]
ALL = [*REALS, np.complex64, np.complex128]
# one matrix, several, more than a vector has lanes; small ones and those that LAPACK takes
SIZES = [(1, 1, 1), (1, 3, 2), (40, 8, 3), (17, 16, 16), (3, 20, 5), (100, 4, 1), (0, 3, 2)]


def function(name, numbers, arrays):
    return library(name, *[I64] * numbers, *[POINTER] * arrays)


def random(dtype, *shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def good(dtype, batch, n):
    return random(dtype, batch, n, n) + (3 * n**0.5 * np.eye(n)).astype(dtype)


def real(dtype):
    return np.zeros(1, dtype).real.dtype


def close(got, expected):
    tolerance = 2e-3 if real(got.dtype) == np.float32 else 1e-9
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ALL)
def test_cholesky_and_nan_where_a_matrix_is_not_positive(dtype):
    for batch, n, _ in SIZES:
        a = good(dtype, batch, n)
        a = a @ a.conj().mT
        a[2:3] *= -1
        out = np.empty_like(a)
        function("cholesky", 3, 2)(code(dtype), batch, n, a, out)
        close(out, linalg.cholesky_p.evaluate(a))


@pytest.mark.parametrize("dtype", ALL)
def test_systems_and_determinants(dtype):
    for batch, n, k in SIZES:
        a, b = good(dtype, batch, n), random(dtype, batch, n, k)
        x = np.empty_like(b)
        function("solve", 4, 3)(code(dtype), batch, n, k, a, b, x)
        close(x, solve.solve_p.evaluate(a, b))
        det, sign = np.empty(batch, dtype), np.empty(batch, dtype)
        log = np.empty(batch, real(dtype))
        function("det", 3, 2)(code(dtype), batch, n, a, det)
        np.testing.assert_allclose(det, solve.det_p.evaluate(a), 1e-3)
        function("slogdet", 3, 3)(code(dtype), batch, n, a, sign, log)
        expected = solve.slogdet_p.evaluate(a)
        close(sign, expected[0])
        close(log, expected[1])


@pytest.mark.parametrize("dtype", REALS)
def test_singular_systems_give_infinities_and_a_vanishing_determinant(dtype):
    a, b = np.zeros((1, 3, 3), dtype), np.ones((1, 3, 1), dtype)
    x, sign, log = np.empty_like(b), np.empty(1, dtype), np.empty(1, dtype)
    function("solve", 4, 3)(code(dtype), 1, 3, 1, a, b, x)
    assert not np.isfinite(x).any()
    function("slogdet", 3, 3)(code(dtype), 1, 3, a, sign, log)
    assert (sign[0], log[0]) == (0, -np.inf)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("transposed", "conjugated"),
                         [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(unit, transposed, conjugated, lower, left, dtype):
    for batch, n, k in SIZES:
        a = good(dtype, batch, n) / n
        b = random(dtype, batch, *((n, k) if left else (k, n)))
        x = np.empty_like(b)
        function("triangular_solve", 9, 3)(code(dtype), batch, n, k, left, lower, transposed, unit,
                                           conjugated, a, b, x)
        expected = solve.triangular_solve_p.evaluate(
            a, b, left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugated,
            unit_diagonal=unit)
        close(x, expected)


@pytest.mark.parametrize("dtype", ALL)
def test_lu_with_pivots_and_permutation(dtype):
    for batch, m, n in [*SIZES, (5, 3, 4), (2, 9, 30)]:
        a, k = random(dtype, batch, m, n), min(m, n)
        factors = np.empty_like(a)
        pivots, order = np.empty((batch, k), np.int32), np.empty((batch, m), np.int32)
        function("lu", 4, 4)(code(dtype), batch, m, n, a, factors, pivots, order)
        expected = linalg.lu_p.evaluate(a)
        close(factors, expected[0])
        np.testing.assert_array_equal(pivots, expected[1])
        np.testing.assert_array_equal(order, expected[2])


@pytest.mark.parametrize("dtype", ALL)
def test_eigenvalues_and_eigenvectors(dtype):
    wide = np.result_type(dtype, np.complex64)
    for batch, n, _ in SIZES:
        a = random(dtype, batch, n, n)
        h = a + a.conj().mT
        w, v = np.empty((batch, n), real(dtype)), np.empty_like(h)
        values = np.empty_like(w)
        function("eigh", 3, 3)(code(dtype), batch, n, h, w, v)
        function("eigh", 3, 3)(code(dtype), batch, n, h, values, None)
        expected = spectral.eigh_p.evaluate(h, vectors=True)
        for got, value in ((w, expected[0]), (values, expected[0]), (v, expected[1])):
            close(got, value)
        w, v = np.empty((batch, n), wide), np.empty((batch, n, n), wide)
        function("eig", 3, 3)(code(dtype), batch, n, a, w, v)
        close(w, spectral.eig_p.evaluate(a, vectors=True)[0])
        close(a @ v, v * w[:, None, :])


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", ALL)
def test_qr_and_singular_values(dtype, full):
    for batch, m, n in [(1, 3, 3), (4, 5, 3), (4, 3, 5), (2, 20, 20), (0, 2, 3)]:
        a, k = random(dtype, batch, m, n), min(m, n)
        left, right = (m, n) if full else (k, k)
        q, r = np.empty((batch, m, left), dtype), np.empty((batch, left, n), dtype)
        function("qr", 5, 3)(code(dtype), batch, m, n, full, a, q, r)
        u, vh = np.empty((batch, m, left), dtype), np.empty((batch, right, n), dtype)
        s, values = np.empty((2, batch, k), real(dtype))
        function("svd", 5, 4)(code(dtype), batch, m, n, full, a, s, u, vh)
        function("svd", 5, 4)(code(dtype), batch, m, n, full, a, values, None, None)
        close(values, s)
        expected = [*linalg.qr_p.evaluate(a, full_matrices=full),
                    *spectral.svd_p.evaluate(a, full_matrices=full, compute_uv=True)]
        for got, value in zip((q, r, s, u, vh), expected, strict=True):
            close(got, value)
