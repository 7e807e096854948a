"""The laws of the families whose tails are integrals, sums or roots, beside SciPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
from functrans.scipy import stats
from functrans.test_util import check_grads

F = np.float64
CONTINUOUS = {
    "crystalball": [(2.0, 3.0), (0.5, 1.2)], "dpareto_lognorm": [(0.3, 1.2, 2.5, 3.1)],
    "genexpon": [(1.0, 2.0, 0.7), (9.0, 0.1, 3.0)], "jf_skew_t": [(2.0, 5.0), (8.0, 0.7)],
    "kappa4": [(0.5, 0.3), (-0.5, -0.3), (0.0, 0.0), (1.0, 0.5)], "vonmises_line": [(2.0,)],
    "geninvgauss": [(2.3, 1.5), (-0.3, 0.01)], "norminvgauss": [(20.0, -15.0), (1.25, 0.5)],
    "rel_breitwigner": [(36.5,), (0.1,)], "gausshyper": [(13.8, 3.1, 2.5, 5.2)],
    "genhyperbolic": [(0.5, 1.5, -0.5), (-1.5, 3.0, 2.5)], "landau": [()],
    "levy_stable": [(1.8, -1.0), (0.5, 1.0), (2.0, 0.0), (1.0, 0.0)],
    "nct": [(5.0, 1.0), (0.7, 4.0)], "ncf": [(2.0, 3.0, 1.0), (27.0, 27.0, 0.4)],
    "studentized_range": [(3.0, 10.0)], "irwinhall": [(3.0,), (16.0,), (20.0,)],
    "tukeylambda": [(0.3,), (-0.4,), (0.0,), (2.5,)], "ksone": [(1.0,), (30.0,)],
    "kstwo": [(3.0,), (30.0,)], "kstwobign": [()]}
SHAPES = [(name, shapes) for name, rows in CONTINUOUS.items() for shapes in rows]
WHOLE_SHAPES = {"irwinhall", "ksone", "kstwo"}
INEXACT = {"geninvgauss": 2e-3, "norminvgauss": 1e-6, "tukeylambda": 1e-4, "gausshyper": 5e-3,
           "rel_breitwigner": 1e-6, "vonmises_line": 1e-5, "kstwo": 1e-8, "nct": 1e-8}
"""Of which SciPy's tails are the rest of a quadrature, or a root found to fewer digits."""
Q = np.array([1e-6, 0.03, 0.4, 0.75, 0.998])
DISCRETE = {"zipfian": (1.25, 10.0), "nhypergeom": (20.0, 7.0, 5.0),
            "nchypergeom_fisher": (140.0, 80.0, 60.0, 0.5),
            "nchypergeom_wallenius": (40.0, 20.0, 12.0, 2.5),
            "betanbinom": (5.0, 2.5, 3.0)}


@pytest.mark.one_in(16)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name, shapes", SHAPES)
def test_beside_scipy_and_back(name, shapes):
    ours, golden = getattr(stats, name), getattr(theirs, name)
    rest = (*map(F, shapes), F(0.3), F(1.7))
    x = np.asarray(ours.ppf(Q, *rest))
    np.testing.assert_allclose(ours.cdf(x, *rest), Q, rtol=1e-9, atol=1e-14)
    up = np.asarray(ours.isf(Q, *rest))
    np.testing.assert_allclose(ours.sf(up, *rest), Q, rtol=1e-9, atol=1e-13)
    assert (np.diff(x) > 0).all()
    rtol = INEXACT.get(name, 1e-8)
    inside = slice(None) if name != "levy_stable" or shapes == (1.0, 0.0) else slice(1, -1)
    for method in ("logpdf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(ours, method)(x, *rest)[inside],
                                   getattr(golden, method)(x, *rest)[inside], rtol=rtol,
                                   atol=1e-12, err_msg=method)
    for small, log in (("cdf", "logcdf"), ("sf", "logsf")):
        np.testing.assert_allclose(np.exp(getattr(ours, log)(x, *rest)),
                                   getattr(ours, small)(x, *rest), rtol=1e-9)
    known = golden.mean(*rest)
    if np.isfinite(known) and name not in ("kstwo",):
        np.testing.assert_allclose(ours.mean(*rest), known, rtol=1e-3)


@pytest.mark.one_in(22)
@pytest.mark.parametrize("name, shapes", SHAPES)
def test_derivatives_of_families(name, shapes):
    ours = getattr(stats, name)
    rest = [F(v) for v in (*shapes, 0.3, 1.7)]
    q = np.array([0.2, 0.7])
    x = np.asarray(ours.ppf(q, *rest))
    fixed = len(shapes) if name in WHOLE_SHAPES or name == "levy_stable" else 0
    if fixed and (name != "levy_stable" or shapes[1] in (1.0, -1.0, 0.0)):
        whole = [np.full(2, v) for v in rest[:fixed]]
        args, density = [x, *rest[fixed:]], lambda x, *r: ours.logpdf(x, *whole, *r)
        below, place = (lambda x, *r: ours.cdf(x, *whole, *r)), lambda q, *r: ours.ppf(
            q, *whole, *r)
    else:
        args, density, below, place = [x, *rest], ours.logpdf, ours.cdf, ours.ppf
    if name != "kstwo":  # whose density is a derivative of a matrix product
        check_grads(density, args, 1, atol=1e-4, rtol=1e-4)
    check_grads(below, args, 1, modes=["fwd"], atol=1e-5, rtol=1e-4)
    check_grads(place, [q, *args[1:]], 1, modes=["fwd"], atol=1e-4, rtol=1e-4)


@pytest.mark.one_in(22)
@pytest.mark.parametrize("name, shapes", SHAPES)
def test_draws_precisions_and_transforms(name, shapes):
    ours = getattr(stats, name)
    rest = [np.float32(v) for v in (*shapes, 0.3, 1.7)]
    q = np.array([0.1, 0.5, 0.9])
    x = np.asarray(ours.ppf(q, *map(F, rest)))
    z = np.asarray(ours.rvs(ft.random.key(1), *rest, shape=(4000,)))
    assert z.dtype == np.float32
    np.testing.assert_allclose(np.mean(z[:, None] <= x, 0), q, atol=0.025)
    single = np.asarray(ours.cdf(x.astype(np.float32), *rest))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, q, rtol=2e-4)
    at = np.broadcast_arrays(x, *(F(r) for r in rest))
    known = 1 if name == "kstwo" else len(at)  # of which the shape is no argument
    mapped = ft.jit(ft.vmap(lambda *v: ours.logpdf(*v, *(a[0] for a in at[known:]))))
    np.testing.assert_allclose(mapped(*at[:known]), ours.logpdf(*at), rtol=1e-9)
    assert np.isnan(float(ours.cdf(1.0, *map(F, shapes), F(0), F(-1.0))))
    np.testing.assert_array_equal(ours.cdf(np.array([-np.inf, np.inf]), *map(F, shapes)), [0, 1])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", DISCRETE)
def test_whole_numbers(name):
    ours, golden = getattr(stats, name), getattr(theirs, name)
    shapes = tuple(map(F, DISCRETE[name]))
    x = np.asarray(ours.ppf(Q, *shapes))
    np.testing.assert_array_equal(x, golden.ppf(Q, *DISCRETE[name]))
    for method in ("logpmf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(ours, method)(x, *shapes),
                                   getattr(golden, method)(x, *DISCRETE[name]), rtol=1e-10)
    np.testing.assert_allclose(ours.stats(*shapes), golden.stats(*DISCRETE[name]), rtol=1e-7)
    z = np.asarray(ours.rvs(ft.random.key(2), *map(np.float32, shapes), shape=(4000,)))
    np.testing.assert_allclose(np.mean(z[:, None] <= x[1:], 0), golden.cdf(x[1:], *DISCRETE[name]),
                               atol=0.03)
    np.testing.assert_allclose(ft.jit(ours.logpmf)(x, *shapes), ours.logpmf(x, *shapes), rtol=1e-12)
    last = len(shapes) - (2 if name == "zipfian" else 1)
    if name != "nhypergeom":
        check_grads(lambda s: ours.logpmf(x, *shapes[:last], s, *shapes[last + 1:]),
                    (shapes[last],), 1)


def test_trials_of_unlike_probabilities():
    p, k = np.array([0.1, 0.6, 0.7, 0.8]), np.arange(-1.0, 6.0)
    for method in ("pmf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(stats.poisson_binom, method)(k, p),
                                   getattr(theirs.poisson_binom, method)(k, p), atol=1e-15)
    np.testing.assert_array_equal(stats.poisson_binom.ppf(Q, p), theirs.poisson_binom.ppf(Q, p))
    np.testing.assert_allclose(stats.poisson_binom.stats(p), theirs.poisson_binom.stats(p))
    check_grads(lambda p: stats.poisson_binom.logpmf(k[2:4], p), (p,), 1)
    with pytest.raises(ValueError, match="axis"):
        stats.poisson_binom.pmf(1, 0.5)


def test_tails_beside_mpmath():
    """Where SciPy's are differences of larger numbers."""
    with mpmath.workdps(25):
        mass = mpmath.quad(lambda t: t**1.3 * mpmath.exp(-0.75 * (t + 1 / t)), [30, 40, 60, 100])
        mass /= 2 * mpmath.besselk(2.3, 1.5)
    assert float(stats.geninvgauss.sf(F(30.0), 2.3, 1.5)) == pytest.approx(float(mass), rel=1e-11)
    x = np.array([1e9, 1e12])
    np.testing.assert_allclose(stats.levy_stable.sf(x, F(0.5), F(1.0)), theirs.levy.sf(x),
                               rtol=1e-9)
    np.testing.assert_allclose(stats.betanbinom.sf(np.array([1e5]), 5.0, F(2.5), F(3.0)),
                               3.2417e-10, rtol=1)


def test_entropy_of_inverse_wishart_matrices():
    """By the mean over samples: SciPy's is another number."""
    scale = np.array([[3.0, 0.5, 0.2], [0.5, 4.0, 0.1], [0.2, 0.1, 5.0]])
    x = stats.invwishart.rvs(ft.random.key(0), 6.5, scale, 4000)
    mean = -np.mean(np.asarray(stats.invwishart.logpdf(x, 6.5, scale)))
    assert float(stats.invwishart.entropy(6.5, scale)) == pytest.approx(mean, abs=0.1)
