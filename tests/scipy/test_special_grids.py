"""Special functions of two and three numbers at extremes of all of them, beside SciPy.

Kinds and relative errors are compared at points drawn from the grid of the extremes of each
argument, in float64 and float32, eager and compiled. Where SciPy is wrong, its values are replaced
by a limit or by mpmath's.
"""

import itertools
import warnings

import mpmath
import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.scipy import special

SIZES = (1e-300, 1e-30, 1e-5, 0.5, 1.0, 1 + 2.0**-52, 2.5, 30.0, 1e5, 1e10, 1e300)
POSITIVE = (*SIZES, np.inf, np.nan)
FROM_ZERO = (0.0, *POSITIVE)
REAL = (-np.inf, *(-x for x in reversed(SIZES)), -0.0, 5e-324, *FROM_ZERO)
SHARE = (0.0, 1e-300, 1e-30, 1e-5, 0.25, 0.5, 0.9, 1.0 - 2.0**-53, 1.0, -0.5, 1.5, np.nan)
WHOLE = (0.0, 1.0, 2.0, 7.0, 30.0, 1e5)
DEGREES = (1e-5, 0.5, 1.0, 2.5, 30.0, 1e5, 1e10)
ORDERS = (0.0, 0.5, 1.0, 2.5, 7.0, 30.0, -0.5, -2.5)

GRIDS = {
    "agm": (FROM_ZERO, FROM_ZERO),
    "bdtr": (WHOLE, WHOLE, SHARE),
    "bdtrc": (WHOLE, WHOLE, SHARE),
    "betainc": (POSITIVE, POSITIVE, SHARE),
    "betaincc": (POSITIVE, POSITIVE, SHARE),
    "boxcox": (FROM_ZERO, REAL),
    "boxcox1p": (FROM_ZERO, REAL),
    "chdtr": (POSITIVE, FROM_ZERO),
    "chdtrc": (POSITIVE, FROM_ZERO),
    "eval_chebyc": (ORDERS, (-2.0, -1.5, -1e-5, 0.0, 0.3, 1.0, 1.5, 2.0)),
    "eval_chebys": (ORDERS, (-1.5, -1e-5, 0.0, 0.3, 1.0, 1.5, 2.0)),
    "eval_chebyt": (ORDERS, (-1.0, -0.9, -1e-5, 0.0, 0.3, 0.9, 1.0)),
    "eval_chebyu": (ORDERS, (-0.9, -1e-5, 0.0, 0.3, 0.9, 1.0)),
    # SciPy's product of x and a parameter, and a share below 1e-16, lose the result beyond
    "fdtr": (DEGREES[1:], DEGREES[1:], (0.0, 1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, np.inf, np.nan)),
    "fdtrc": (DEGREES[1:], DEGREES[1:], (0.0, 1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, np.inf, np.nan)),
    "gammainc": (FROM_ZERO, FROM_ZERO),
    "gammaincc": (FROM_ZERO, FROM_ZERO),
    "huber": (REAL, REAL),
    "nbdtr": (WHOLE, WHOLE[1:], SHARE),
    "nbdtrc": (WHOLE, WHOLE[1:], SHARE),
    "owens_t": (REAL, REAL),
    "pdtr": (WHOLE, FROM_ZERO),
    "pdtrc": (WHOLE, FROM_ZERO),
    "radian": (REAL, REAL, REAL),
    "rel_entr": (REAL, REAL),
    "stdtr": (POSITIVE, REAL),
    "xlog1py": (REAL, REAL),
    "xlogy": (REAL, REAL),
}
"""The extremes of each argument of its domain."""

AROUND_ZERO = {"eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu"}
"""Those of size 1 that pass through 0, where SciPy has roundoff."""


def reciprocal(x, lmbda):
    return -1.0 / lmbda


def owens(h, a):
    """The leading term in a, which is what is left for such an a."""
    return float(a * mpmath.exp(-mpmath.mpf(h)**2 / 2) / (2 * mpmath.pi))


def student(df, t):
    """Half of the integral of Beta(df / 2, 1 / 2) from 0 to df / t^2, by its leading term."""
    half = mpmath.mpf(df) / 2
    power = mpmath.exp(half * (mpmath.log(df) - 2 * mpmath.log(abs(t))))
    tail = power / (half * mpmath.beta(half, 0.5)) / 2
    return float(tail if t < 0 else 1 - tail)


EXCEPTIONS = {
    # SciPy takes the logarithm for lmbda below 1e-19, which is infinite where this is not
    "boxcox": (lambda x, lmbda: (0 < abs(lmbda) < 1e-19) & (
        ((x == 0) & (lmbda > 0)) | ((x == np.inf) & (lmbda < 0))), reciprocal),
    "boxcox1p": (lambda x, lmbda: (0 < abs(lmbda) < 1e-19) & (x == np.inf) & (lmbda < 0),
                 reciprocal),
    # SciPy has a difference of normal probabilities
    "owens_t": (lambda h, a: 10 < abs(h) < 1e3 and 0 < abs(a) < 1e-9, owens),
    # of SciPy the square of t overflows
    "stdtr": (lambda df, t: df < 1e6 and 1e154 < abs(t) < np.inf, student),
}
"""Where SciPy is wrong, and what is right there."""


def points(name, dtype, count=400):
    """At most `count` points of the grid, in rows of one argument, as numbers of `dtype`."""
    grid = np.array(list(itertools.product(*GRIDS[name])))
    if len(grid) > count:
        grid = grid[np.random.default_rng(len(name)).choice(len(grid), count, replace=False)]
    with np.errstate(over="ignore"):
        return grid.T.astype(dtype)


def expected(name, args):
    """SciPy's values in float64, but for its errors."""
    args = args.astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.asarray(getattr(scipy.special, name)(*args))
    wrong, right = EXCEPTIONS.get(name, (lambda *xs: False, None))
    return np.array([right(*xs) if wrong(*xs) else v
                     for v, *xs in zip(values.tolist(), *args.tolist(), strict=True)])


def assert_like(ours, theirs, args, rtol, atol):
    """Equal kinds, and equal values but for `rtol` and `atol`."""
    with np.errstate(over="ignore"):
        theirs = theirs.astype(ours.dtype)
    fine = np.isclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
    assert fine.all(), [(*map(float, args[:, i]), "ours", float(ours[i]), "theirs",
                         float(theirs[i])) for i in np.flatnonzero(~fine)[:9]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_extremes_of_all_arguments(dtype, rtol, name):
    args = points(name, dtype)
    # products of subnormal numbers and roundoff at zeros of polynomials are as good as 0
    atol = 1e-14 if name in AROUND_ZERO else 1e3 * float(np.finfo(dtype).tiny)
    theirs = expected(name, args)
    eager = getattr(special, name)(*args)
    assert eager.dtype == dtype
    assert_like(np.asarray(eager), theirs, args, rtol, atol)
    compiled = ft.jit(lambda *xs: getattr(special, name)(*xs))(*args)
    assert_like(np.asarray(compiled), np.asarray(eager).astype(np.float64), args, 1e-3 * rtol
                if dtype == np.float64 else rtol, atol)


def test_beta_integrals_of_large_parameters():
    """Beside the incomplete gamma function, their limit, and mpmath's quadrature."""
    share = np.array([0.3, 1.0, 2.5, 8.0])
    a = np.array([1e-5, 0.5, 2.5, 30.0])[:, None]
    limit = scipy.special.gammainc(a, share), scipy.special.gammaincc(a, share)
    for large in (1e200, 1e300):
        np.testing.assert_allclose(special.betainc(a, large, share / large), limit[0], 1e-11)
        np.testing.assert_allclose(special.betaincc(a, large, share / large), limit[1], 1e-11)
        np.testing.assert_allclose(special.fdtrc(large, 2.0 * a, a / share), limit[0], 1e-11)
    for p, q, x in ((450.0, 3e4, 0.0128), (1e6, 1e6, 0.4979), (1e4, 1e5, 0.0899)):
        with mpmath.workdps(40):
            mode = mpmath.mpf(p - 1) / (p + q - 2)
            width = mpmath.sqrt(mode * (1 - mode) / (p + q))

            def density(t, p=p, q=q, mode=mode):
                return mpmath.exp((p - 1) * mpmath.log(t / mode)
                                  + (q - 1) * mpmath.log((1 - t) / (1 - mode)))

            total = [mpmath.quad(density, mpmath.linspace(max(mode - 15 * width, 0), end, 12))
                     for end in (mpmath.mpf(x), mode + 15 * width)]
            tail = float(total[0] / total[1])
        assert float(special.betainc(p, q, np.float64(x))) == pytest.approx(tail, rel=1e-11)


def test_known_limits():
    assert float(special.bdtrc(0.0, np.float64(1e300), 1e-300)) == pytest.approx(-np.expm1(-1))
    assert float(special.chdtri(np.float64(1e-300), 1e-300)) == pytest.approx(
        scipy.special.chdtri(1e-300, 1e-300), rel=1e-9)
    # the derivative of the coefficient in x at 0 is (-1)^(y + 1) / y
    assert float(special.binom(np.float64(1e-30), 7.0)) == pytest.approx(1e-30 / 7)
    for x, y in ((1e-5, 1e5), (0.3, 1e10), (-2.5, 150.25), (2.5, 100.0), (1e-5, 77.5)):
        with mpmath.workdps(60):
            exact = float(mpmath.binomial(mpmath.mpf(x), mpmath.mpf(y)))
        assert float(special.binom(np.float64(x), y)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", ["betaincinv", "betainccinv"])
def test_quantiles_of_infinite_parameters(name):
    at = np.array([[np.inf, 2.0], [2.0, np.inf]])
    y = np.array([0.0, 1e-300, 0.3, 1.0])[:, None]
    got = np.asarray(getattr(special, name)(at[0], at[1], y))
    theirs = getattr(scipy.special, name)(at[0], at[1], y)
    # between the ends SciPy has NaN, where all of the mass is at one of them
    np.testing.assert_array_equal(got, np.where(np.isnan(theirs), [1.0, 0.0], theirs))


@pytest.mark.parametrize("n", [0.5, 2.5, -1.5])
@pytest.mark.parametrize("name", ["eval_chebyt", "eval_chebyu"])
def test_slopes_of_broken_degrees(name, n):
    x = np.array([-0.7, 0.2, 0.999, 1.8])
    fun = getattr(special, name)
    slope = ft.grad(lambda x: ft.numpy.sum(fun(n, x)))(x)
    step = 1e-6
    with ft.default_dtypes("float64"):
        about = (np.asarray(fun(n, x + step)) - np.asarray(fun(n, x - step))) / (2 * step)
    np.testing.assert_allclose(np.asarray(slope), about, rtol=1e-6)
