"""functrans.scipy.interpolate beside scipy.interpolate: values, derivatives, trees."""

import numpy as np
import pytest
import scipy.interpolate as theirs

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import interpolate
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
AT = np.array([[-0.5, 0, 0.3], [1.7, 4.9, 7.2]])
BOUNDARIES = ["not-a-knot", "natural", "clamped", "periodic",
              ((1, np.full((2, 3), 0.5)), (2, np.full((2, 3), -0.3))),
              ("not-a-knot", (1, np.full((2, 3), 2.0)))]


def close(ours, known, what):
    same(ours, known, 1e-9, 1e-9, what)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_cubic_splines(n):
    x, y = np.sort(rng.random(n)) * 5, rng.standard_normal((2, n, 3))
    for bc in BOUNDARIES:
        values = y.copy()
        if bc == "periodic":
            values[:, -1] = values[:, 0]
        known = theirs.CubicSpline(x, values, axis=1, bc_type=bc)
        ours = interpolate.CubicSpline(x, values, axis=1, bc_type=bc)
        for nu in (0, 1, 2):
            close(ours(AT, nu), known(AT, nu), (bc, nu))
        close(ours.integrate(0.2, 3.0), known.integrate(0.2, 3.0), bc)
        close(ours.antiderivative()(AT), known.antiderivative()(AT), bc)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_other_cubics(n):
    x, y = np.sort(rng.random(n)) * 5, rng.standard_normal((2, n, 3))
    for name, options in (("PchipInterpolator", {}), ("Akima1DInterpolator", {}),
                          ("Akima1DInterpolator", {"method": "makima"})):
        known = getattr(theirs, name)(x, y, axis=1, **options)
        close(getattr(interpolate, name)(x, y, axis=1, **options)(AT), known(AT), name)
    known = theirs.CubicHermiteSpline(x, y, y**2, axis=1, extrapolate=False)
    close(interpolate.CubicHermiteSpline(x, y, y**2, axis=1, extrapolate=False)(AT), known(AT), n)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5])
def test_b_splines(k):
    x, y = np.sort(rng.random(9)) * 5, rng.standard_normal((2, 9, 3))
    known = theirs.make_interp_spline(x, y, k, axis=1)
    ours = interpolate.make_interp_spline(x, y, k, axis=1)
    for nu in range(min(k, 2) + 1):
        close(ours(AT, nu), known(AT, nu), nu)
    close(interpolate.BSpline(known.t, known.c, k, False)(AT),
          theirs.BSpline(known.t, known.c, k, False)(AT), k)


KINDS = {
    "spline": interpolate.CubicSpline, "pchip": interpolate.PchipInterpolator,
    "akima": interpolate.Akima1DInterpolator, "b": interpolate.make_interp_spline,
    "line": interpolate.interp1d,
    "natural": lambda x, y: interpolate.CubicSpline(x, y, bc_type="natural")}


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind):
    x, y = np.array([0, 0.8, 1.7, 2.9, 4.0, 5.2]), rng.standard_normal(6)
    check_grads(lambda x, y, at: KINDS[kind](x, y)(at), (x, y, np.array([0.3, 2.2])), 1)


def test_interp1d():
    x, y = rng.permutation(7) * 1.0, rng.standard_normal((3, 7))
    at = np.array([-0.5, 0, 0.5, 1.5, 2.2, 6, 6.5])
    for kind in ("linear", "nearest", "nearest-up", "previous", "next", "zero", "quadratic",
                 "cubic", "slinear"):
        for fill in (np.nan, "extrapolate", (1.0, 2.0)):
            known = theirs.interp1d(x, y, kind, fill_value=fill, bounds_error=False)
            close(interpolate.interp1d(x, y, kind, fill_value=fill)(at), known(at), (kind, fill))
    at = np.array([[1.5, 2.0]])
    close(interpolate.interp1d(x, y.T, axis=0)(at), theirs.interp1d(x, y.T, axis=0)(at), "axis")


POINTS = np.array([0, 1.0, 3.0]), np.array([-1.0, 0, 2.0, 5.0])
VALUES = rng.standard_normal((3, 4, 2))


def test_grids():
    at = rng.uniform(-2, 6, (5, 4, 2))
    for method in ("linear", "nearest"):
        for fill in (np.nan, None, 7.0):
            known = theirs.RegularGridInterpolator(POINTS, VALUES, method, bounds_error=False,
                                                   fill_value=fill)
            ours = interpolate.RegularGridInterpolator(POINTS, VALUES, method, fill_value=fill)
            close(ours(at), known(at), (method, fill))
    ours = interpolate.RegularGridInterpolator(POINTS, VALUES)
    close(ours((0.5, 1.0)), theirs.RegularGridInterpolator(POINTS, VALUES)((0.5, 1.0)), "tuple")
    check_grads(lambda a, b, v, x: interpolate.RegularGridInterpolator((a, b), v)(x),
                (*POINTS, VALUES, np.array([[0.5, 1.0], [2.0, 3.0]])), 1)


def test_interpolators_are_trees():
    spline = interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 2)
    assert len(ft.tree.leaves(spline)) == 2
    same(ft.jit(lambda s, x: s(x))(spline, 1.5), 2.25)
    same(ft.grad(lambda s: s(1.5))(spline).c[:, 1], [0.125, 0.25, 0.5, 1])
    grid = interpolate.RegularGridInterpolator(POINTS, VALUES)
    at = rng.uniform(0, 2, (3, 2))
    same(ft.jit(ft.vmap(lambda a: grid(a)))(at), grid(at))
    for tree in (grid, interpolate.interp1d(np.arange(3.0), np.arange(3.0), "quadratic")):
        again = ft.tree.map(lambda x: x, tree)
        assert type(again) is type(tree) and again is not tree


def test_bad_arguments():
    with pytest.raises(ShapeError, match="a value for each"):
        interpolate.CubicSpline(np.arange(3.0), np.arange(4.0))
    with pytest.raises(ArgumentError, match="bc_type"):
        interpolate.CubicSpline(np.arange(3.0), np.arange(3.0), bc_type="free")
    with pytest.raises(ArgumentError, match="bounds_error"):
        interpolate.RegularGridInterpolator(POINTS, VALUES, bounds_error=True)
    with pytest.raises(ShapeError, match="coordinates"):
        interpolate.RegularGridInterpolator(POINTS, VALUES)(np.ones((2, 3)))
