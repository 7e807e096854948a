"""`axis`, `nan_policy` and `keepdims` of every statistic that has them, beside scipy.stats."""

import warnings

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import stats
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(7)
A = rng.random((14, 3)) + 0.5
B = rng.random((14, 3)) * 1.2 + 0.4
C = rng.random((14, 3)) * 1.4 + 0.3
HOLES = [np.where(rng.random(x.shape) < 0.15, np.nan, x) for x in (A, B, C)]

# the number of samples of each, and its options
CASES = {
    "alexandergovern": (3, {}), "bartlett": (3, {}), "brunnermunzel": (2, {}),
    "chisquare": (1, {}), "circmean": (1, {}), "circstd": (1, {}), "circvar": (1, {}),
    "combine_pvalues": (1, {}), "differential_entropy": (1, {}), "entropy": (2, {}),
    "f_oneway": (3, {}), "friedmanchisquare": (3, {}), "gmean": (1, {}), "gstd": (1, {}),
    "hmean": (1, {}), "iqr": (1, {}), "jarque_bera": (1, {}), "kendalltau": (2, {}),
    "kruskal": (3, {}), "ks_1samp": (1, {"cdf": "uniform"}), "ks_2samp": (2, {}),
    "kstat": (1, {}), "kstatvar": (1, {}), "kurtosis": (1, {}), "kurtosistest": (1, {}),
    "levene": (3, {"center": "trimmed", "proportiontocut": 0.1}), "linregress": (2, {}),
    "mannwhitneyu": (2, {}), "median_abs_deviation": (1, {}), "mode": (1, {}),
    "moment": (1, {"order": 3}), "normaltest": (1, {}), "pmean": (1, {"p": 1.5}),
    "pointbiserialr": (2, {}), "power_divergence": (1, {"lambda_": "neyman"}),
    "ranksums": (2, {}), "sem": (1, {}), "shapiro": (1, {}), "siegelslopes": (2, {}),
    "skew": (1, {}), "skewtest": (1, {}), "spearmanrho": (2, {}), "theilslopes": (2, {}),
    "tmax": (1, {"upperlimit": 1.3}), "tmean": (1, {"limits": (0.6, 1.4)}),
    "tmin": (1, {"lowerlimit": 0.7}), "trim_mean": (1, {"proportiontocut": 0.1}),
    "tsem": (1, {"limits": (0.6, 1.4)}), "tstd": (1, {"limits": (0.6, 1.4)}),
    "ttest_1samp": (1, {"popmean": 0.9}), "ttest_ind": (2, {"equal_var": False}),
    "ttest_rel": (2, {}), "tvar": (1, {"limits": (0.6, 1.4)}), "variation": (1, {}),
    "wilcoxon": (2, {}),
}

# what is omitted by masks, and by branches, with options that it needs for that
BRANCHES = {"shapiro": {}, "wilcoxon": {}}
MASKED = {name: {} for name in (
    "alexandergovern", "bartlett", "brunnermunzel", "chisquare", "circmean", "entropy", "f_oneway",
    "gmean", "gstd", "hmean", "iqr", "kruskal", "kstatvar", "kurtosis", "moment", "pmean",
    "ranksums", "tmax", "tmean", "tsem", "ttest_ind", "variation")} | {
    "levene": {"center": "median"}, "mannwhitneyu": {"method": "asymptotic"}} | BRANCHES
MASKED_ROWS = 5


def arguments(name, options, module):
    options = dict(options)
    if options.get("cdf") == "uniform":
        options["cdf"] = module.uniform(0.3, 1.6).cdf if module is scipy.stats else (
            lambda x: stats.uniform.cdf(x, 0.3, 1.6))
    return options


def result(found):
    """The statistics in a result of either."""
    if isinstance(found, tuple) or (hasattr(found, "__iter__") and not hasattr(found, "shape")):
        return tuple(np.asarray(v, float) for v in tuple(found))
    if hasattr(found, "pvalue"):
        return np.asarray(found.statistic, float), np.asarray(found.pvalue, float)
    return (np.asarray(found, float),)


def both(name, samples, options, rtol=1e-7, **more):
    with ft.default_dtypes("float64"):
        found = getattr(stats, name)(*samples, **arguments(name, options, stats), **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = getattr(scipy.stats, name)(*samples, **arguments(name, options, scipy.stats),
                                           **more)
    same(result(found), result(known), rtol, 1e-9, (name, more))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CASES)
def test_axes_and_policies(name):
    count, options = CASES[name]
    whole, holes = [A, B, C][:count], HOLES[:count]
    both(name, whole, options, axis=0, keepdims=True)
    both(name, whole, options, axis=None, keepdims=True)
    both(name, holes, options, axis=0, nan_policy="omit")
    both(name, holes, options, axis=0, nan_policy="propagate")
    with pytest.raises(ArgumentError, match="has a NaN"):
        getattr(stats, name)(*holes, **arguments(name, options, stats), nan_policy="raise")
    with pytest.raises(ArgumentError, match="nan_policy"):
        getattr(stats, name)(*whole, **arguments(name, options, stats), nan_policy="ignore")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", MASKED)
def test_what_is_omitted_under_jit(name):
    """By masks, of any number of elements; and by branches, of the few that there may be."""
    count, options = CASES[name]
    options = arguments(name, {**options, **MASKED[name]}, stats)
    holes = [x[:MASKED_ROWS] for x in HOLES[:count]] if name in BRANCHES else HOLES[:count]

    def of(*samples):
        found = getattr(stats, name)(*samples, **options, axis=0, nan_policy="omit")
        return tuple(found) if hasattr(found, "pvalue") else found

    with ft.default_dtypes("float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = result(of(*holes))
        same(result(ft.jit(of)(*holes)), eager, 1e-9, 1e-10, name)
        lanes = ft.vmap(of)(*(x.T for x in holes))
        same(result(lanes), eager, 1e-9, 1e-10, name)


def test_policies_under_jit():
    long = np.where(np.arange(400) % 7 == 0, np.nan, np.arange(400.0))
    with pytest.raises(ArgumentError, match="a branch for each number"):
        ft.jit(lambda x, y: stats.mannwhitneyu(x, y, nan_policy="omit").pvalue)(long, long)
    with pytest.raises(ArgumentError, match=r"ft.checked around"):
        ft.jit(lambda x: stats.sem(x, nan_policy="raise"))(long)
    slope = ft.grad(lambda x: stats.kruskal(x, 2 * x[::-1], nan_policy="omit").statistic)(long)
    assert np.isfinite(slope).all()
    for name in ("f_oneway", "shapiro"):
        samples = (long[:30], long[30:60] * 2)[:2 if name == "f_oneway" else 1]
        slopes = ft.grad(lambda *s, n=name: getattr(stats, n)(*s, nan_policy="omit").statistic)(
            *samples)
        lost = np.isnan(samples[0])
        assert np.isfinite(slopes).all() and (np.asarray(slopes)[lost] == 0).all()
        assert np.asarray(slopes)[~lost].any()


def test_axes_that_are_many():
    cube = np.random.default_rng(1).random((3, 4, 5))
    for name, options in (("kruskal", {}), ("tmean", {}), ("skew", {}), ("ks_1samp", CASES[
            "ks_1samp"][1])):
        samples = [cube, cube * 1.3][:2 if name == "kruskal" else 1]
        both(name, samples, options, axis=(0, 2), keepdims=True)
        both(name, samples, options, axis=(0, 2))
    both("mannwhitneyu", [cube, cube[:, :1] + 0.1], {}, axis=2)  # other axes broadcast
    with pytest.raises(ShapeError, match="is not one of the 3 axes"):
        stats.skew(cube, axis=3)
    with pytest.raises(ShapeError, match="broadcast"):
        stats.mannwhitneyu(cube, cube[:2, :, :3], axis=2)
    for name in ("mannwhitneyu", "ansari", "kruskal", "ttest_ind"):
        found = getattr(stats, name)(cube[0], cube[0, :0], axis=0)
        assert found.pvalue.shape == (5,) and np.isnan(found.pvalue).all()
    with pytest.raises(ArgumentError, match="a tuple of ints"):
        stats.kruskal(cube, cube, axis="x")
    with pytest.raises(ArgumentError, match=r"mannwhitneyu\(x, y"):
        stats.mannwhitneyu()
    empty = np.full((4, 2), np.nan)
    assert np.isnan(stats.kendalltau(empty, empty, axis=0, nan_policy="omit").statistic).all()
    check_grads(lambda x: stats.f_oneway(x, 2 * x, axis=1), (A[:4],), 1, modes=["rev"])


def test_ranks_and_scores():
    for policy in ("omit", "propagate"):
        for axis in (0, 1):
            same(np.asarray(stats.rankdata(HOLES[0], axis=axis, nan_policy=policy)),
                 scipy.stats.rankdata(HOLES[0], axis=axis, nan_policy=policy), 1e-6)
        same(np.asarray(stats.zmap(A, HOLES[1], nan_policy=policy)),
             np.asarray(scipy.stats.zmap(A, HOLES[1], nan_policy=policy)))
        same(np.asarray(stats.gzscore(HOLES[0], axis=1, nan_policy=policy)),
             np.asarray(scipy.stats.gzscore(HOLES[0], axis=1, nan_policy=policy)))
        same(np.asarray(stats.percentileofscore(HOLES[0][:, 0], [0.7, 1.2], nan_policy=policy)),
             np.asarray(scipy.stats.percentileofscore(HOLES[0][:, 0], [0.7, 1.2],
                                                      nan_policy=policy)))
    found, known = (m.spearmanr(HOLES[0][:, 0], HOLES[1][:, 0], nan_policy="omit")
                    for m in (stats, scipy.stats))
    same(tuple(map(np.asarray, found)), tuple(map(np.asarray, known)), 1e-6)
    known = scipy.stats.describe(HOLES[0], nan_policy="omit")
    found = stats.describe(HOLES[0], nan_policy="omit")
    same(tuple(np.asarray(v, float) for v in (found.nobs, *found.minmax, *found[2:])),
         tuple(np.asarray(v, float) for v in (known.nobs, *known.minmax, *known[2:])))
    parts = [HOLES[0][:, 0], HOLES[1][:, 0]]
    same(np.asarray(stats.median_test(*parts, nan_policy="omit").pvalue),
         scipy.stats.median_test(*parts, nan_policy="omit").pvalue)
    with pytest.warns(stats.ConstantInputWarning):
        stats.pearsonr(np.ones(4), np.arange(4.0))
    with pytest.warns(stats.NearConstantInputWarning):
        stats.pearsonr(1 + 1e-15 * np.arange(4.0), np.arange(4.0))
