"""Further distributions beside SciPy's: densities, both tails, quantiles, moments, derivatives."""

import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
from functrans.scipy import stats
from functrans.test_util import check_grads

CONTINUOUS = {
    "alpha": (2.5,), "anglit": (), "argus": (1.3,), "bradford": (0.7,), "burr": (3.0, 1.7),
    "burr12": (3.0, 1.7), "dgamma": (2.2,), "dweibull": (1.8,), "erlang": (3.0,),
    "exponpow": (1.4,), "exponweib": (2.0, 1.5), "fatiguelife": (0.8,), "foldcauchy": (1.2,),
    "foldnorm": (0.9,), "genextreme": (0.3,), "gengamma": (2.0, 1.5), "genhalflogistic": (0.6,),
    "genlogistic": (0.7,), "gibrat": (), "halfgennorm": (1.6,), "invweibull": (2.4,),
    "johnsonsb": (0.4, 1.3), "kappa3": (1.7,), "laplace_asymmetric": (1.8,), "levy_l": (),
    "loggamma": (1.4,), "loglaplace": (3.0,), "mielke": (4.0, 3.0), "moyal": (), "ncx2": (3.0, 2.0),
    "pearson3": (0.8,), "powerlognorm": (2.0, 0.5), "powernorm": (2.5,), "rdist": (3.2,),
    "recipinvgauss": (0.7,), "reciprocal": (0.5, 3.0), "rice": (1.2,), "skewcauchy": (0.4,),
    "trapezoid": (0.2, 0.7), "truncpareto": (1.5, 4.0), "truncweibull_min": (1.5, 0.2, 2.0),
    "wald": (), "weibull_max": (1.9,)}
OTHERS = {"genextreme": (-0.4,), "gengamma": (2.0, -1.5), "pearson3": (-1.1,), "ncx2": (4.0, 90.0)}
DISCRETE = {"skellam": (2.0, 3.5), "yulesimon": (2.5,)}
Q = np.array([1e-6, 0.03, 0.4, 0.75, 0.998])


def compared(name, shapes, loc=0.3, scale=1.7):
    ours, golden = getattr(stats, name), getattr(theirs, name)
    rest = (*map(np.float64, shapes), np.float64(loc), np.float64(scale))
    x = golden.ppf(Q, *rest)
    for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        got, want = getattr(ours, method)(x, *rest), getattr(golden, method)(x, *rest)
        np.testing.assert_allclose(got, want, rtol=3e-8, atol=1e-13, err_msg=method)
    np.testing.assert_allclose(ours.ppf(Q, *rest), x, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.isf(Q, *rest), golden.isf(Q, *rest), rtol=1e-8, atol=1e-9)
    for method in ("mean", "var"):
        if name != "levy_l":  # whose mean is -inf, not inf
            np.testing.assert_allclose(getattr(ours, method)(*rest), getattr(golden, method)(*rest),
                                       rtol=1e-6, atol=1e-9, err_msg=method)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_beside_scipy(name):
    compared(name, CONTINUOUS[name])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OTHERS)
def test_other_signs_and_sizes(name):
    compared(name, OTHERS[name])


def test_limits_of_shapes():
    x = np.linspace(-1, 3, 7)
    np.testing.assert_allclose(stats.genextreme.logpdf(x, 0.0), theirs.gumbel_r.logpdf(x),
                               rtol=1e-12)
    np.testing.assert_allclose(stats.pearson3.cdf(x, 0.0), theirs.norm.cdf(x), rtol=1e-12)
    assert np.isnan(stats.skewcauchy.cdf(0.5, 1.5)) and np.isnan(stats.trapezoid.pdf(0.5, 0.7, 0.2))
    assert float(stats.weibull_max.sf(0.5, 2.0)) == 0 and float(stats.levy_l.cdf(1.0)) == 1


@pytest.mark.parametrize("name", DISCRETE)
def test_whole_numbers(name):
    ours, golden = getattr(stats, name), getattr(theirs, name)
    shapes = tuple(map(np.float64, DISCRETE[name]))
    k = np.arange(-4.0, 9.0) if name == "skellam" else np.arange(1.0, 9.0)
    for method in ("logpmf", "pmf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(ours, method)(k, *shapes),
                                   getattr(golden, method)(k, *shapes), rtol=1e-8)
    np.testing.assert_allclose(ours.ppf(Q[1:], *shapes), golden.ppf(Q[1:], *shapes))
    np.testing.assert_allclose(ours.mean(*shapes), golden.mean(*shapes))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives_and_draws(name):
    family, shapes = getattr(stats, name), CONTINUOUS[name]
    rest = [np.float64(v) for v in (*shapes, 0.3, 1.7)]
    x = np.asarray(family.ppf(np.array([0.3, 0.6]), *rest))
    check_grads(family.logpdf, [x, *rest], 1, atol=1e-4, rtol=1e-4)
    check_grads(lambda q, *r: family.ppf(q, *r), [np.array([0.3, 0.6]), *rest], 1, modes=["fwd"],
                atol=1e-4, rtol=1e-4)
    drawn = family.rvs(ft.random.key(1), *map(np.float32, rest), shape=(1500,))
    share = np.mean(np.asarray(drawn)[:, None] <= x, axis=0)
    np.testing.assert_allclose(share, [0.3, 0.6], atol=0.06)


def test_distributions_of_matrices():
    rng = np.random.default_rng(0)
    x, a, b = rng.normal(size=(3, 2)), rng.normal(size=(3, 3)), rng.normal(size=(2, 2))
    rows, columns = a @ a.T + np.eye(3), b @ b.T + np.eye(2)
    np.testing.assert_allclose(stats.matrix_normal.logpdf(x, x * 0.5, rows, columns),
                               theirs.matrix_normal.logpdf(x, x * 0.5, rows, columns))
    for df in (2.5, np.inf):
        np.testing.assert_allclose(
            stats.multivariate_t.logpdf(x, x[0], columns, np.float64(df)),
            theirs.multivariate_t.logpdf(x, x[0], columns, df))
    np.testing.assert_allclose(stats.wishart.logpdf(rows, np.float64(4.5), 2 * np.eye(3) + rows),
                               theirs.wishart.logpdf(rows, 4.5, 2 * np.eye(3) + rows))
    check_grads(lambda s, d: stats.wishart.logpdf(rows, d, s @ s.T + np.eye(3)),
                (a, np.float64(4.5)), 1)
    key = ft.random.key(0)
    drawn = np.asarray(stats.wishart.rvs(key, 5.0, rows.astype("float32"), 4000))
    np.testing.assert_allclose(drawn.mean(0), 5 * rows, rtol=0.1, atol=1)
    drawn = np.asarray(stats.multivariate_t.rvs(key, np.zeros(2), columns, 9.0, 8000))
    np.testing.assert_allclose(np.cov(drawn.T), columns * 9 / 7, rtol=0.2, atol=0.3)
    drawn = np.asarray(stats.matrix_normal.rvs(key, x, rows, columns, 4000))
    np.testing.assert_allclose(np.cov(drawn[:, :, 0].T), rows * columns[0, 0], rtol=0.2, atol=0.5)
    turns = np.asarray(stats.special_ortho_group.rvs(key, 3, 50))
    np.testing.assert_allclose(turns @ turns.swapaxes(1, 2), np.eye(3)[None].repeat(50, 0),
                               atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(turns), 1, atol=1e-5)
    u = np.asarray(stats.unitary_group.rvs(key, 4))
    np.testing.assert_allclose(u @ u.conj().T, np.eye(4), atol=1e-5)
    assert stats.ortho_group.rvs(key, 4).shape == (4, 4)
