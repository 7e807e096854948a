"""Order statistics, dependence, bins, survival, tables of counts and more, beside scipy.stats."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
import scipy.stats.contingency

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import stats
from functrans.scipy.stats import contingency
from functrans.scipy.stats.orders import _METHODS, _WEIGHTED
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(5)
X = rng.normal(size=(11, 3))
HOLES = np.where(rng.random(X.shape) < 0.2, np.nan, X)
WEIGHTS = rng.integers(0, 4, X.shape) + 0.0
A, B = rng.normal(size=12), rng.normal(size=12)
SIDES = ("two-sided", "less", "greater")


@pytest.fixture(autouse=True)
def in_float64():
    with ft.default_dtypes("float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def pair(found):
    return tuple(np.asarray(v, float) for v in (found.statistic, found.pvalue))


def equal(found, known, rtol=1e-9, atol=1e-10, what=""):
    same(tuple(np.asarray(v, float) for v in found), tuple(np.asarray(v, float) for v in known),
         rtol, atol, what)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("method", _METHODS)
def test_quantiles(method):
    for p in (0.3, 0.0, 1.0, np.array([0.1, 0.9, 1.5])[:, None]):
        cases = [(X, {}), (X, {"keepdims": True}), (HOLES, {"nan_policy": "omit"}), (HOLES, {})]
        if method in _WEIGHTED:
            cases += [(X, {"weights": WEIGHTS}), (HOLES, {"weights": WEIGHTS,
                                                          "nan_policy": "omit"})]
        for x, options in cases:
            found, known = (m.quantile(x, p, method=method, **options)
                            for m in (stats, scipy.stats))
            equal([found], [known], what=(method, p, options))
    # masks: the same program for any number of elements that are left
    def omitting(x):
        return stats.quantile(x, 0.4, method=method, nan_policy="omit")

    equal([ft.jit(omitting)(HOLES)], [omitting(HOLES)])
    equal([ft.vmap(omitting)(HOLES.T)], [omitting(HOLES)])


def test_other_order_statistics():
    for alpha in (0.0, 0.1, 0.5, 0.9, 1.0):
        equal([stats.expectile(X, alpha), stats.expectile(X, alpha, weights=WEIGHTS)],
              [scipy.stats.expectile(X, alpha), scipy.stats.expectile(
                  X, alpha, weights=WEIGHTS)], what=alpha)
    check_grads(lambda x: stats.expectile(x, 0.8), (A,), 1)
    for options in ({}, {"axis": 1}, {"order": 3}, {"standardize": False}, {"keepdims": True},
                    {"order": [2, 5]}):
        equal([stats.lmoment(X, **options)], [scipy.stats.lmoment(X, **options)], what=options)
    equal([stats.lmoment(HOLES, nan_policy="omit")], [scipy.stats.lmoment(
        HOLES, nan_policy="omit")])
    check_grads(stats.lmoment, (A,), 1)
    for side in SIDES:
        for q in (-3.0, 0.0, A[3], 3.0):
            found, known = (m.quantile_test(A, q=q, p=0.4, alternative=side)
                            for m in (stats, scipy.stats))
            equal([found.statistic, found.statistic_type, found.pvalue,
                   *found.confidence_interval(0.8)],
                  [known.statistic, known.statistic_type, known.pvalue,
                   *known.confidence_interval(0.8)], what=(side, q))


def test_trimming():
    y = np.append(X, [40, -60.0])
    for bound in (4.0, 1.5):
        equal(stats.sigmaclip(y, bound, bound), scipy.stats.sigmaclip(y, bound, bound))
    padded = ft.jit(lambda v: stats.sigmaclip(v, 2.0, 2.0, size=40).clipped)(y)
    left = scipy.stats.sigmaclip(y, 2.0, 2.0).clipped
    equal([padded[:len(left)]], [left])
    assert np.isnan(padded[len(left):]).all()
    with pytest.raises(ArgumentError, match=r"size=35"):
        ft.jit(stats.sigmaclip)(y)
    equal([stats.trimboth(X, 0.2), stats.trim1(X, 0.3, "left", 1)],
          [np.sort(scipy.stats.trimboth(X, 0.2), 0),
           np.sort(scipy.stats.trim1(X, 0.3, "left", 1), 1)])
    ranks = scipy.stats.rankdata(np.round(X))
    equal([stats.tiecorrect(ranks)], [scipy.stats.tiecorrect(ranks)])
    with pytest.raises(ArgumentError, match="nothing would be left"):
        stats.trimboth(A, 0.5)
    cube = np.arange(60.0).reshape(4, 5, 3) + 1
    for axis in (0, 1):
        known = scipy.stats.directional_stats(cube, axis=axis)
        equal(stats.directional_stats(cube, axis=axis), (known.mean_direction,
                                                         known.mean_resultant_length))


def test_dependence():
    for x, y in ((A, B), (np.round(A * 2), np.round(B * 2))):
        for smooth in (True, False):
            equal(pair(stats.chatterjeexi(x, y, y_continuous=smooth)),
                  pair(scipy.stats.chatterjeexi(x, y, y_continuous=smooth)))
        for rank in (True, None, False, np.arange(12)[::-1].copy()):
            for additive in (True, False):
                equal([stats.weightedtau(x, y, rank, additive=additive).statistic],
                      [scipy.stats.weightedtau(x, y, rank, additive=additive).statistic])
        for side in SIDES:
            equal(pair(stats.somersd(x, y, side)), pair(scipy.stats.somersd(x, y, side)))
            equal(pair(stats.spearmanrho(x, y, alternative=side)),
                  pair(scipy.stats.spearmanrho(x, y, alternative=side)))
    table = [[27, 25, 14, 7, 0], [7, 14, 18, 35, 12]]
    equal(pair(stats.somersd(table)), pair(scipy.stats.somersd(np.array(table))))
    for y in (A**2, np.round(A * 2)):
        found, known = (m.multiscale_graphcorr(A, y, reps=9) for m in (stats, scipy.stats))
        equal([found.statistic, found.mgc_dict["mgc_map"], found.mgc_dict["opt_scale"]],
              [known.statistic, known.mgc_dict["mgc_map"], known.mgc_dict["opt_scale"]])
    assert stats.multiscale_graphcorr(A, A**2, reps=9).pvalue == 0.1
    with pytest.raises(ShapeError, match="five points"):
        stats.multiscale_graphcorr(A[:4], B[:4])


def test_resampled_pvalues():
    exact = stats.PermutationMethod()
    for name in ("pearsonr", "spearmanrho", "ttest_ind", "chatterjeexi"):
        x, y = A[:5], B[:5]
        equal([getattr(stats, name)(x, y, method=exact).pvalue], [getattr(scipy.stats, name)(
            x, y, method=scipy.stats.PermutationMethod()).pvalue], what=name)
    drawn = stats.MonteCarloMethod(n_resamples=400, rng=3)
    for name in ("pearsonr", "ttest_ind"):
        found = getattr(stats, name)(A, B, method=drawn)
        assert abs(found.pvalue - getattr(stats, name)(A, B).pvalue) < 0.1
        assert found.pvalue == getattr(stats, name)(A, B, method=drawn).pvalue
    table = [[8, 2, 4], [1, 5, 3]]
    found = stats.chi2_contingency(table, method=stats.PermutationMethod(2000))
    known = scipy.stats.chi2_contingency(
        table, correction=False, method=scipy.stats.PermutationMethod(2000))
    assert abs(found.pvalue - known.pvalue) < 0.03
    table = [[8, 2], [1, 5]]
    assert abs(stats.fisher_exact(table, method=stats.PermutationMethod(4000)).pvalue
               - stats.fisher_exact(table).pvalue) < 0.02
    with pytest.raises(ArgumentError, match=r"method=stats.PermutationMethod\(\)"):
        stats.pearsonr(A, B, method="exact")


def test_power():
    def shifted(key, shape):
        return ft.random.normal(key, shape) + 0.5

    found = stats.power(lambda x, axis: stats.ttest_1samp(x, 0.0, axis=axis), shifted,
                        np.array([10, 20]), significance=[0.05, 0.01], n_resamples=2000)
    # the share is a probability of Student's variable that is not central
    df, root = np.array([9.0, 19]), np.sqrt([10.0, 20])
    end = scipy.stats.t.isf(0.025, df)
    known = scipy.stats.nct.sf(end, df, 0.5 * root) + scipy.stats.nct.cdf(-end, df, 0.5 * root)
    np.testing.assert_allclose(found.power[0], known, atol=0.04)
    assert found.power.shape == (2, 2) and found.pvalues.shape == (2, 2000)


def test_bins():
    x, y, v = rng.random(50), rng.random(50), rng.normal(size=(2, 50))
    for statistic in ("mean", "std", "sum", "count", "min", "max", "median", np.ptp):
        for args, name in (((x, y, v, statistic, [3, 4], [[0, 1], [0.1, 0.8]]),
                            "binned_statistic_2d"), ((x, v, statistic, [0, 0.2, 0.9]),
                                                     "binned_statistic")):
            equal(getattr(stats, name)(*args), getattr(scipy.stats, name)(*args), what=statistic)
        found, known = (m.binned_statistic_dd(np.stack([x, y, x * y], 1), v[0], statistic, 2,
                                              expand_binnumbers=True) for m in (stats, scipy.stats))
        equal([found.statistic, found.binnumber], [known.statistic, known.binnumber])
    again = stats.binned_statistic_dd([x, y], v[0], bins=3)
    equal([stats.binned_statistic_dd([x, y], v[1], binned_statistic_result=again, bins=3)[0]],
          [scipy.stats.binned_statistic_2d(x, y, v[1], bins=3)[0]])
    check_grads(lambda v: jnp.nan_to_num(stats.binned_statistic_2d(x, y, v, "std", 2)[0]),
                (v[0],), 1, modes=["rev"])
    with pytest.raises(ShapeError, match="a value for each point"):
        stats.binned_statistic_2d(x, y, v[:, 1:])


def test_survival():
    def censored(values, bounds):
        none = np.zeros(0)
        return SimpleNamespace(uncensored=values, right=bounds, left=none,
                               interval=none.reshape(0, 2))

    x, y = np.round(A * 3), np.round(B * 3)
    samples = (x, x), (censored(x, y[:5]), scipy.stats.CensoredData(x, right=y[:5]))
    for ours, theirs in samples:
        for kind in ("cdf", "sf"):
            found, known = (getattr(m.ecdf(v), kind) for m, v in (
                (stats, ours), (scipy.stats, theirs)))
            at = np.linspace(-9, 9, 50)
            equal([found.quantiles, found.probabilities, found.evaluate(at)],
                  [known.quantiles, known.probabilities, known.evaluate(at)])
            for method in ("linear", "log-log"):
                equal([e.probabilities for e in found.confidence_interval(0.9, method=method)],
                      [e.probabilities for e in known.confidence_interval(0.9, method=method)])
    for side in SIDES:
        equal(pair(stats.logrank(samples[1][0], B * 4, side)),
              pair(scipy.stats.logrank(samples[1][1], B * 4, side)))
    jitted = ft.jit(lambda v: stats.ecdf(v, size=12).cdf.evaluate(1.0))(x)
    equal([jitted], [scipy.stats.ecdf(x).cdf.evaluate(1.0)])


def test_sensitivity_and_transport():
    def ishigami(x, m):
        return m.sin(x[0]) + 7 * m.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * m.sin(x[0])

    angle = SimpleNamespace(ppf=lambda q: np.pi * (2 * q - 1))
    found = stats.sobol_indices(func=lambda x: ishigami(x, jnp), n=1024, dists=[angle] * 3)
    np.testing.assert_allclose(found.first_order, [0.3139, 0.4424, 0], atol=0.04)
    np.testing.assert_allclose(found.total_order, [0.5576, 0.4424, 0.2437], atol=0.04)
    values = {k: rng.normal(size=s) for k, s in (("f_A", (2, 8)), ("f_B", (2, 8)),
                                                 ("f_AB", (3, 2, 8)))}
    known = scipy.stats.sobol_indices(func=values, n=8)
    found = stats.sobol_indices(func=values, n=8)
    equal([found.first_order, found.total_order], [known.first_order, known.total_order])
    interval = found.bootstrap(n_resamples=20).first_order.confidence_interval
    assert interval.low.shape == (2, 3) and (interval.low <= interval.high).all()
    u, w = rng.random((5, 2)), rng.random((7, 2))
    for weights in ((), (np.arange(5) + 1, np.arange(7))):
        equal([stats.wasserstein_distance_nd(u, w, *weights)],
              [scipy.stats.wasserstein_distance_nd(u, w, *weights)], 1e-7)
    equal([stats.wasserstein_distance_nd(u, w[:5])], [scipy.stats.wasserstein_distance_nd(
        u, w[:5])])
    check_grads(lambda u: stats.wasserstein_distance_nd(u, w[:5]), (u,), 1, modes=["rev"])


def test_contingency():
    table = rng.integers(1, 20, (3, 4))
    for method in ("cramer", "tschuprow", "pearson"):
        equal([contingency.association(table, method)],
              [scipy.stats.contingency.association(table, method)])
    equal(contingency.margins(table), scipy.stats.contingency.margins(table))
    equal([contingency.expected_freq(table)], [scipy.stats.contingency.expected_freq(table)])
    for cells in ([[7, 15], [58, 472]], [[3, 0], [2, 5]], [[0, 3], [2, 5]], [[0, 0], [2, 5]]):
        for kind in ("conditional", "sample"):
            found, known = (m.odds_ratio(cells, kind=kind)
                            for m in (contingency, scipy.stats.contingency))
            equal([found.statistic], [known.statistic], 1e-7)
            for side in SIDES:
                equal(found.confidence_interval(0.9, side), known.confidence_interval(0.9, side),
                      1e-6, what=(cells, kind, side))
    for counts in ((27, 122, 44, 487), (0, 5, 3, 6), (3, 5, 0, 6), (0, 5, 0, 6)):
        found, known = (m.relative_risk(*counts) for m in (contingency, scipy.stats.contingency))
        equal([found.relative_risk, *found.confidence_interval()],
              [known.relative_risk, *known.confidence_interval()])
    a, b = ["A", "B", "A", "A", "B"], ["X", "X", "Y", "X", "Z"]
    for levels in (None, (["A", "B"], ["Z", "X"]), (None, ["X"])):
        equal([contingency.crosstab(a, b, levels=levels).count],
              [scipy.stats.contingency.crosstab(a, b, levels=levels).count])
    with pytest.raises(ArgumentError, match="BCOO"):
        contingency.crosstab(a, b, sparse=True)
