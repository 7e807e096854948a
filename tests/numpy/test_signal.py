"""pad, polynomials, convolutions and windows against NumPy."""

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp

MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
         "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [0, 2, (1, 2), ((1, 2), (3, 0)), ((9, 8), (0, 7)),
                                   {0: 1, -1: (2, 0)}], ids=str)
def test_pad(mode, width):
    x = normal(3, 4)
    compare("pad", x, width, mode)
    if mode not in ("mean", "linear_ramp", "median"):
        compare("pad", integers(3, 4), width, mode)


@pytest.mark.parametrize("kwargs", [
    {"mode": "constant", "constant_values": 3}, {"mode": "constant", "constant_values": (1, 2)},
    {"mode": "constant", "constant_values": ((1, 2), (3, 4))},
    {"mode": "linear_ramp", "end_values": (1, 2)}, {"mode": "mean", "stat_length": 2},
    {"mode": "maximum", "stat_length": ((1, 2), (3, 1))},
    {"mode": "reflect", "reflect_type": "odd"}, {"mode": "symmetric", "reflect_type": "odd"}])
def test_pad_options(kwargs):
    compare("pad", normal(3, 4), ((2, 1), (3, 4)), **kwargs)


def test_pad_of_one_and_with_a_function():
    for mode in MODES:
        compare("pad", normal(1, 3), ((2, 2), (0, 0)), mode)

    def fill(vector, width, axis, options):
        vector[:width[0]] = 7
        if width[1]:
            vector[-width[1]:] = options.get("value", 8)

    compare("pad", normal(3, 4), 2, fill)
    compare("pad", integers(3), (1, 2), fill, value=9)
    assert jnp.pad(jnp.ones(2), 1, "empty").shape == (4,)


def test_pad_refusals_and_gradient():
    with pytest.raises(ValueError, match="unknown mode='sideways'"):
        jnp.pad(jnp.ones(2), 1, "sideways")
    with pytest.raises(ValueError, match="does not take stat_length"):
        jnp.pad(jnp.ones(2), 1, "edge", stat_length=2)
    with pytest.raises(ValueError, match="negative"):
        jnp.pad(jnp.ones(2), -1)
    with pytest.raises(ValueError, match="does not fit"):
        jnp.pad(jnp.ones((2, 2)), ((1, 2), (1, 2), (1, 2)))
    gradient = ft.grad(lambda v: jnp.sum(jnp.pad(v, 2, "reflect")))(np.arange(4, dtype=np.float32))
    assert np.asarray(gradient).tolist() == [1, 3, 3, 1]


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (6, 1), (2, 7)])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve(sizes, mode):
    a, b = normal(sizes[0]), normal(sizes[1], seed=1)
    compare("convolve", a, b, mode)
    compare("correlate", a, b, mode)
    compare("convolve", integers(sizes[0]), integers(sizes[1]), mode)
    z = normal(sizes[1], dtype=np.complex64)
    compare("correlate", a.astype(np.complex64), z, mode)


def test_polynomials():
    p, q = normal(4), normal(3)
    compare("polyval", p, 0.5)
    compare("polyval", p, normal(2, 3))
    compare("polyval", normal(70) * 0.1, np.array([0.5, -0.9], np.float32))
    compare("polyadd", p, q)
    compare("polysub", q, p)
    compare("polymul", p, q)
    compare("polyder", p)
    compare("polyder", p, 2)
    check(jnp.polyder(p, 6), np.zeros(0))
    compare("polyint", p)
    compare("polyint", p, 2, [1, 2])
    compare("polyint", p, 2, 3)
    quotient, rest = np.polydiv(p, q)
    ours = jnp.polydiv(p, q)
    check(ours[0], quotient, tol=1e-4)
    check(ours[1], np.pad(rest, (2, 0)), tol=1e-4)
    check(jnp.polydiv(p, q, trim_leading_zeros=True)[1], rest, tol=1e-4)
    compare("poly", normal(4))
    check(jnp.polymul([0, 1.0, 2], [1.0, 1], trim_leading_zeros=True), np.array([1, 3, 2.0]))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name):
    for size in (0, 1, 2, 9):
        compare(name, size)


def test_kaiser():
    for size in (0, 1, 2, 9):
        compare("kaiser", size, 8.6, dtype=False)
    assert ft.jit(lambda b: jnp.kaiser(5, b))(2.0).shape == (5,)
