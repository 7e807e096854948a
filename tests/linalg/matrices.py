"""Matrices for the tests, in float64 and complex128."""

import numpy as np


def matrix(*shape, seed=0, complex=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if complex else x


def square(*lead, n=4, seed=0, complex=False):
    """Well-conditioned."""
    return matrix(*lead, n, n, seed=seed, complex=complex) + 3 * np.eye(n)


def positive(*lead, n=4, seed=0, complex=False):
    x = matrix(*lead, n, n, seed=seed, complex=complex)
    return x @ np.swapaxes(x.conj(), -1, -2) + np.eye(n)


def assert_close(actual, expected, tolerance=1e-10):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
