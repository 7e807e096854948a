"""Tests of hypotheses by distributions, scales, counts and comparisons, beside scipy.stats."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import stats
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(11)
A, B, C = rng.normal(size=9), rng.normal(size=7) * 2, rng.normal(size=8)
SMALL = [(A, B), (np.round(A * 2), np.round(B * 2)), (A, B[:6])]
SIDES = ("two-sided", "less", "greater")


@pytest.fixture(autouse=True)
def in_float64():
    with ft.default_dtypes("float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy's deprecations and sizes
        yield


def pair(found):
    """The statistic and the p-value of a result of either."""
    return tuple(np.asarray(v, float) for v in (found.statistic, found.pvalue))


def both(name, *args, rtol=1e-9, atol=1e-10, **options):
    found, known = (getattr(m, name)(*args, **options) for m in (stats, scipy.stats))
    same(pair(found), pair(known), rtol, atol, (name, options))
    return found, known


@pytest.mark.parametrize("side", SIDES)
def test_scales(side):
    for x, y in SMALL:
        both("ansari", x, y, alternative=side)
        both("mood", x, y, alternative=side)
    both("bws_test", A[:5], B[:4], alternative=side)


def test_scales_of_many_samples():
    for center in ("median", "mean", "trimmed"):
        both("fligner", A, B, C, center=center, proportiontocut=0.2)
    same(np.asarray(stats.obrientransform(A, A[::-1] ** 2)),
         scipy.stats.obrientransform(A, A[::-1] ** 2))
    assert [len(t) for t in stats.obrientransform(A, B)] == [9, 7]
    check_grads(lambda x: stats.obrientransform(x, x**2), (A,), 1)
    for axis, keep in ((0, False), (1, True)):
        table = rng.normal(size=(12, 12))
        both("fligner", table, table[::-1] * 2, axis=axis, keepdims=keep)
        both("ansari", table, table * 2 + 0.01, axis=axis, keepdims=keep)
    holes = np.where(rng.random((14, 2)) < 0.2, np.nan, rng.normal(size=(14, 2)))
    for name in ("ansari", "mood", "fligner", "cramervonmises_2samp", "epps_singleton_2samp"):
        both(name, holes, holes[::-1] * 2, nan_policy="omit")


def test_distribution_functions():
    for x in (A, A * 3, rng.normal(size=200), A + 100):
        same(pair(stats.cramervonmises(x, stats.norm.cdf)),
             pair(scipy.stats.cramervonmises(x, "norm")), 1e-9, 1e-7)
    for x, y in (*SMALL, (rng.normal(size=20), rng.normal(size=20))):
        for method in ("exact", "asymptotic"):
            both("cramervonmises_2samp", x, y, method, atol=1e-7)
    both("epps_singleton_2samp", A, B, rtol=1e-8)
    both("epps_singleton_2samp", rng.normal(size=30), B, t=(0.3, 0.5, 0.9), rtol=1e-6)
    # the p-value's derivative along one direction: a series of Bessel functions, slow to run often
    def tail(h):
        return stats.cramervonmises(A + h, stats.norm.cdf).pvalue

    same(ft.grad(tail)(0.1), (tail(0.1 + 1e-5) - tail(0.1 - 1e-5)) / 2e-5, 1e-5)
    with pytest.raises(ArgumentError, match=r"ft.scipy.stats.norm.cdf"):
        stats.cramervonmises(A, "norm")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dist", ["norm", "expon", "logistic", "gumbel_l", "gumbel_r",
                                  "weibull_min"])
def test_anderson(dist):
    x = scipy.stats.weibull_min.ppf((np.arange(50) + 0.5) / 50, 3) * 2 + 1 \
        if dist == "weibull_min" else np.abs(A)
    found, known = stats.anderson(x, dist), scipy.stats.anderson(x, dist)
    same(np.asarray(found.statistic), known.statistic, 1e-7)
    same(np.asarray(found.critical_values), known.critical_values)
    same(np.asarray(found.significance_level), np.asarray(known.significance_level, float))
    same(np.asarray(found.fit_result.params), np.asarray(known.fit_result.params), 1e-6)
    both("anderson", x, dist, method="interpolate", rtol=1e-5)
    if dist == "gumbel_r":
        same(ft.jit(lambda x: stats.anderson(x, dist).statistic)(x), found.statistic, 1e-8)
        check_grads(lambda x: stats.anderson(x, dist).statistic, (x,), 1, modes=["rev"],
                    rtol=1e-3, atol=1e-3)
        drawn = stats.anderson(x, dist, method=stats.MonteCarloMethod(200)).pvalue
        assert abs(drawn - scipy.stats.anderson(
            x, dist, method=scipy.stats.MonteCarloMethod(200)).pvalue) < 0.15


def test_anderson_of_samples():
    for samples in ([A, B, C], [np.round(v * 2) for v in (A, B, C)]):
        for midrank in (True, False):
            found, known = (m.anderson_ksamp(samples, midrank) for m in (stats, scipy.stats))
            same(tuple(np.asarray(v, float) for v in found[:2]),
                 tuple(np.asarray(v, float) for v in (known.statistic, known.critical_values)))
            same(np.asarray(found.pvalue), known.pvalue)
    both("anderson_ksamp", [A, B], variant="continuous")
    exact = stats.anderson_ksamp([A[:4], B[:4]], variant="midrank",
                                 method=stats.PermutationMethod())
    same(exact.pvalue, scipy.stats.anderson_ksamp(
        [A[:4], B[:4]], variant="midrank", method=scipy.stats.PermutationMethod()).pvalue)


def test_goodness_of_fit():
    for statistic in ("ad", "ks", "cvm", "filliben"):
        options = {"statistic": statistic, "n_mc_samples": 99}
        found = stats.goodness_of_fit(stats.norm, A, **options)
        known = scipy.stats.goodness_of_fit(scipy.stats.norm, A, rng=0, **options)
        same(np.asarray(found.statistic), known.statistic)
        assert abs(found.pvalue - known.pvalue) < 0.2
    skewed = stats.goodness_of_fit(stats.norm, rng.gamma(0.5, size=60), n_mc_samples=99)
    assert skewed.pvalue == 0.01
    known = {"loc": 0.0}
    shape = stats.goodness_of_fit(stats.gamma, np.abs(A), known_params=known, n_mc_samples=19)
    fit = scipy.stats.gamma.fit(np.abs(A), floc=0)
    same(np.asarray(shape.fit_result.params), np.asarray(fit), 1e-4)
    with pytest.raises(ArgumentError, match="'b' is no parameter"):
        stats.goodness_of_fit(stats.gamma, A, known_params={"b": 1})


def test_counts():
    for table in ([[7, 12], [8, 3]], [[0, 3], [5, 2]]):
        for side in SIDES:
            for pooled in (True, False):
                both("barnard_exact", table, side, pooled, atol=1e-6)
            both("boschloo_exact", table, side, atol=1e-6)
    for side in SIDES:
        both("poisson_means_test", 4, 100, 9, 120, diff=0.01, alternative=side, atol=1e-8)
    data = rng.normal(size=(6, 5))
    for method in ("auto", "exact", "asymptotic"):
        for table in (data, np.round(data)):
            both("page_trend_test", table, predicted_ranks=[2, 1, 3, 5, 4], method=method)
    assert np.isnan(stats.barnard_exact([[0, 3], [0, 4]]).statistic)
    with pytest.raises(ArgumentError, match="table is traced"):
        ft.jit(lambda t: stats.barnard_exact(t).pvalue)(np.array([[7, 12], [8, 3]]))
    with pytest.raises(ArgumentError, match="counts, which are whole"):
        stats.boschloo_exact([[0.5, 1], [2, 3]])


def test_many_means():
    for samples in ([A, B, C], [A[:2], B[:2]]):
        for equal in (False, True):
            found, known = both("tukey_hsd", *samples, equal_var=equal, rtol=1e-7)
    same(tuple(found.confidence_interval(0.9)), tuple(known.confidence_interval(0.9)), 1e-6)
    for side in SIDES:
        options = {"control": C, "alternative": side}
        found = stats.dunnett(A, B, **options)
        known = scipy.stats.dunnett(A, B, rng=0, **options)
        same(np.asarray(found.statistic), known.statistic)
        same(np.asarray(found.pvalue), known.pvalue, 2e-3, 2e-3)  # SciPy's are draws
        same(tuple(np.asarray(v) for v in found.confidence_interval(0.9)),
             tuple(map(np.asarray, known.confidence_interval(0.9))), 2e-2, 2e-2)
    # of one sample the test is Student's
    same(stats.dunnett(A, control=C).pvalue[0], scipy.stats.ttest_ind(A, C).pvalue, 1e-9)
    check_grads(lambda x: stats.dunnett(x, B, control=C).pvalue, (A,), 1, modes=["rev"])


def test_bayes():
    for x in (A, rng.normal(size=1200)):
        for found, known in zip(stats.bayes_mvs(x, 0.8), scipy.stats.bayes_mvs(x, 0.8)):
            same(found.statistic, known.statistic)
            same(tuple(map(np.asarray, found.minmax)), tuple(map(np.asarray, known.minmax)), 1e-7)
        for found, known in zip(stats.mvsdist(x), scipy.stats.mvsdist(x)):
            for method, args in (("pdf", (1.1,)), ("cdf", (1.1,)), ("std", ()), ("ppf", (0.3,))):
                same(np.asarray(getattr(found, method)(*args)),
                     np.asarray(getattr(known, method)(*args)), 1e-7)
    draws = ft.jit(lambda x: stats.mvsdist(x)[0].rvs(ft.random.key(0), (4,)))(A)
    assert draws.shape == (4,)


class Pen:
    """What was drawn."""

    def __init__(self):
        self.calls = []

    def plot(self, *args):
        self.calls.append("plot")

    def text(self, *args):
        self.calls.append("text")

    def set_title(self, text):
        self.calls.append(text)


def test_probability_plots():
    ours, theirs = Pen(), SimpleNamespace(plot=lambda *a: None)
    found = stats.probplot(A, plot=ours, rvalue=True)
    known = scipy.stats.probplot(A, plot=None)
    assert ours.calls == ["plot", "plot", "Probability plot", "text"] and theirs
    for u, v in zip(found, known):
        same(tuple(map(np.asarray, u)), tuple(map(np.asarray, v)))
    same(tuple(map(np.asarray, stats.probplot(A, (5,), stats.t)[1])),
         tuple(map(np.asarray, scipy.stats.probplot(A, (5,), "t")[1])), 1e-8)
    same(np.asarray(stats.ppcc_max(A)), scipy.stats.ppcc_max(A), 1e-5, 1e-5)
    for name in ("ppcc_plot", "boxcox_normplot", "yeojohnson_normplot"):
        found, known = (getattr(m, name)(np.abs(A), -1, 1, N=5) for m in (stats, scipy.stats))
        same(tuple(map(np.asarray, found)), known)
    with pytest.raises(ArgumentError, match=r"dist=ft.scipy.stats.gamma"):
        stats.probplot(A, dist="gamma")


def test_samples_that_are_too_small():
    for call in (lambda: stats.mood([1.0], [2.0]), lambda: stats.anderson([1.0]),
                 lambda: stats.cramervonmises([0.5], stats.norm.cdf),
                 lambda: stats.epps_singleton_2samp(A, B[:4]), lambda: stats.tukey_hsd(A, [[1.0]]),
                 lambda: stats.mvsdist([1.0]), lambda: stats.page_trend_test([[1, 2, 3]])):
        with pytest.raises(ShapeError):
            call()
