"""Distributions at extremes of the variable: logarithms beside SciPy, and finite gradients."""

import warnings

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.scipy import stats

X = np.array([1e-30, 1e-5, 0.3, 0.5, 0.9, 1.5, 3.0, 40.0, 1e3, 1e5, 1e10, -1e-5, -0.5, -3.0, -40.0,
              -1e5, -1e10])
SHAPES = {
    "arcsine": (), "beta": (0.5, 2.5), "betaprime": (2.5, 0.5), "cauchy": (), "chi": (2.5,),
    "chi2": (0.5,), "expon": (), "exponnorm": (2.5,), "f": (2.5, 0.5), "fisk": (2.5,),
    "gamma": (2.5,), "gennorm": (2.5,), "genpareto": (0.5,), "gompertz": (0.5,), "gumbel_l": (),
    "gumbel_r": (), "halfcauchy": (), "halflogistic": (), "halfnorm": (), "hypsecant": (),
    "invgamma": (2.5,), "invgauss": (2.5,), "johnsonsu": (2.5, 2.5), "laplace": (), "levy": (),
    "logistic": (), "lognorm": (2.5,), "lomax": (2.5,), "maxwell": (), "nakagami": (2.5,),
    "norm": (), "pareto": (2.5,), "powerlaw": (2.5,), "rayleigh": (), "t": (2.5,),
    "triang": (0.3,), "truncnorm": (-1.0, 2.0), "uniform": (), "weibull_min": (2.5,)}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("method", ["logpdf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", SHAPES)
def test_logarithms_and_their_gradients(name, method):
    args = [X, *(np.full_like(X, s) for s in (*SHAPES[name], 0.0, 1.0))]
    fun = getattr(getattr(stats, name), method)

    def both(*args):
        value, back = ft.vjp(fun, *args)
        return value, back(ft.numpy.ones_like(value))

    value, slopes = ft.jit(both)(*args)
    value = np.asarray(value)
    np.testing.assert_allclose(np.asarray(fun(*args)), value, rtol=1e-12)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = getattr(getattr(scipy.stats, name), method)(*args)
    # where SciPy's probability or density is 0 or 1 by underflow, its logarithm is infinite or 0
    known = np.isfinite(theirs) & (np.abs(theirs) > 1e-15) | ~np.isfinite(value)
    if name != "fisk":   # of which SciPy has differences from 1 in the upper tail
        np.testing.assert_allclose(value[known], theirs[known], rtol=1e-7)
    assert not (np.isinf(value) & np.isfinite(theirs)).any()
    # at the far left of a density of 1 / x its derivatives overflow
    plain = np.isfinite(value) & (np.abs(value) < 1e25)
    for slope in slopes:
        assert np.isfinite(np.asarray(slope)[plain]).all(), X[plain][~np.isfinite(
            np.asarray(slope)[plain])]


def test_student_of_infinite_degrees_is_normal():
    x = np.array([-40.0, -1.0, 0.0, 0.3, 1e3])
    for method in ("logpdf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(stats.t, method)(x, np.inf),
                                   getattr(scipy.stats.norm, method)(x), rtol=1e-12)


def test_tails_of_the_inverse_gaussian():
    """The two terms of the distribution are equal but for roundoff in its tails."""
    for x in (1e-30, 1e-5, 1e3, 1e10):
        for method in ("logcdf", "logsf"):
            assert float(getattr(stats.invgauss, method)(np.float64(x), 2.5)) == pytest.approx(
                getattr(scipy.stats.invgauss, method)(x, 2.5), rel=1e-8)
