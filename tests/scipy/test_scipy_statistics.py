"""Tests of hypotheses and summaries of samples beside scipy.stats."""

import itertools

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import stats
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
A, B, C = rng.standard_normal((12, 3)), rng.standard_normal((9, 3)) + 0.4, rng.random((7, 3)) * 3
TIED = rng.integers(0, 4, (2, 12)) + 0.0
SIDES = ("two-sided", "less", "greater")


def leaves(tree):
    """What a result unpacks to, or the array that it is."""
    is_array = isinstance(tree, (ft.Array, np.ndarray, np.generic))
    return tuple(np.asarray(v, float) for v in ft.tree.leaves(tree if is_array else tuple(tree)))


def both(name, *args, rtol=1e-8, atol=1e-10, **options):
    with ft.default_dtypes("float64"):
        found = getattr(stats, name)(*args, **options)
    known = getattr(scipy.stats, name)(*args, **options)
    if hasattr(known, "pvalue") and hasattr(known, "statistic") and not isinstance(known, tuple):
        known = known.statistic, known.pvalue
    same(leaves(found), leaves(known), rtol, atol, (name, options))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_means(axis):
    a, b = (A, B) if axis == 0 else (A.T, B.T) if axis == 1 else (A[:, :1], B)
    for side in SIDES:
        both("ttest_1samp", a, 0.2, axis=axis, alternative=side)
        both("ttest_rel", a, a[::-1] ** 2, axis=axis, alternative=side)
        for equal in (True, False):
            both("ttest_ind", a, b, axis=axis, equal_var=equal, alternative=side)
    both("ttest_ind_from_stats", 1.0, 0.5, 9, 1.4, 0.7, 12, equal_var=False)


@pytest.mark.parametrize("name", ["f_oneway", "levene", "bartlett", "kruskal", "alexandergovern"])
def test_groups(name):
    both(name, A[:, 0], B[:, 0], C[:, 0])
    if name != "alexandergovern":
        both(name, A, B, C, axis=0)
    if name == "f_oneway":
        both(name, A, B, C, equal_var=False)
    check_grads(lambda a, b: getattr(stats, name)(a, b).statistic, (A[:, 0], B[:, 0]), 1)
    with pytest.raises(ArgumentError, match="at least 2"):
        getattr(stats, name)(A)


def test_tables():
    counts = np.array([[16.0, 18, 16], [14, 12, 12], [9, 30, 7]])
    both("chisquare", counts, axis=1)
    both("chisquare", counts[0], np.array([15.0, 20, 15]), ddof=1)
    for power in (None, "log-likelihood", "freeman-tukey", "neyman", "mod-log-likelihood", 0.7):
        both("power_divergence", counts, lambda_=power)
    for table in (counts, counts[:2, :2], rng.integers(1, 9, (2, 3, 2))):
        for options in ({}, {"correction": False}, {"lambda_": "log-likelihood"}):
            ours = stats.chi2_contingency(table + 0.0, **options)
            known = scipy.stats.chi2_contingency(table, **options)
            same((ours.statistic, ours.pvalue, np.array(ours.dof), ours.expected_freq),
                 (known.statistic, known.pvalue, np.array(known.dof), known.expected_freq))
    for k, side in itertools.product((0, 3, 9), SIDES):
        ours = stats.binomtest(np.float64(k), 9, np.float64(0.3), side)
        same(ours.pvalue, scipy.stats.binomtest(k, 9, 0.3, side).pvalue, what=(k, side))


def test_shapes():
    x = np.concatenate([A, C])
    for side in SIDES:
        both("skewtest", x, alternative=side)
        both("kurtosistest", x, alternative=side)
    both("normaltest", x)
    both("jarque_bera", x, axis=0)
    check_grads(lambda x: stats.normaltest(x).pvalue, (x[:, 0],), 1)
    with pytest.raises(ShapeError, match="from 8 on"):
        stats.skewtest(np.ones(5))


def test_many_tests():
    p = rng.random((5, 3))
    for method in ("fisher", "pearson", "tippett", "stouffer", "mudholkar_george"):
        both("combine_pvalues", p[:, 0], method)
    both("combine_pvalues", p[:, 0], "stouffer", np.arange(1.0, 6))
    for method, axis in itertools.product(("bh", "by"), (0, 1, None)):
        both("false_discovery_control", p, axis=axis, method=method)


RANKS = [(A[:, 0], B[:, 0]), (A[:5, 0], B[:7, 0]), tuple(TIED), (TIED[0], TIED[1][:5])]


@pytest.mark.parametrize("samples", RANKS, ids=range(4))
def test_tests_by_ranks(samples):
    x, y = samples
    for side in SIDES:
        both("ranksums", x, y, side)
        both("brunnermunzel", x, y, side)
        for method, continuity in (("auto", True), ("asymptotic", False)):
            both("mannwhitneyu", x, y, continuity, side, method=method)
        for method in ("auto", "exact", "asymp"):
            both("ks_2samp", x, y, side, method)
    both("kruskal", x, y)


def test_pairs_by_ranks():
    for d in (A[:, 0], TIED[0] - TIED[1] + 0.5, TIED[0] - TIED[1]):
        for side, zero in itertools.product(SIDES, ("wilcox", "pratt", "zsplit")):
            method = "auto" if (d != 0).all() and len(set(abs(d))) == len(d) else "approx"
            for correction in (False, True):
                both("wilcoxon", d, None, zero, correction, side, method)
    both("friedmanchisquare", A[:9, 0], B[:, 0], B[:, 1])
    both("friedmanchisquare", TIED[0], TIED[1], TIED[0][::-1])


@pytest.mark.parametrize("n", [1, 4, 9, 40, 300])
def test_kolmogorov_and_smirnov(n):
    for draw in range(4):
        x = np.random.default_rng(draw).standard_normal(n) * (1 + 0.3 * draw)
        for side in SIDES:
            same(tuple(stats.ks_1samp(x, stats.norm.cdf, alternative=side)),
                 tuple(scipy.stats.ks_1samp(x, scipy.stats.norm.cdf, alternative=side)),
                 2e-5 if n > 140 else 1e-7, 1e-10, (draw, side))  # where SciPy takes a limit
            asymptotic = stats.ks_1samp(x, stats.norm.cdf, alternative=side, method="asymp")
            same(tuple(asymptotic), tuple(scipy.stats.ks_1samp(
                x, scipy.stats.norm.cdf, alternative=side, method="asymp")), 1e-9, 1e-10)
    with pytest.raises(ArgumentError, match=r"stats.norm.cdf"):
        stats.kstest(x, "norm")
    same(tuple(stats.kstest(x, A[:, 0])), tuple(scipy.stats.kstest(x, A[:, 0])), 1e-7)


def test_under_vmap_and_jit():
    x = rng.standard_normal((3, 10))

    def of(x):
        return (stats.ks_1samp(x, stats.norm.cdf), stats.mannwhitneyu(x, B[:, 0]),
                stats.wilcoxon(x), stats.kendalltau(x, A[:10, 0]), stats.linregress(A[:10, 0], x))

    many = ft.jit(ft.vmap(of))(x)
    for i in range(3):
        for found, one in zip(ft.tree.leaves(many), ft.tree.leaves(of(x[i])), strict=True):
            same(found[i], one, 1e-9)
    same(stats.ks_1samp(x, stats.norm.cdf, axis=1).pvalue,
         [scipy.stats.ks_1samp(v, scipy.stats.norm.cdf).pvalue for v in x], 1e-7)


@pytest.mark.parametrize("case", range(3))
def test_lines(case):
    x, y = ((A[:, 0], A[:, 1]), tuple(TIED), (np.arange(5.0), np.array([0, 2, 1, 9.0, 4])))[case]
    for side in SIDES:
        both("linregress", x, y, alternative=side)
        for variant in "bc":
            both("kendalltau", x, y, variant=variant, alternative=side)
        both("kendalltau", x, y, method="asymptotic", alternative=side)
    for method in ("separate", "joint"):
        same(tuple(stats.theilslopes(y, x, 0.9, method)), tuple(
            scipy.stats.theilslopes(y, x, 0.9, method)))
    for method in ("hierarchical", "separate"):
        same(tuple(stats.siegelslopes(y, x, method)),
             tuple(scipy.stats.siegelslopes(y, x, method=method)))
    both("pointbiserialr", x > 1, y)
    if case == 0:
        check_grads(lambda x, y: tuple(stats.linregress(x, y)), (x, y), 1)
    with pytest.raises(ShapeError, match="pairs"):
        stats.linregress(x, y[:-1])


def test_summaries():
    for axis in (0, 1, None):
        for name in ("describe", "variation"):
            both(name, C, axis=axis)
        for name in ("gstd", "tmean", "tvar", "tstd", "tsem", "tmin", "tmax", "trim_mean",
                     "median_abs_deviation"):
            args = {"trim_mean": (0.2,)}.get(name, ())
            both(name, C, *args, axis=axis)
        for p in (0, 2, -1):
            both("pmean", C, p, axis=axis)
    for name in ("tmean", "tvar", "tstd", "tsem"):
        both(name, A[:, 0], (-0.5, 1.0), (True, False))
    both("tmin", A[:, 0], -0.5)
    both("tmax", A[:, 0], 0.5, inclusive=False)
    both("zmap", A, B)
    both("gzscore", C)
    both("median_abs_deviation", A, scale="normal", center=np.mean)
    for kind in ("rank", "weak", "strict", "mean"):
        both("percentileofscore", TIED[0], [0.5, 1, 3], kind)
    for how in ("fraction", "lower", "higher"):
        both("scoreatpercentile", A[:, 0], [20, 50.0], interpolation_method=how)
    both("scoreatpercentile", A[:, 0], 40, (-1, 1))
    for n in (1, 2, 3, 4):
        both("kstat", A[:, 0], n)
    for n in (1, 2):
        both("kstatvar", A[:, 0], n)
    for size in (8, 60, 1200):
        both("differential_entropy", rng.standard_normal(size), base=2)


def test_directions():
    for axis in (0, 1, None):
        for name in ("circmean", "circvar", "circstd"):
            both(name, A * 2, axis=axis)
            both(name, A * 100, 180, -180, axis)
    check_grads(lambda x: stats.circmean(x), (A[:4, 0] + 3,), 1)


def test_powers_to_normality():
    x = C[:, 0] + 0.1
    for name, values in (("boxcox", x), ("yeojohnson", A[:, 0])):
        for power in (-0.5, 0.0, 1.3, 2.0):
            both(name, values, power)
            both(f"{name}_llf", power, values)
        both(name, values, rtol=1e-5, atol=1e-6)
        both(f"{name}_normmax", values, rtol=1e-5)
        normal = getattr(stats, f"{name}_normmax")
        check_grads(normal, (values,), 1, atol=1e-4, rtol=1e-3, eps=1e-3)


def test_between_samples():
    u, v = rng.random(6), rng.random(8)
    for name in ("wasserstein_distance", "energy_distance"):
        both(name, A[:6, 0], B[:8, 0])
        both(name, A[:6, 0], B[:8, 0], u, v)
        both(name, TIED[0], TIED[1])
        check_grads(getattr(stats, name), (A[:6, 0], B[:8, 0], u, v), 1)


def test_bins():
    x, values = rng.random(30) * 5, rng.standard_normal((2, 30))
    for statistic in ("mean", "std", "sum", "count", "min", "max", "median"):
        both("binned_statistic", x, values, statistic, bins=4)
        both("binned_statistic", x, values[0], statistic, [0.0, 0.5, 4, 4.1])
        both("binned_statistic", x, values[0], statistic, 3, (1.0, 3.0))
    check_grads(lambda v: stats.binned_statistic(x, v, "std", 4).statistic, (values[0],), 1)
    for name in ("relfreq", "cumfreq"):
        ours, known = getattr(stats, name)(x, 5), getattr(scipy.stats, name)(x, 5)
        same(tuple(ours), tuple(known)[:3])
    assert jnp.asarray(stats.binned_statistic(x, x, "sum").statistic).shape == (10,)
