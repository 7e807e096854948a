"""functrans.scipy.stats against SciPy over the ends of domains, and parameters outside of them."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.scipy import stats

POINTS = [-np.inf, -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5, np.inf, np.nan]
SHAPES = [-1.0, 0.0, 0.5, 1.0, 2.0, np.nan]
PLACES = [0.5]
SCALES = [-1.0, 0.0, 2.0, np.nan]
GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "scipy.json").read_text())["stats"]
CONTINUOUS = {"norm": 0, "uniform": 0, "expon": 0, "laplace": 0, "cauchy": 0, "logistic": 0,
              "gamma": 1, "chi2": 1, "t": 1, "beta": 2}
DISCRETE = ("bernoulli", "poisson")
METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
FUNCTIONS = [(d, m) for d in (*CONTINUOUS, *DISCRETE) for m in METHODS
             if f"{d}.{m}" in GOLDEN]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("distribution, method", FUNCTIONS)
def test_values_are_those_of_scipy(distribution, method):
    axes = [POINTS, SHAPES, PLACES] if distribution in DISCRETE else \
        [POINTS, *[SHAPES] * CONTINUOUS[distribution], PLACES, SCALES]
    args = [v.ravel() for v in np.meshgrid(*axes, indexing="ij")]
    fun = getattr(getattr(stats, distribution), method)
    expected = np.array(GOLDEN[f"{distribution}.{method}"], np.float64)  # None is NaN
    if distribution in ("gamma", "chi2", "poisson") and method[-3:] in ("pdf", "pmf"):
        # SciPy has infinity minus infinity far out, where densities are 0
        valid = args[1] >= 0 if distribution == "poisson" else (args[1] > 0) & (args[-1] > 0)
        far = (args[0] == np.inf) & valid & np.isnan(expected)
        expected = np.where(far, -np.inf if "log" in method else 0.0, expected)
    for got in (fun(*args), ft.jit(lambda *xs: fun(*xs))(*args)):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("distribution", CONTINUOUS)
def test_gradients_outside_of_the_domain_stay_there(distribution):
    """A lane with impossible parameters has NaN, and does not spoil the gradient of others."""
    shapes = [np.array([1.5, -1.0])] * CONTINUOUS[distribution]
    args = [np.array([0.5, 0.5]), *shapes, np.zeros(2), np.array([2.0, -1.0])]
    fun = getattr(stats, distribution).logpdf
    assert np.isnan(np.asarray(fun(*args)))[1]
    alone = ft.grad(lambda *xs: ft.numpy.sum(fun(*xs)), tuple(range(len(args))))(
        *[a[:1] for a in args])
    both = ft.grad(lambda *xs: ft.numpy.nansum(fun(*xs)), tuple(range(len(args))))(*args)
    for one, two in zip(alone, both, strict=True):
        np.testing.assert_allclose(np.asarray(two)[0], np.asarray(one)[0], rtol=1e-12)


@pytest.mark.parametrize("name, shapes", [
    ("cosine", ()), ("exponnorm", (1.4,)), ("gumbel_l", ()), ("invgauss", (0.7,)), ("t", (3.2,))])
def test_far_quantiles_invert_the_tails(name, shapes):
    family = getattr(stats, name)
    q = np.array([0.6, 1e-3, 1e-8, 1e-15])
    np.testing.assert_allclose(np.asarray(family.sf(family.isf(q, *shapes), *shapes)), q, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(family.cdf(family.ppf(q, *shapes), *shapes)), q,
                               rtol=1e-7)


def test_upper_quantiles_on_the_circle():
    q = np.array([0.6, 1e-3, 1e-8])
    np.testing.assert_allclose(np.asarray(stats.vonmises.isf(q, 1.3)),
                               -np.asarray(stats.vonmises.ppf(q, 1.3)), rtol=1e-9)


def test_the_tail_of_the_inverse_gaussian_has_digits():
    """The two terms cancel; the figure is SciPy's."""
    tail = stats.invgauss.logsf(np.float64(1000.0), 0.7)
    assert float(tail) == pytest.approx(-1030.2823329943171)


def test_the_sum_of_a_logarithmic_series_does_not_run_to_its_argument():
    k = np.array([1.0, 7.0, 1e3, 1e8])
    tail = [sum(0.4**j / j for j in range(int(n) + 1, int(n) + 60)) / -np.log(0.6) for n in k]
    np.testing.assert_allclose(np.asarray(stats.logser.sf(k, 0.4)), tail, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(stats.logser.cdf(k, 0.4)), 1 - np.array(tail), rtol=1e-14)


def test_far_arguments_and_ends_beside_scipy():
    far = np.array([1e300, -1e300, 1e9, 3.0])
    np.testing.assert_allclose(stats.cauchy.logpdf(far), scipy.stats.cauchy.logpdf(far), 1e-13)
    many = np.array([0.0, 5.0, 1e30, 1e300])
    for name in ("cdf", "sf", "logcdf"):
        np.testing.assert_allclose(getattr(stats.nbinom, name)(many, 3, 0.4),
                                   getattr(scipy.stats.nbinom, name)(many, 3, 0.4), 1e-12)
    ends = np.array([0.0, 1.0])
    np.testing.assert_array_equal(stats.wrapcauchy.ppf(ends, 0.3), [0.0, 2 * np.pi])
    np.testing.assert_array_equal(stats.wrapcauchy.isf(ends, 0.3), [2 * np.pi, 0.0])
