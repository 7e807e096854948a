"""Estimates of parameters beside SciPy's, moments of all kinds, and frozen distributions."""

import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
from functrans.scipy import stats

RNG = np.random.default_rng(3)
F = np.float64


def likelihood(name, data, params):
    return -np.sum(getattr(theirs, name).logpdf(data, *map(float, params)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name, args, kwds", [
    ("norm", (), {}), ("expon", (), {"floc": 0}), ("laplace", (), {}), ("uniform", (), {}),
    ("gamma", (2.0,), {"floc": 0}), ("weibull_min", (1.5,), {"floc": 0}), ("gumbel_r", (), {}),
    ("lognorm", (0.5,), {"floc": 0}), ("t", (5.0,), {"fdf": 5.0})])
def test_fits_are_as_likely_as_those_of_scipy(name, args, kwds):
    data = getattr(theirs, name).rvs(*args, loc=0.0, scale=2.0, size=80, random_state=1)
    ours = getattr(stats, name).fit(data, **kwds)
    golden = getattr(theirs, name).fit(data, **kwds)
    assert likelihood(name, data, ours) <= likelihood(name, data, golden) + 1e-6
    np.testing.assert_allclose(ours, golden, rtol=2e-3, atol=1e-3)


@pytest.mark.one_in(1)
@pytest.mark.parametrize("by", ["place", "moments"])
def test_moments_and_starts(by):
    data = theirs.gamma.rvs(3.0, size=200, random_state=2)
    if by == "moments":
        ours = stats.gamma.fit(data, method="MM", floc=0)
        np.testing.assert_allclose(ours, theirs.gamma.fit(data, method="MM", floc=0), rtol=1e-4)
        return
    np.testing.assert_allclose(stats.norm.fit_loc_scale(data), theirs.norm.fit_loc_scale(data))
    np.testing.assert_allclose(stats.gamma.nnlf((2.0, 0.0, 1.5), data),
                               theirs.gamma.nnlf((2.0, 0.0, 1.5), data))
    with pytest.raises(stats.FitError, match="fixed"):
        stats.norm.fit(data, floc=0, fscale=1)
    with pytest.raises(ValueError, match="no argument"):
        stats.norm.fit(data, fshape=1)


def test_censored_data():
    x = theirs.weibull_min.rvs(1.5, scale=2.0, size=60, random_state=5)
    late = x > 2.0
    ours = stats.CensoredData.right_censored(np.minimum(x, 2.0), late)
    golden = theirs.CensoredData.right_censored(np.minimum(x, 2.0), late)
    np.testing.assert_allclose(stats.weibull_min.fit(ours, floc=0),
                               theirs.weibull_min.fit(golden, floc=0), rtol=1e-3)
    assert len(ours) == 60 and ours.num_censored() == int(late.sum())
    pairs = stats.CensoredData.interval_censored([1.0, -np.inf, 2.0], [1.0, 3.0, 4.0])
    np.testing.assert_allclose(
        stats.norm.nnlf((F(0.0), F(1.0)), np.array([1.0]))
        - theirs.norm.logcdf(3) - np.log(theirs.norm.cdf(4) - theirs.norm.cdf(2)),
        stats.fitting.negative_likelihood(stats.norm, (F(0.0), F(1.0)), pairs))
    with pytest.raises(ValueError, match="pairs"):
        stats.CensoredData(interval=[1.0, 2.0])


def test_fits_within_bounds():
    data = theirs.nbinom.rvs(5, 0.4, size=100, random_state=4)
    bounds = {"n": (1, 30), "p": (0, 1)}
    ours, golden = stats.fit(stats.nbinom, data, bounds), theirs.fit(theirs.nbinom, data, bounds)
    # SciPy's search is by chance: it finds 6, or 7, which is less likely
    assert ours.success and float(ours.params.n) == 6.0
    assert float(ours.params.p) == pytest.approx(6 / (6 + data.mean()), abs=1e-5)
    assert float(ours.nllf()) <= golden.nllf() + 1e-9
    x = theirs.norm.rvs(3, 2, size=50, random_state=1)
    box = {"loc": (-10, 10), "scale": (0.1, 10)}
    for method in ("mle", "mse"):
        mine = stats.fit(stats.norm, x, box, method=method).params
        np.testing.assert_allclose(mine, theirs.fit(theirs.norm, x, box, method=method).params,
                                   rtol=2e-3)
    with pytest.raises(ValueError, match="bounds of n"):
        stats.fit(stats.nbinom, data, {"p": (0, 1)})


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name, shapes", [
    ("gamma", (2.5,)), ("norm", ()), ("beta", (2.0, 3.0)), ("triang", (0.3,)), ("levy", ()),
    ("skewnorm", (3.0,)), ("t", (4.5,)), ("poisson", (3.7,)), ("binom", (12, 0.3)),
    ("zipf", (6.5,)), ("vonmises", (2.0,)), ("skellam", (2.0, 3.0)), ("pareto", (4.5,)),
    ("trapezoid", (0.2, 0.7))])
def test_moments_of_all_orders(name, shapes):
    ours, golden = getattr(stats, name), getattr(theirs, name)
    place = () if name == "vonmises" else (F(0.0), F(1.7)) if ours.has_scale else (F(2.0),)
    args = (*map(F, shapes), *place)
    want = golden.stats(*args, moments="mvsk")
    np.testing.assert_allclose(ours.stats(*args, moments="mvsk"), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ours.interval(F(0.9), *args), golden.interval(0.9, *args), rtol=1e-9)
    np.testing.assert_allclose(ours.support(*args), golden.support(*args))
    if name not in ("levy", "pareto", "vonmises"):
        np.testing.assert_allclose(ours.moment(3, *args), golden.moment(3, *args), rtol=1e-6,
                                   atol=1e-8)
    with np.errstate(all="ignore"):
        want = golden.entropy(*args)
    np.testing.assert_allclose(ours.entropy(*args), want, rtol=1e-6)


def test_expectations_and_frozen_distributions():
    x = stats.gamma(F(2.5), scale=F(2.0))
    golden = theirs.gamma(2.5, scale=2.0)
    np.testing.assert_allclose(x.expect(lambda v: v**0.5), golden.expect(lambda v: v**0.5))
    for given in (False, True):
        np.testing.assert_allclose(
            x.expect(lambda v: v, lb=1.0, ub=4.0, conditional=given),
            golden.expect(lambda v: v, lb=1.0, ub=4.0, conditional=given), rtol=1e-8)
    counts = stats.poisson.expect(lambda k: k * k, (F(3.0),), lb=2, ub=7, conditional=True)
    np.testing.assert_allclose(counts, theirs.poisson.expect(lambda k: k * k, (3.0,), lb=2, ub=7,
                                                             conditional=True), rtol=1e-8)
    np.testing.assert_allclose(ft.jit(lambda d, at: d.sf(at))(x, F(3.0)), golden.sf(3.0))
    slope = ft.grad(lambda a: stats.gamma.expect(lambda v: v * v, (a,)))(F(2.5))
    np.testing.assert_allclose(slope, 2 * 2.5 + 1, rtol=1e-8)
    assert repr(stats.norm(0, 1)) == "norm(0, 1)"
    with pytest.raises(TypeError, match="a"):
        stats.gamma()
