"""What results of tests know besides p-values, exact tests and resampling, beside scipy.stats."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import stats
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(3)
A, B = rng.standard_normal((12, 3)), rng.standard_normal((9, 3)) + 0.4
HOLES = np.where(np.arange(36).reshape(12, 3) % 5 == 1, np.nan, A)
SIDES = ("two-sided", "less", "greater")


def test_results_of_t_tests():
    for side, (equal, axis) in itertools.product(SIDES, ((True, 0), (False, 0), (True, None))):
        pairs = [
            (stats.ttest_1samp(A, 0.2, axis, alternative=side),
             scipy.stats.ttest_1samp(A, 0.2, axis, alternative=side)),
            (stats.ttest_rel(A, A[::-1] ** 2, axis, alternative=side),
             scipy.stats.ttest_rel(A, A[::-1] ** 2, axis, alternative=side)),
            (stats.ttest_ind(A, B, axis=axis, equal_var=equal, alternative=side,
                             trim=0.2 * equal),
             scipy.stats.ttest_ind(A, B, axis=axis, equal_var=equal, alternative=side,
                                   trim=0.2 * equal))]
        for found, known in pairs:
            same(tuple(found), (known.statistic, known.pvalue))
            same(found.df, np.broadcast_to(known.df, np.shape(known.statistic)))
            same(tuple(found.confidence_interval(0.4)), tuple(known.confidence_interval(0.4)))
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        found.confidence_interval(95)
    with pytest.raises(ArgumentError, match=r"trim < 0.5"):
        stats.ttest_ind(A, B, trim=0.5)
    check_grads(lambda x: stats.ttest_1samp(x, 0.0).confidence_interval(), (A[:, 0],), 1,
                modes=["rev"])
    inside = ft.vmap(lambda x: stats.ttest_1samp(x, 0.0))(A.T)  # a tree that keeps its methods
    same(inside.confidence_interval().low, scipy.stats.ttest_1samp(
        A, 0.0).confidence_interval().low)


def test_elements_that_are_missing():
    options = {"nan_policy": "omit"}
    for axis in (0, 1):
        other = HOLES[::-1] + 0.3
        for name, args in (("ttest_1samp", (HOLES, 0.1)), ("ttest_rel", (HOLES, other)),
                           ("ttest_ind", (HOLES, other))):
            found = getattr(stats, name)(*args, axis=axis, **options)
            known = getattr(scipy.stats, name)(*args, axis=axis, **options)
            same(tuple(found), (np.asarray(known.statistic), np.asarray(known.pvalue)))
        for name, own in (("sem", {}), ("skew", {"bias": False}), ("kurtosis", {"bias": False}),
                          ("skew", {}), ("kurtosis", {}), ("moment", {"order": 3})):
            if axis and "bias" in own:
                continue  # rows of three
            same(getattr(stats, name)(HOLES, axis=axis, **own, **options),
                 np.asarray(getattr(scipy.stats, name)(HOLES, axis=axis, **own, **options)))
        same(stats.zscore(HOLES, axis, **options), np.asarray(
            scipy.stats.zscore(HOLES, axis, **options)))
    slope = ft.grad(lambda x: stats.ttest_1samp(x, 0.0, **options).pvalue.sum())(HOLES)
    assert (np.asarray(slope)[np.isnan(HOLES)] == 0).all() and np.isfinite(slope).all()
    with pytest.raises(ArgumentError, match="has a NaN"):
        stats.sem(HOLES, nan_policy="raise")
    assert np.isnan(stats.sem(HOLES)).any()
    same(stats.sem(A, nan_policy="raise", keepdims=True), scipy.stats.sem(A, keepdims=True))
    same(stats.moment(A, 2, center=0.5), scipy.stats.moment(A, 2, center=0.5))


@pytest.mark.parametrize("side", SIDES)
def test_results_of_correlations(side):
    for n in (2, 3, 4, 12):
        x, y = A[:n, 0], A[:n, 1]
        found, known = (m.pearsonr(x, y, alternative=side) for m in (stats, scipy.stats))
        same(tuple(found), tuple(known))
        same(tuple(found.confidence_interval(0.9)), tuple(known.confidence_interval(0.9)))
        if n > 2:
            same(tuple(stats.spearmanr(x, y, alternative=side)),
                 tuple(scipy.stats.spearmanr(x, y, alternative=side)))
    table = rng.integers(0, 5, (12, 4)) + 0.0
    for axis, columns in ((0, 4), (1, 3)):
        of = table if axis == 0 else table[:columns]
        found, known = (m.spearmanr(of, axis=axis, alternative=side) for m in (stats, scipy.stats))
        off = ~np.eye(len(known.statistic), dtype=bool)
        same(found.statistic, known.statistic)
        same(np.asarray(found.pvalue)[off], known.pvalue[off])
    same(stats.spearmanr(table[:, :2], alternative=side).pvalue,
         scipy.stats.spearmanr(table[:, :2], alternative=side).pvalue)
    # the ends have the correlation between them, and a perfect one is a point
    low, high = stats.spearmanr(A[:, 0], A[:, 1]).confidence_interval()
    assert low < stats.spearmanr(A[:, 0], A[:, 1]).statistic < high
    same(tuple(stats.pearsonr(A[:, 0], 2 * A[:, 0]).confidence_interval()), (1.0, 1.0), 1e-6)
    line, known = (m.linregress(A[:, 0], A[:, 1], side) for m in (stats, scipy.stats))
    same(line.intercept_stderr, known.intercept_stderr)
    assert len(tuple(line)) == 5
    with pytest.raises(ShapeError, match="there is no b"):
        stats.spearmanr(A[:, 0])


@pytest.mark.parametrize("n", [3, 4, 5, 11, 12, 60])
def test_shapiro(n):
    for x in (A, rng.standard_normal((n, 2)) ** 3):
        x = np.resize(x, (n, 2))
        for axis in (0, None):
            # SciPy's quantiles have 9 digits
            same(tuple(stats.shapiro(x, axis=axis)), tuple(scipy.stats.shapiro(x, axis=axis)),
                 1e-6, 1e-9)
    if n == 11:
        check_grads(lambda x: stats.shapiro(x).pvalue, (x[:, 0],), 1)
    same(tuple(stats.shapiro(np.ones(n))), (1.0, 1.0))
    assert np.isnan(stats.shapiro(np.append(x[:, 0], np.nan)).pvalue)
    with pytest.raises(ShapeError, match="from 3 on"):
        stats.shapiro(np.ones(2))


@pytest.mark.one_in(1)
@pytest.mark.parametrize("side", SIDES)
def test_fisher_exact(side):
    tables = np.concatenate([rng.integers(0, top, (15, 2, 2)) for top in (3, 12, 80)])
    tables = np.concatenate([tables + 0.0, [[[3000.0, 2000], [1000, 900]]]])
    found = ft.jit(lambda t: stats.fisher_exact(t, side))(tables)
    known = [tuple(scipy.stats.fisher_exact(t.astype(int), side)) for t in tables]
    same(tuple(found), tuple(np.array(known).T), 1e-9)
    same(ft.vmap(lambda t: stats.fisher_exact(t, side).pvalue)(tables[:4]), found.pvalue[:4])
    assert np.isnan(stats.fisher_exact(np.array([[1.0, -1], [2, 3]])).pvalue)
    with pytest.raises(ShapeError, match="rows, columns"):
        stats.fisher_exact(np.ones((4, 2, 3)))


def test_median_test():
    samples = A[:, 0].round(1), B[:, 0].round(1), A[:7, 1].round(1) + 0.5
    for ties in ("below", "above", "ignore"):
        same(tuple(stats.median_test(*samples, ties=ties)),
             tuple(scipy.stats.median_test(*samples, ties=ties)))


def difference(x, y, axis):
    return x.mean(axis) - y.mean(axis)


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_bootstrap(method):
    key = ft.random.key(0)
    for side, paired in itertools.product(SIDES, (False, True)):
        data = (A, B) if not paired else (A[:9], B)
        found = stats.bootstrap(key, data, difference, n_resamples=60, method=method, batch=7,
                                alternative=side, paired=paired, confidence_level=0.8)
        drawn = np.asarray(found.bootstrap_distribution)
        known = scipy.stats.bootstrap(
            data, difference, n_resamples=0, method=method, alternative=side, paired=paired,
            confidence_level=0.8, bootstrap_result=SimpleNamespace(bootstrap_distribution=drawn))
        same(tuple(found.confidence_interval), tuple(known.confidence_interval))
        same(found.standard_error, known.standard_error)
    again = stats.bootstrap(key, data, lambda x, y: difference(x, y, 0), n_resamples=60,
                            method=method, paired=True, vectorized=False)
    same(again.bootstrap_distribution, drawn)
    more = stats.bootstrap(key, data, difference, n_resamples=0, bootstrap_result=again)
    assert more.bootstrap_distribution.shape == (3, 60)
    # the means of resamples of paired data move with the data
    check_grads(lambda x: stats.bootstrap(key, (x,), jnp.mean, n_resamples=20,
                                          method=method).confidence_interval.low, (A[:, 0],), 1)
    with pytest.raises(ShapeError, match="one element"):
        stats.bootstrap(key, (A[:1],), jnp.mean)


def test_the_share_of_intervals_that_have_the_mean():
    x = rng.standard_normal((40, 150))
    found = stats.bootstrap(ft.random.key(1), (x,), jnp.mean, n_resamples=300,
                            confidence_level=0.9).confidence_interval
    inside = np.mean((np.asarray(found.low) < 0) & (np.asarray(found.high) > 0))
    assert 0.8 < inside < 0.97


@pytest.mark.parametrize("kind", ["independent", "samples", "signs", "pairings"])
def test_permutation_test(kind):
    data = {"independent": (A[:4], B[:5]), "samples": (A[:5], B[:5]), "signs": (A[:6],),
            "pairings": (A[:4], B[:4])}[kind]
    how = "samples" if kind == "signs" else kind

    def statistic(*parts, axis):
        return (parts[0] * abs(parts[-1]) ** 1.5).mean(axis) if kind == "pairings" else (
            parts[0].mean(axis) - 2 * sum(v.mean(axis) for v in parts[1:]))

    for side in SIDES:
        options = {"permutation_type": how, "alternative": side}
        found = stats.permutation_test(None, data, statistic, **options)
        known = scipy.stats.permutation_test(data, statistic, **options)
        same((found.statistic, found.pvalue), (known.statistic, known.pvalue))
        same(np.sort(found.null_distribution, 0), np.sort(known.null_distribution, 0))
        drawn = stats.permutation_test(ft.random.key(2), data, statistic, n_resamples=15, batch=4,
                                       **options)
        # each is one of all permutations
        gap = np.abs(np.asarray(drawn.null_distribution)[:, None] - known.null_distribution)
        assert gap.min(1).max() < 1e-12 and (np.asarray(drawn.pvalue) * 16).min() >= 1
    with pytest.raises(ArgumentError, match=r"key is None"):
        stats.permutation_test(None, data, statistic, n_resamples=5, permutation_type=how)


def test_permutations_that_are_many():
    x = rng.standard_normal(40)
    y = x + 0.2 * rng.standard_normal(40)
    for how, statistic in (("pairings", lambda x, y: (x * y).mean()),
                           ("samples", lambda x, y: (x - y).mean())):
        found = stats.permutation_test(ft.random.key(0), (x, y), statistic, n_resamples=99,
                                       permutation_type=how)
        assert found.null_distribution.shape == (99,)
        assert (found.pvalue == 0.02) == (how == "pairings")


def test_monte_carlo_test():
    def of(key, x):
        return stats.monte_carlo_test(key, x, ft.random.normal, jnp.mean, n_resamples=400).pvalue

    x = A + np.array([0, 0.3, 2.0])
    found = ft.jit(of)(ft.random.key(0), x)
    known = 2 * scipy.stats.norm.sf(abs(x.mean(0)) * np.sqrt(12))
    same(found, known, atol=0.1)
    both = stats.monte_carlo_test(ft.random.key(0), (A, B), (ft.random.normal, stats.norm.rvs),
                                  difference, n_resamples=50)
    assert both.null_distribution.shape == (50, 3)
    with pytest.raises(ArgumentError, match="2 functions for 1"):
        stats.monte_carlo_test(ft.random.key(0), A, (ft.random.normal,) * 2, jnp.mean)
