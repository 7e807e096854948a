"""functrans.scipy.stats: densities are slopes of distribution functions and integrate to one."""

import math

import numpy as np
import pytest

import functrans as ft
from functrans.scipy import stats
from functrans.test_util import check_grads
from tests.linalg.matrices import matrix, positive

CONTINUOUS = {
    "norm": (), "uniform": (), "expon": (), "laplace": (), "cauchy": (), "logistic": (),
    "gamma": (2.5,), "chi2": (3.0,), "beta": (2.0, 3.5), "t": (4.0,),
}
LOC, SCALE = 0.3, 1.7


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_integrates_to_one(name):
    d, shape = getattr(stats, name), CONTINUOUS[name]
    x = np.sinh(np.linspace(-14, 14, 400_001))
    total = np.trapezoid(np.asarray(d.pdf(x, *shape, LOC, SCALE)), x)
    assert total == pytest.approx(1.0, abs=5e-5)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if hasattr(getattr(stats, n), "cdf")])
def test_density_is_the_slope_of_the_distribution_function(name):
    d, shape = getattr(stats, name), CONTINUOUS[name]
    x = np.array([0.4, 0.9, 1.5, 1.9])
    slope = ft.vmap(ft.grad(lambda v: d.cdf(v, *shape, LOC, SCALE)))(x)
    np.testing.assert_allclose(slope, d.pdf(x, *shape, LOC, SCALE), rtol=1e-9)
    for complement in ("sf", "logsf"):
        if hasattr(d, complement):
            value = np.asarray(getattr(d, complement)(x, *shape, LOC, SCALE))
            value = np.exp(value) if complement == "logsf" else value
            np.testing.assert_allclose(value + d.cdf(x, *shape, LOC, SCALE), 1.0, rtol=1e-12)
    if hasattr(d, "ppf"):
        q = d.cdf(x, *shape, LOC, SCALE)
        np.testing.assert_allclose(d.ppf(q, *shape, LOC, SCALE), x, rtol=1e-9)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives_in_all_parameters(name):
    d = getattr(stats, name)
    args = [np.array([0.7, 1.2]), *CONTINUOUS[name], LOC, SCALE]
    check_grads(d.logpdf, [np.asarray(a, np.float64) for a in args], 2, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["uniform", "expon", "gamma", "beta", "chi2"])
def test_outside_the_support(name):
    d, shape = getattr(stats, name), CONTINUOUS[name]
    x = np.array([-5.0, -1e-3])
    assert (np.asarray(d.pdf(x, *shape)) == 0).all()
    assert (np.asarray(d.logpdf(x, *shape)) == -np.inf).all()
    gradient = ft.vmap(ft.grad(lambda v: d.pdf(v, *shape)))(x)
    assert np.isfinite(np.asarray(gradient)).all()


def test_discrete():
    k = np.arange(40)
    p = np.asarray(stats.poisson.pmf(k, np.float64(3.5)))
    np.testing.assert_allclose(p, [3.5**n * math.exp(-3.5) / math.factorial(n) for n in range(40)],
                               rtol=1e-10)
    np.testing.assert_allclose(stats.poisson.cdf(k, np.float64(3.5)), np.cumsum(p), rtol=1e-10)
    assert stats.poisson.pmf(np.array([-1.0, 0.5]), 2.0).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(stats.bernoulli.pmf(np.array([0, 1, 2]), 0.3), [0.7, 0.3, 0],
                               rtol=1e-6)
    np.testing.assert_allclose(stats.bernoulli.cdf(np.array([-1, 0, 1]), 0.3), [0, 0.7, 1],
                               rtol=1e-6)
    check_grads(lambda m: stats.poisson.logpmf(k[:4], m), (np.float64(2.0),), 2)


def test_normal_tails():
    x = np.array([-40.0, 40.0], np.float64)
    np.testing.assert_allclose(stats.norm.logsf(x)[::-1], stats.norm.logcdf(x))
    assert np.isfinite(np.asarray(stats.norm.logcdf(x))).all()
    np.testing.assert_allclose(stats.norm.isf(stats.norm.sf(x[:1] / 10)), x[:1] / 10, rtol=1e-6)


def test_multivariate_normal():
    mean, cov, x = matrix(3, seed=1), positive(n=3), matrix(5, 3)
    off = x - mean
    expected = -0.5 * (np.einsum("bi,ij,bj->b", off, np.linalg.inv(cov), off)
                       + np.linalg.slogdet(2 * np.pi * cov)[1])
    d = stats.multivariate_normal
    np.testing.assert_allclose(d.logpdf(x, mean, cov), expected)
    np.testing.assert_allclose(ft.vmap(d.logpdf, (0, None, None))(x, mean, cov), expected)
    np.testing.assert_allclose(d.logpdf(x, mean, np.float64(2.0)),
                               d.logpdf(x, mean, 2.0 * np.eye(3)))
    check_grads(d.logpdf, (x, mean, cov), 2, atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="does not fit"):
        d.logpdf(x, mean, np.eye(2))
