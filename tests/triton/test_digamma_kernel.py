"""Digamma as kernels of a GPU compute it, against mpmath."""

import mpmath
import numpy as np
import pytest

from functrans import lax
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from tests.triton.emulated import program_of

RNG = np.random.default_rng(0)
ZERO = 1.4616321449683622


def digamma(x):
    _, program, _ = program_of(lax.digamma, x)
    return np.asarray(InterpretedProgram(program)([x])[0])


def exact(x):
    with mpmath.workdps(50):
        return [mpmath.digamma(mpmath.mpf(float(v))) for v in x]


@pytest.mark.parametrize("x", [
    RNG.uniform(0, 12, 500), 10 ** RNG.uniform(-300, 300, 100),
    ZERO + np.linspace(-1e-6, 1e-6, 101), np.array([1.0, 2.0, 0.5, 3.0, np.nextafter(3, 4)]),
], ids=["small", "all exponents", "its zero", "borders"])
def test_float64_is_within_two_units_of_the_last_place(x):
    errors = [abs(mpmath.mpf(float(y)) - e) / float(np.spacing(abs(float(e))))
              for y, e in zip(digamma(x), exact(x), strict=True)]
    assert max(errors) < 2


def test_negative_numbers_are_right_to_the_larger_of_their_two_terms():
    x = -RNG.uniform(0, 30, 500)
    for y, e, v in zip(digamma(x), exact(x), x, strict=True):
        larger = max(abs(float(e)), np.log(1 - v), 1)
        assert abs(mpmath.mpf(float(y)) - e) < 1e-15 * larger


def test_float32_is_rounded_once():
    x = np.concatenate([RNG.uniform(0, 12, 300), ZERO + np.linspace(-1e-3, 1e-3, 50)]).astype("f")
    for y, e in zip(digamma(x), exact(x), strict=True):
        assert abs(mpmath.mpf(float(y)) - e) < 0.501 * float(np.spacing(np.float32(abs(float(e)))))


def test_poles_and_infinities():
    x = np.array([0.0, -0.0, -1.0, -7.0, -np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(digamma(x), [np.nan] * 6 + [np.inf])
