"""Derivatives of distribution functions far out, and random numbers that are drawn by rejection."""

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.scipy import stats
from tests.scipy.test_distributions import CONTINUOUS as OLDER
from tests.scipy.test_distributions import parameters
from tests.scipy.test_more_distributions import CONTINUOUS as NEWER

SHAPES = {name: parameters(name)[:-2] for name in OLDER} | {
    name: [np.float64(s) for s in shapes] for name, shapes in NEWER.items()}
FAR = np.array([1e-140, 1e-20, 0.3, 1.3, 40.0, 1e20, 1e160, 1e300])
SCALES = np.array([0.5, 1e120])


@pytest.mark.one_in(80)
@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", [n for n in SHAPES if n != "vonmises"])
def test_slopes_far_out(name, method):
    """In x and in the scale: x times that of x is less the scale times that of the scale.

    Both are beside differences of the values at near multiples of x, wherever these are numbers.
    """
    fun = getattr(getattr(stats, name), method)
    x, scale = (v.ravel() for v in np.meshgrid([*-FAR, *FAR], SCALES))
    some = np.abs(x / scale) > 1e-280
    x, scale = x[some], scale[some]
    rest = [np.full_like(x, s) for s in SHAPES[name]]

    def at(x, scale):
        return fun(x, *rest, np.zeros_like(x), scale)

    def both(x, scale):
        value, back = ft.vjp(at, x, scale)
        return value, *back(ft.numpy.ones_like(value))

    value, by_x, by_scale = (np.asarray(v) for v in ft.jit(both)(x, scale))
    with np.errstate(all="ignore"):
        steep = np.abs(by_x * x / value)
        h = 1e-3 / np.clip(np.nan_to_num(steep, nan=1.0, posinf=1.0), 1.0, 1e5)
        near = [np.asarray(ft.jit(at)(x * (1.0 + k * h), scale)) for k in (-2, -1, 1, 2)]
        numeric = (8.0 * (near[2] - near[1]) - (near[3] - near[0])) / (12.0 * h)
        noise = 1e-6 * np.abs(numeric) + 1e-12 * np.abs(value) / h + 1e-280
        known = np.isfinite([value, *near, numeric]).all(0)
        # beside an end of the support a difference is none
        known &= ~(((near[0] == value) | (near[3] == value)) & (near[0] != near[3]))
        fits = [known & (np.abs(numeric / v) < 1e305) & ~(np.abs(numeric / v) < 1e-290)
                for v in (x, scale)]
        misses = np.array([np.abs(by_x * x - numeric), np.abs(by_scale * scale + numeric)])
    bad = np.array(fits) & ~(misses <= noise)
    assert not bad.any(), [(float(x[i]), float(scale[i]), float(value[i]), float(by_x[i]),
                            float(by_scale[i]), float(numeric[i]))
                           for i in np.flatnonzero(bad.any(0))[:5]]


@pytest.mark.parametrize("name", ["norm", "cauchy", "gamma"])
def test_slopes_of_impossible_parameters_are_not_numbers(name):
    shapes = SHAPES[name]
    for method in ("cdf", "logcdf", "logsf"):
        for scale in (0.0, -1.0):
            slopes = ft.grad(getattr(getattr(stats, name), method), tuple(
                range(len(shapes) + 3)))(np.float64(1.5), *shapes, np.float64(0.0),
                                         np.float64(scale))
            assert np.isnan([float(slopes[0]), float(slopes[-2]), float(slopes[-1])]).all()


def test_slopes_of_the_inverse_gaussian_in_its_mean():
    z, mu = np.array([1e-2, 0.4, 1.6, 30.0]), np.full(4, 0.7)
    for method in ("logcdf", "logsf"):
        fun, h = getattr(stats.invgauss, method), 1e-6
        slope = np.asarray(ft.jvp(lambda m, f=fun: f(z, m), (mu,), (np.ones(4),))[1])
        numeric = (np.asarray(fun(z, mu + h)) - np.asarray(fun(z, mu - h))) / (2 * h)
        np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-9)
    # of exp(-1 / (2 z) + 1 / mu) near 0, and of exp(-z / (2 mu^2)) far out
    assert float(ft.grad(stats.invgauss.logcdf, 1)(np.float64(1e-120), np.float64(2.0))) \
        == pytest.approx(-1 / 4, rel=1e-9)
    assert float(ft.grad(stats.invgauss.logsf, 1)(np.float64(1e300), np.float64(2.0))) \
        == pytest.approx(1e300 / 8, rel=1e-9)


DRAWN = {"argus": (1.9,), "cosine": (), "dgamma": (0.7,), "foldcauchy": (2.0,),
         "foldnorm": (0.7,), "gengamma": (2.0, -1.5), "loggamma": (0.3,), "ncx2": (1.5, 20.0),
         "pearson3": (-1.2,), "recipinvgauss": (0.7,), "vonmises": (2.5,)}
COUNTED = {"betabinom": (20.0, 0.5, 2.0), "binom": (30.0, 0.7), "hypergeom": (100.0, 40.0, 30.0),
           "nbinom": (0.5, 0.1), "skellam": (2.0, 7.0)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [*DRAWN, *COUNTED])
def test_random_numbers_of_their_own_method(name):
    """Kolmogorov's and the chi-squared test of 20,000 numbers, at a probability of 1e-4."""
    shapes = (DRAWN | COUNTED)[name]
    x = np.asarray(getattr(stats, name).rvs(ft.random.key(5), *map(np.float64, shapes),
                                            shape=(20_000,)))
    theirs = getattr(scipy.stats, name)(*shapes)
    if name in DRAWN:
        assert scipy.stats.kstest(x, theirs.cdf).pvalue > 1e-4
    else:
        values, counts = np.unique(x, return_counts=True)
        wanted = theirs.pmf(values) * x.size
        often = wanted > 5
        square = ((counts - wanted)[often] ** 2 / wanted[often]).sum()
        assert scipy.stats.chi2.sf(square, often.sum() - 1) > 1e-4


def test_draws_by_rejection_are_those_of_their_key_and_move_with_their_shape():
    keys = ft.random.split(ft.random.key(2), 3)
    kappa = np.array([0.1, 1.3, 500.0])

    def draw(key, kappa):
        return stats.vonmises.rvs(key, kappa, shape=(4,))

    mapped = ft.jit(ft.vmap(draw))(keys, kappa)
    np.testing.assert_allclose(mapped, [np.asarray(draw(k, v)) for k, v in zip(
        keys, kappa, strict=True)], rtol=1e-12)
    key, shape = ft.random.key(4), np.float64(1.3)
    for name in ("vonmises", "argus"):
        family = getattr(stats, name)
        angle = family.rvs(key, shape, shape=(5,))
        moved = ft.jvp(lambda k, f=family: f.rvs(key, k, shape=(5,)), (shape,), (1.0,))[1]
        same = ft.jvp(lambda k, f=family, a=angle: f.cdf(a, k), (shape,), (1.0,))[1]
        # what the distribution function gains by the shape it loses by the number
        np.testing.assert_allclose(same + moved * family.pdf(angle, shape), np.zeros(5), atol=1e-12)


def test_draws_of_ends_and_of_impossible_shapes():
    key = ft.random.key(0)

    def draw(name, *shapes):
        return np.asarray(getattr(stats, name).rvs(key, *map(np.float64, shapes), shape=(3,)))

    assert (draw("vonmises", np.inf) == 0).all() and (np.abs(draw("vonmises", 1e30)) < 1e-8).all()
    assert (np.abs(draw("vonmises", 0.0)) <= np.pi).all()
    for name, shape in (("vonmises", -1.0), ("vonmises", np.nan), ("argus", -1.0),
                        ("dgamma", -1.0), ("pearson3", np.nan)):
        assert np.isnan(draw(name, shape)).all()
    assert (draw("hypergeom", 1, 1, 1) == 1).all() and (draw("hypergeom", 0, 0, 0) == 0).all()
    assert (draw("hypergeom", 10, 10, 4) == 4).all()
