"""Every distribution of functrans.scipy.stats against SciPy, and laws that hold for each.

`data/special.json` holds, of each distribution, values of SciPy 1.17 at four points and quantiles.
"""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.scipy import stats

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "special.json").read_text())["stats"]
CONTINUOUS = [name for name in GOLDEN if "logpdf" in GOLDEN[name]]
DISCRETE = [name for name in GOLDEN if "logpmf" in GOLDEN[name]]
WHOLE = {"binom": (0,), "betabinom": (0,), "hypergeom": (0, 1, 2), "randint": (0, 1),
         "boltzmann": (1,)}


def parameters(name):
    return [np.float64(v) for v in (*GOLDEN[name]["shapes"], *GOLDEN[name]["loc"])]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", GOLDEN)
def test_values_are_those_of_scipy(name):
    family, golden, rest = getattr(stats, name), GOLDEN[name], parameters(name)
    for method in ("logpdf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
        if method in golden:
            got = getattr(family, method)(np.array(golden["x"]), *rest)
            np.testing.assert_allclose(got, golden[method], rtol=1e-9, atol=1e-13, err_msg=method)
    for method in ("ppf", "isf"):
        got = getattr(family, method)(np.array(golden["q"]), *rest)
        np.testing.assert_allclose(got, golden[method], rtol=1e-9, err_msg=method)
    for method in ("mean", "var", "entropy"):
        if method in golden:
            np.testing.assert_allclose(getattr(family, method)(*rest), golden[method], rtol=1e-7)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives_in_every_parameter(name):
    family, golden = getattr(stats, name), GOLDEN[name]
    for method, x in (("logpdf", golden["x"]), ("cdf", golden["x"]), ("ppf", golden["q"])):
        fun = getattr(family, method)
        args = [np.array(x[1:3]), *(np.full(2, v) for v in parameters(name))]
        for i in range(len(args)):
            unit = [np.full(2, float(i == j)) for j in range(len(args))]
            slope = ft.jvp(fun, tuple(args), tuple(unit))[1]
            high, low = (np.asarray(fun(*(a + h * u for a, u in zip(args, unit, strict=True))))
                         for h in (1e-5, -1e-5))
            np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-5, atol=1e-7,
                                       err_msg=f"{method} in argument {i}")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", DISCRETE)
def test_derivatives_of_probabilities(name):
    fun, rest = getattr(stats, name).logpmf, parameters(name)
    args = [np.array(GOLDEN[name]["x"][1:3]), *(np.full(2, v) for v in rest)]
    for i in range(1, len(args) - 1):
        if i - 1 in WHOLE.get(name, ()):
            continue
        unit = [np.full(2, float(i == j)) for j in range(len(args))]
        slope = ft.jvp(fun, tuple(args), tuple(unit))[1]
        high, low = (np.asarray(fun(*(a + h * u for a, u in zip(args, unit, strict=True))))
                     for h in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (high - low) / 2e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", GOLDEN)
def test_random_numbers_have_the_distribution(name):
    family, golden = getattr(stats, name), GOLDEN[name]
    rest = [np.float32(v) for v in parameters(name)]
    x = family.rvs(ft.random.key(3), *rest, shape=(2000,))
    assert x.shape == (2000,) and x.dtype == (np.int32 if name in DISCRETE else np.float32)
    below = np.mean(np.asarray(x)[:, None] <= np.array(golden["x"]) * (1 + 1e-6), 0)
    np.testing.assert_allclose(below, golden["cdf"], atol=0.05)
    again = family.rvs(ft.random.key(3), *rest, shape=(2000,))
    assert (np.asarray(x) == np.asarray(again)).all()


@pytest.mark.one_in(30)
@pytest.mark.parametrize("name", GOLDEN)
def test_compiled_and_mapped(name):
    family, golden, rest = getattr(stats, name), GOLDEN[name], parameters(name)
    density = getattr(family, "logpdf" if name in CONTINUOUS else "logpmf")
    x = np.array(golden["x"])

    def both(v):
        return density(v, *rest), family.cdf(v, *rest)

    for got, expected in zip(ft.jit(ft.vmap(both))(x), both(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", GOLDEN)
def test_ends_and_impossible_parameters(name):
    family, rest = getattr(stats, name), parameters(name)
    scaled = [*rest[:-1], -rest[-1]] if name in CONTINUOUS else None
    x = np.array([-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(family.cdf(x, *rest), [0.0, 1.0, np.nan])
    np.testing.assert_array_equal(family.sf(x, *rest), [1.0, 0.0, np.nan])
    assert np.isnan(np.asarray(family.ppf(np.array([-0.1, 1.1, np.nan]), *rest))).all()
    if scaled:
        assert np.isnan(float(family.logpdf(1.0, *scaled)))
    assert family.cdf(np.zeros((0, 2)), *rest).shape == (0, 2)
    assert importlib.import_module(f"functrans.scipy.stats.{name}") is family


def test_arguments_are_named_and_broadcast():
    norm = stats.norm
    assert norm.logpdf(np.zeros((3, 1)), loc=np.zeros(2), scale=2.0).shape == (3, 2)
    assert norm.rvs(ft.random.key(0), loc=np.zeros(4)).shape == (4,)
    assert stats.gamma.rvs(ft.random.key(0), 2.0, shape=3).shape == (3,)
    with pytest.raises(TypeError, match="a"):
        stats.gamma.logpdf(1.0)
    slope = ft.grad(lambda a: ft.numpy.mean(stats.gamma.rvs(ft.random.key(0), a, shape=(4000,))))
    assert float(slope(3.0)) == pytest.approx(1.0, abs=0.1)  # of the mean, which is a


def test_vectors():
    x, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 3.0])
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), 1.695210995269564, rtol=1e-10)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha),
                               stats.dirichlet.logpdf(x, alpha))
    assert float(stats.dirichlet.pdf(np.array([0.2, 0.3, 0.6]), alpha)) == 0
    counts, p = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(stats.multinomial.pmf(counts, 6, p), 60 * 0.2 * 0.09 * 0.125)
    assert float(stats.multinomial.pmf(counts, 7, p)) == 0
    drawn = stats.multinomial.rvs(ft.random.key(0), 6, p, (5,))
    assert (np.asarray(drawn).sum(-1) == 6).all()
    with pytest.raises(ValueError, match="does not fit"):
        stats.dirichlet.logpdf(np.zeros(5), alpha)


def test_statistics_of_samples():
    x = np.array([[1.0, 4.0, 2.0, 2.0, 7.5], [3.0, 1.0, 2.0, 5.0, 4.0]])
    np.testing.assert_allclose(stats.skew(x, 1), [0.93268779456, 0.0], atol=1e-10)
    np.testing.assert_allclose(stats.kurtosis(x, 1), [-0.597557919358, -1.3])
    np.testing.assert_allclose(stats.sem(x, 1), [1.157583690279, 0.707106781187])
    assert stats.rankdata(x[0]).tolist() == [1.0, 4.0, 2.5, 2.5, 5.0]
    for method, ranks in (("min", [1, 4, 2, 2, 5]), ("max", [1, 4, 3, 3, 5]),
                          ("dense", [1, 3, 2, 2, 4]), ("ordinal", [1, 4, 2, 3, 5])):
        assert stats.rankdata(x, method, axis=1)[0].tolist() == ranks
    assert np.isnan(np.asarray(stats.rankdata(np.array([1.0, np.nan])))).all()
    found = stats.mode(x, 1)
    assert found.mode.tolist() == [2.0, 1.0] and found.count.tolist() == [2, 1]
    r = stats.pearsonr(x[0], x[1])
    np.testing.assert_allclose([r.statistic, r.pvalue], [0.091627083267, 0.883500221863])
    r = stats.spearmanr(x[0], x[1])
    np.testing.assert_allclose([r.statistic, r.pvalue], [-0.051298917604, 0.934712848108])
    np.testing.assert_allclose(stats.entropy(x, axis=1), [1.383388331162, 1.489750318851])
    np.testing.assert_allclose(stats.iqr(x, 1), [2.0, 2.0])
    with pytest.raises(ValueError, match="method"):
        stats.rankdata(x, "best")


def test_density_estimate():
    data, at = np.array([-1.0, 0.2, 0.9, 2.5]), np.array([0.0, 1.5])
    for method, expected in (("scott", [0.220257766965, 0.189928703783]),
                             ("silverman", [0.215007557328, 0.188491932798])):
        kde = stats.gaussian_kde(data, method)
        np.testing.assert_allclose(kde(at), expected, rtol=1e-9)
    total = np.trapezoid(np.asarray(kde(np.linspace(-9, 11, 800))), dx=20 / 799)
    assert total == pytest.approx(1.0, abs=1e-6)
    assert float(kde.integrate_box_1d(-np.inf, np.inf)) == pytest.approx(1.0)
    assert kde.resample(ft.random.key(0), (7,)).shape == (1, 7)
    slope = ft.grad(lambda d: stats.gaussian_kde(d).logpdf(at)[0])(data)
    assert np.isfinite(np.asarray(slope)).all()
