"""Special functions of one number at extreme arguments, beside SciPy in float64."""

import warnings

import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.scipy import special

EXTREMES = np.array([
    -np.inf, -1e300, -150.5, -7.0, -2.5, -1.0, -1e-5, -1e-300, -0.0, 0.0, 1e-300, 1e-5, 0.3, 1.0,
    2.0, 3.5, 20.0, 150.0, 1e5, 1e300, np.inf, np.nan])
NAMES = sorted(
    n for n in special.__all__ if isinstance(getattr(scipy.special, n, None), np.ufunc)
    and getattr(scipy.special, n).nin == 1 and any(
        t.split("->")[0] == "d" for t in getattr(scipy.special, n).types))

# where SciPy has NaN for a limit, or 0 for what it has no digits of, ours are limits
LIMITS = {"airy", "airye", "fresnel", "kei", "keip", "kelvin", "ker", "kerp", "j0", "j1", "y0",
          "y1", "sindg", "cosdg", "tandg", "cotdg", "beip", "spence", "itj0y0", "it2j0y0", "iti0k0",
          "it2i0k0", "itairy", "itstruve0", "it2struve0", "itmodstruve0"}
# what differs, as in JAX or by the limit from the other side
SAID = {"digamma": [0.0], "psi": [0.0], "gammaln": [-np.inf], "rgamma": [-np.inf, -1e300]}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in LIMITS])
def test_extreme_arguments(name):
    x = EXTREMES[~np.isin(EXTREMES, SAID.get(name, []))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(scipy.special, name)(x)
    ours = getattr(special, name)(x)
    many = isinstance(theirs, tuple)
    for u, v in zip(ours if many else [ours], theirs if many else [theirs], strict=True):
        u = np.asarray(u)
        huge = (np.abs(u) > 1e290) & (np.abs(v) > 1e290) & (np.sign(u) == np.sign(v))
        close = np.isclose(u, v, rtol=1e-7, atol=1e-290, equal_nan=True) | huge
        assert close.all(), [(float(a), u[i], v[i]) for i, a in enumerate(x) if not close[i]]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", sorted(LIMITS & set(NAMES)))
def test_limits_are_numbers(name):
    """NaN alone gives NaN, but for functions of a side or without a limit."""
    x = np.array([1e-300, 0.3, 20.0, 1e5])
    for out in ft.tree.leaves(getattr(special, name)(x)):
        assert not np.isnan(np.asarray(out)).any()


def test_far_ends():
    np.testing.assert_allclose(special.wrightomega(np.array([1e59, 1e61, 1e300, np.inf])),
                               [1e59, 1e61, 1e300, np.inf])
    y = -np.array([9e7, 1.1e8, 1e12, 1e20, 1e59, 1e300, np.inf])
    np.testing.assert_allclose(special.ndtri_exp(y), scipy.special.ndtri_exp(y), rtol=1e-13)
