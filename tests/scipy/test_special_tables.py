"""Special functions of several arguments over the grids of `special_table`."""

import itertools
import warnings

import mpmath
import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.scipy import special
from tests.scipy.special_table import AROUND_ZERO, GRIDS, INTEGERS, RIGHT


def points(name, dtype, count=250):
    """At most `count` points of the grid, in rows of one argument, as numbers of `dtype`."""
    grid = np.array(list(itertools.product(*GRIDS[name])))
    if len(grid) > count:
        grid = grid[np.random.default_rng(len(name)).choice(len(grid), count, replace=False)]
    with np.errstate(over="ignore"):
        return grid.T.astype(dtype)


def of_scipy(name, args):
    args = list(args.astype(np.float64))
    if name in INTEGERS:
        args[0] = args[0].astype(int)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(getattr(scipy.special, name)(*args), np.float64)


def of_mpmath(name, args):
    """The real value, or NaN for a complex one and where mpmath has none."""
    with mpmath.workdps(60):
        try:
            value = RIGHT[name](*(mpmath.mpf(float(x)) for x in args))
            if mpmath.isfinite(value) and abs(value) > 1e308:
                value = mpmath.inf * mpmath.sign(mpmath.re(value))
            value = complex(value)
        except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
            return np.nan
    return value.real if value.imag == 0 else np.nan


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_extremes_of_all_arguments(dtype, rtol, name):
    args = points(name, dtype)
    ours = np.asarray(ft.jit(lambda *xs: getattr(special, name)(*xs))(*args))
    assert ours.dtype == dtype
    theirs = np.where(np.isnan(args).any(0), np.nan, of_scipy(name, args))
    # products of subnormal numbers and roundoff at zeros are as good as 0
    tiny = 1e-12 if name in AROUND_ZERO else 1e3 * float(np.finfo(dtype).tiny)

    def close(theirs):
        with np.errstate(over="ignore", under="ignore"):
            return np.isclose(ours, theirs.astype(dtype), rtol=rtol, atol=tiny, equal_nan=True)

    for i in np.flatnonzero(~close(theirs)):
        if name in RIGHT:
            theirs[i] = of_mpmath(name, args[:, i])
    bad = np.flatnonzero(~close(theirs))
    assert not bad.size, [(*map(float, args[:, i]), "ours", float(ours[i]), "right",
                           float(theirs[i])) for i in bad[:9]]
