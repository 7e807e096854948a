"""On a GPU: quotients and square roots of float32 are NumPy's."""

import numpy as np
import pytest

import functrans as ft
from functrans import numpy as xp

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)
LIMITS = np.finfo("f4")
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, 7, 1e-45, 1e-38, 1e38, -3e38,
                    LIMITS.tiny, LIMITS.max], "f4")  # fmt: skip
COUNT = 1 << 21


def numbers(low, high):
    """Of either sign, with exponents in a range."""
    signs = RNG.choice([-1.0, 1.0], COUNT)
    return (signs * RNG.uniform(1, 2, COUNT) * 2.0 ** RNG.integers(low, high, COUNT)).astype("f4")


def ulps(actual, expected):
    return np.abs(actual.astype("f8") - expected) / np.spacing(np.abs(expected)).astype("f8")


def quotient(x, y):
    with np.errstate(all="ignore"):
        on_gpu = ft.jit(xp.divide)(ft.device_put(x, "gpu"), ft.device_put(y, "gpu"))
        return np.asarray(on_gpu), x / y


@pytest.mark.parametrize("above, below", [((-1, 2), (-1, 2)), ((-60, 60), (-60, 60)),
                                          ((-90, 127), (-126, 127)), ((0, 10), (-149, -120))])
def test_quotients_round_as_they_should(above, below):
    actual, expected = quotient(numbers(*above), numbers(*below))
    known = np.isfinite(expected) & (np.abs(expected) >= LIMITS.tiny)
    np.testing.assert_array_equal(actual[~np.isfinite(expected)], expected[~np.isfinite(expected)])
    found = ulps(actual[known], expected[known])
    assert found.max() <= 1 and np.mean(found > 0) < 1e-4


def test_quotients_of_small_numerators_are_near():
    actual, expected = quotient(numbers(-149, -90), numbers(-20, 20))
    assert ulps(actual, expected).max() <= 4


def test_special_quotients():
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    actual, expected = quotient(x, y)
    np.testing.assert_array_equal(actual, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


def test_quotients_that_are_exact():
    x, y = (a.ravel().astype("f4") for a in np.meshgrid(np.arange(1, 1500), np.arange(1, 1500)))
    np.testing.assert_array_equal(quotient(x * y, y)[0], x)


def test_square_roots():
    x = np.concatenate([np.abs(numbers(-149, 127)), SPECIAL, np.arange(2000, dtype="f4") ** 2])
    with np.errstate(all="ignore"):
        actual, expected = np.asarray(ft.jit(xp.sqrt)(ft.device_put(x, "gpu"))), np.sqrt(x)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    known = np.isfinite(expected)
    np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))
    found = ulps(actual[known], expected[known])
    assert found.max() <= 1 and np.mean(found > 0) < 1e-4
    np.testing.assert_array_equal(actual[-2000:], np.arange(2000, dtype="f4"))
