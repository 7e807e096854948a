"""Quantiles of all distributions over both tails and shapes of all sizes, and what follows."""

import itertools
import warnings

import mpmath
import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.scipy import stats

P = (0.1, 0.5, 1.0, 2.5, 30.0, 1e5)
TINY = (1e-5, *P)
POWERS = (0.1, 0.5, 1.0, 2.5, 30.0, 1e3)
SHAPES = {
    "arcsine": (), "beta": (TINY, TINY), "betaprime": (TINY, TINY), "cauchy": (), "chi": (TINY,),
    "chi2": (TINY,), "expon": (), "exponnorm": ((0.01, 0.5, 2.5, 100.0),), "f": (P, P),
    "fisk": (POWERS,), "gamma": (TINY,), "gennorm": (POWERS,),
    "genpareto": ((-2.0, -0.5, -1e-5, 0.0, 1e-5, 0.5, 2.0),),
    "gompertz": ((1e-5, 0.5, 1.0, 30.0, 1e5),), "gumbel_l": (), "gumbel_r": (), "halfcauchy": (),
    "halflogistic": (), "halfnorm": (), "hypsecant": (), "invgamma": (TINY,),
    "invgauss": ((1e-3, 0.1, 1.0, 2.5, 30.0, 1e3),),
    "johnsonsu": ((-2.5, 0.0, 2.5), (0.1, 1.0, 2.5, 30.0)), "laplace": (), "levy": (),
    "logistic": (), "lognorm": ((1e-3, 0.1, 1.0, 2.5, 10.0),),
    "loguniform": ((1e-5, 0.5), (1.0, 2.5, 1e5)), "lomax": (P,), "maxwell": (), "nakagami": (TINY,),
    "norm": (), "pareto": (P,), "powerlaw": (TINY,), "rayleigh": (), "semicircular": (),
    "skewnorm": ((-30.0, -2.5, -0.1, 0.0, 0.5, 2.5, 30.0),), "t": ((*P, 1e10, np.inf),),
    "triang": ((1e-5, 0.3, 1.0),), "truncexpon": ((1e-5, 0.5, 2.5, 30.0, 1e3),),
    "truncnorm": ((-30.0, -1.0, 0.0, 2.0, 8.0), (9.0, 30.0, np.inf)), "uniform": (),
    "vonmises": ((0.0, 1e-5, 0.5, 2.5, 30.0, 1e3),), "weibull_min": (POWERS,),
    "wrapcauchy": ((0.1, 0.3, 0.9),)}
Q = (1e-300, 1e-100, 1e-30, 1e-12, 1e-8, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-8, 1 - 2.0**-53)
INEXACT = {"skewnorm", "truncexpon", "vonmises"}
"""Of which SciPy's tails are differences, or an approximation."""


def of_scipy(family, method, *args):
    args = [np.asarray(a, np.float64) for a in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(family, method)(*args)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-7), (np.float32, 2e-3)])
def test_quantiles_and_tails_are_inverse(dtype, rtol, name):
    """To rtol, or to what the numbers beside a quantile differ by; SciPy's tails agree."""
    *shapes, q = (x.astype(dtype) for x in np.array(list(itertools.product(*SHAPES[name], Q))).T)
    some = (q > 0) & (q < 1)
    shapes, q = [s[some] for s in shapes], q[some]
    family, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for inverse, tail in (("ppf", "cdf"), ("isf", "sf")):
        x = np.asarray(ft.jit(lambda *xs, f=inverse: getattr(family, f)(*xs))(q, *shapes))
        least = 1e3 * np.finfo(dtype).tiny
        zero = np.abs(x) < least
        around = [np.where(zero, sign * least, np.nextafter(x, sign * np.inf, dtype=dtype)).astype(
            dtype) for sign in (-1, 1)]
        run = ft.jit(lambda *xs, f=tail: getattr(family, f)(*xs))
        back, low, high = (np.asarray(run(v, *shapes), np.float64) for v in (x, *around))
        # beyond the numbers of the dtype the quantile is 0 or infinite, and q between the tails
        end = np.isinf(x) | zero
        between = (np.minimum(low, high) <= q) & (q <= np.maximum(low, high))
        fine = (np.abs(back - q) <= rtol * q + np.where(end, 0.0, 8 * np.abs(high - low))) | (
            end & between)
        assert fine.all(), [(*(float(s[i]) for s in shapes), float(q[i]), inverse, float(x[i]),
                             float(back[i])) for i in np.flatnonzero(~fine)[:9]]
        if name in INEXACT:
            continue
        known = ~end & (q > 1e-12) & (q < 1 - 1e-6)
        there = of_scipy(theirs, tail, x, *shapes)
        near = np.abs(there - back) <= rtol * q + 1e-12 + 8 * np.abs(high - low)
        assert near[known].all(), [(*(float(s[i]) for s in shapes), float(q[i]), float(x[i]))
                                   for i in np.flatnonzero(known & ~near)[:9]]


def test_tails_of_which_the_terms_cancel():
    """Beside mpmath's quadrature."""
    with mpmath.workdps(30):
        for a, x in ((0.5, -20.0), (2.5, -5.0), (30.0, -0.3), (2.5, -0.2)):
            log = mpmath.log(2 * mpmath.quad(
                lambda t, a=a: mpmath.npdf(t) * mpmath.ncdf(a * t),
                [*(x - 16 * mpmath.mpf(2)**-k for k in range(14)), x]))
            assert float(stats.skewnorm.logcdf(np.float64(x), a)) == pytest.approx(
                float(log), rel=1e-11)
            assert float(stats.skewnorm.logsf(np.float64(-x), -a)) == pytest.approx(
                float(log), rel=1e-11)
        for kappa, x in ((30.0, -1.7), (1e3, -0.6), (2.5, -3.0), (30.0, -0.1)):
            mass = mpmath.quad(lambda t, kappa=kappa: mpmath.exp(kappa * (mpmath.cos(t) - 1)),
                               mpmath.linspace(-mpmath.pi, x, 24))
            mass /= 2 * mpmath.pi * mpmath.besseli(0, kappa) * mpmath.exp(-kappa)
            assert float(stats.vonmises.cdf(np.float64(x), kappa)) == pytest.approx(
                float(mass), rel=1e-11)
    assert float(stats.betaprime.sf(np.float64(1e30), 0.1, 0.1)) == pytest.approx(
        scipy.stats.betaprime.sf(1e30, 0.1, 0.1), rel=1e-10)
    assert float(stats.t.logpdf(np.float32(1e25), 1.0)) == pytest.approx(
        scipy.stats.t.logpdf(1e25, 1.0), rel=1e-6)


@pytest.mark.parametrize("name, shape", [
    ("chi", 1.0), ("nakagami", 0.5), ("gennorm", 2.5), ("maxwell", None), ("t", np.inf)])
def test_slopes_where_powers_underflow(name, shape):
    """Those of tails are less the density, also where a power of the variable is no number."""
    family, rest = getattr(stats, name), () if shape is None else (shape,)
    x = np.array([1e-300, 1e-160, 1e-30, 1e-5, 0.3, 2.0, 1e160, 1e300])
    slope = np.asarray(ft.grad(lambda x: ft.numpy.sum(family.sf(x, *rest)))(x))
    np.testing.assert_allclose(slope, -np.asarray(family.pdf(x, *rest)), rtol=1e-8, atol=1e-200)
    for i in range(1, len(rest) + 1):
        if shape != np.inf:
            moved = ft.grad(lambda *xs: ft.numpy.sum(family.cdf(*xs)), i)(
                x, *(np.full_like(x, r) for r in rest))
            assert np.isfinite(np.asarray(moved)).all()


DISCRETE = {
    "bernoulli": ((1e-5, 0.3, 1.0),), "betabinom": ((1.0, 30.0), (0.1, 2.5), (0.1, 30.0)),
    "binom": ((1.0, 30.0, 1e3), (1e-5, 0.3, 0.999)), "boltzmann": ((1e-3, 1.4), (1.0, 30.0)),
    "dlaplace": ((1e-2, 0.8, 30.0),), "geom": ((1e-5, 0.3, 1.0),),
    "hypergeom": ((30.0,), (7.0, 29.0), (1.0, 12.0)), "logser": ((1e-5, 0.6, 0.99),),
    "nbinom": ((0.5, 5.0, 1e3), (1e-3, 0.5, 0.999)), "planck": ((1e-3, 0.5, 30.0),),
    "poisson": ((1e-5, 0.6, 30.0, 1e5),), "randint": ((-7.0, 7.0), (8.0, 31.0)),
    "zipf": ((2.5, 6.5),)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions_over_shapes(name):
    """Probabilities are SciPy's, and a quantile is the least number whose cdf reaches q."""
    family, theirs = getattr(stats, name), getattr(scipy.stats, name)
    k = (-8.0, -1.0, 0.0, 1.0, 2.0, 7.0, 30.0, 1e3)
    *shapes, at = np.array(list(itertools.product(*DISCRETE[name], k))).T
    for method in ("pmf", "cdf", "sf"):
        np.testing.assert_allclose(
            np.asarray(getattr(family, method)(at, *shapes)),
            of_scipy(theirs, method, at, *shapes), rtol=1e-8, atol=1e-14, err_msg=method)
    share = (1e-12, 1e-3, 0.2, 0.5, 0.9, 1 - 1e-6)
    *shapes, q = np.array(list(itertools.product(*DISCRETE[name], share))).T
    x = np.asarray(family.ppf(q, *shapes))
    assert (np.asarray(family.cdf(x, *shapes)) >= q * (1 - 1e-12)).all()
    assert (np.asarray(family.cdf(x - 1, *shapes)) < q * (1 + 1e-12)).all()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name, shapes", [
    ("gamma", (0.01,)), ("nbinom", (0.1, 0.3)), ("gamma", (1e4,)),
    ("beta", (0.05, 0.1)), ("beta", (1e3, 1e4)),
    ("chi", (0.1,)), ("invgamma", (30.0,)), ("skewnorm", (30.0,)), ("truncnorm", (8.0, np.inf)),
    ("lognorm", (0.01,)), ("exponnorm", (0.01,)), ("nakagami", (0.1,)),
    ("weibull_min", (30.0,)), ("poisson", (1e-2,)), ("poisson", (1e4,)), ("binom", (1e3, 1e-3)),
    ("geom", (0.999,))])
def test_means_and_variances_of_random_numbers(name, shapes):
    """Within five standard errors; that of a variance is by the fourth moment of the sample."""
    count = 20_000
    x = np.asarray(getattr(stats, name).rvs(ft.random.key(7), *map(np.float32, shapes),
                                            shape=(count,)), np.float64)
    mean, variance = (float(v) for v in getattr(scipy.stats, name).stats(*shapes, moments="mv"))
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / count) + 1e-6 * abs(mean)
    fourth = np.mean((x - mean) ** 4)
    assert abs(x.var() - variance) < 5 * np.sqrt(fourth / count) + 1e-3 * variance


def test_quantiles_far_out_in_a_heavy_tail_are_those_of_its_distribution_function() -> None:
    q = np.float64(1.0 - 2e-16)
    x = stats.studentized_range.ppf(q, 3.0, 10.0)
    np.testing.assert_allclose(np.asarray(stats.studentized_range.sf(x, 3.0, 10.0)), 1.0 - q,
                               rtol=1e-6)
