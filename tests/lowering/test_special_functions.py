"""Special functions in kernels: as accurate as NumPy's references, everywhere."""

import mpmath
import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.primitives.transcendental import polygamma

RNG = np.random.default_rng(0)
ODD = [0.0, -0.0, np.inf, np.nan]
REAL = np.concatenate([RNG.uniform(-30, 30, 300), 10 ** RNG.uniform(-30, 30, 100), ODD,
                       [8.0, -8.0, -np.inf]])
SHIFTED = np.concatenate([RNG.uniform(0, 30, 300), 10 ** RNG.uniform(-5, 6, 100), ODD,
                          RNG.uniform(-9.9, 0, 100), [1.0, -1.0, -2.0]])
SHAPES = np.concatenate([RNG.uniform(0, 30, 40), 10 ** RNG.uniform(-3, 3, 40)])
EDGES = np.array([(a, x) for a in (0, 1, np.inf, np.nan, -1, 3)
                  for x in (0, 1, np.inf, np.nan, -1, 2.5)]).T
SAMPLES = np.concatenate([SHAPES * RNG.uniform(0, 3, 80), EDGES[1]])
SHAPES = np.concatenate([SHAPES, EDGES[0]])
EXPONENTS = np.concatenate([1 + 10 ** RNG.uniform(-2, 2, 40), RNG.integers(2, 9, 40), EDGES[0]])
ORIGINS = np.concatenate([10 ** RNG.uniform(-2, 2, 40), RNG.uniform(-9, 9, 40), EDGES[1]])
FUNCTIONS = {
    "bessel_i0e": (lax.bessel_i0e, REAL),
    "bessel_i1e": (lax.bessel_i1e, REAL),
    **{f"polygamma {n}": (lambda x, n=n: polygamma(x, n), SHIFTED)
       for n in (1, 2, 5)},
    "igamma": (lax.igamma, (SHAPES, SAMPLES)),
    "igammac": (lax.igammac, (SHAPES, SAMPLES)),
    "random_gamma_grad": (lax.random_gamma_grad, (SHAPES, SAMPLES)),
    "zeta": (lax.zeta, (EXPONENTS, ORIGINS)),
}
ULPS = {"float32": 1, "float64": 100}
"""Half a unit of float32 is what rounding takes; near zeros float64 has what its terms have."""


def distance(found, expected):
    """The most units in the last place; special values are equal."""
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    step = np.spacing(np.abs(expected[finite])).astype("f8")
    return np.max(np.abs(found[finite].astype("f8") - expected[finite].astype("f8")) / step)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("backend", ["c", "triton"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name, dtype, backend):
    fun, points = FUNCTIONS[name]
    args = [x.astype(dtype) for x in np.atleast_2d(points)]
    with np.errstate(all="ignore"):
        expected = np.asarray(fun(*args))
    with ft.config.use_backend(backend), ft.config.host_steps("error"):
        found = np.asarray(ft.jit(fun)(*args))
    assert distance(found, expected) <= ULPS[dtype]


EXACT = {
    "bessel_i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "bessel_i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "polygamma 2": lambda x: mpmath.polygamma(2, x),
    "igamma": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "igammac": lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
    "zeta": lambda x, q: mpmath.zeta(x, q),
}


@pytest.mark.parametrize("name", EXACT)
def test_values_of_mpmath(name):
    fun, points = FUNCTIONS[name]
    args = np.atleast_2d(points)[:, :30]
    with mpmath.workdps(80):
        expected = np.array([float(EXACT[name](*map(mpmath.mpf, x))) for x in args.T])
    with ft.config.use_backend("c"):
        np.testing.assert_allclose(np.asarray(ft.jit(fun)(*args)), expected, 1e-13)


@pytest.mark.parametrize("shape, other", [((3, 50), ()), ((), (3, 50)), ((), ()), ((0, 2), ())])
def test_scalars_and_halves(shape, other):
    a, x = np.full(shape, 2.5, "f2"), np.full(other, 1.5, "f2")
    with ft.config.use_backend("triton"), ft.config.host_steps("error"):
        found = ft.jit(lambda a, x: lax.igamma(a, x) * 2)(a, x)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.full(found.shape, np.float16(0.30001414) * 2))
