"""Splines on grids, radial functions and polynomials through all values, beside SciPy's."""

import numpy as np
import pytest
import scipy.interpolate as theirs

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import interpolate
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)


def close(ours, known, what=""):
    same(ours, known, 1e-8, 1e-8, what)


GRID = np.arange(7) * 0.6 + 0.1 * rng.random(7), np.arange(6) * 0.5 + 0.1 * rng.random(6)
VALUES = rng.standard_normal((7, 6, 2))
INSIDE = np.stack([rng.uniform(g[0], g[-1], 5) for g in GRID], -1)


def near(ours, known, what=""):
    """Equal to what SciPy's iterative solver leaves."""
    same(ours, known, 1e-3, 3e-3, what)


def by_lines(values, at):
    """The cubic spline of a grid at one place, along one axis after the other."""
    for points, x in zip(GRID, at, strict=True):
        values = theirs.make_interp_spline(points, values)(x)
    return values


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["slinear", "cubic", "quintic", "pchip"])
def test_methods_of_grids(method):
    outside = np.concatenate([INSIDE, [[-0.1, 1.0], [1.0, 2.8]]])
    for fill in (np.nan, None, 7.0):
        known = theirs.RegularGridInterpolator(GRID, VALUES, method, False, fill)
        ours = interpolate.RegularGridInterpolator(GRID, VALUES, method, False, fill)
        near(ours(outside), known(outside), fill)
    values = VALUES[..., 0]
    near(interpolate.interpn(GRID, values, INSIDE, method),
          theirs.interpn(GRID, values, INSIDE, method))
    cube = (GRID[0], GRID[1], GRID[0][::-1] * -1), rng.standard_normal((7, 6, 7))
    at = np.concatenate([INSIDE, -INSIDE[:, :1]], axis=1)
    near(interpolate.interpn(*cube, at, method), theirs.interpn(*cube, at, method))
    if method != "pchip":
        for nu in ((1, 0), (0, 1), (1, 1)):
            ours = interpolate.RegularGridInterpolator(GRID, VALUES, method)
            known = theirs.RegularGridInterpolator(GRID, VALUES, method)
            near(ours(INSIDE, nu=nu), known(INSIDE, nu=nu), nu)

    if method == "cubic":
        close(interpolate.interpn(GRID, VALUES, INSIDE, method),
              [by_lines(VALUES, at) for at in INSIDE])

    def of(a, values, at):
        return interpolate.RegularGridInterpolator((a, GRID[1]), values, method)(at)

    check_grads(of, (GRID[0], VALUES, INSIDE[:2]), 1)
    ours = interpolate.RegularGridInterpolator(GRID, VALUES, method)
    same(ft.jit(ft.vmap(lambda a: ours(a)))(INSIDE), ours(INSIDE))


def test_grids_of_few_points():
    few = np.arange(3.0), np.arange(3.0)
    with pytest.raises(ShapeError, match="needs 4 along each axis"):
        interpolate.RegularGridInterpolator(few, np.ones((3, 3)), "cubic")
    with pytest.raises(ArgumentError, match="only splines"):
        interpolate.RegularGridInterpolator(few, np.ones((3, 3)))(np.ones((1, 2)), nu=(1, 0))


Y = rng.random((12, 2))
D = rng.standard_normal((12, 3))
KERNELS = {"linear": None, "thin_plate_spline": None, "cubic": None, "quintic": None,
           "multiquadric": 1.5, "inverse_multiquadric": 1.5, "inverse_quadratic": 1.5,
           "gaussian": 2.0}


@pytest.mark.parametrize("kernel", KERNELS)
def test_radial_functions(kernel):
    at = rng.random((4, 2))
    for options in ({}, {"smoothing": 0.1}, {"neighbors": 8}, {"degree": 2}):
        options = {**options, "kernel": kernel, "epsilon": KERNELS[kernel]}
        known = theirs.RBFInterpolator(Y, D, **options)(at)
        ours = interpolate.RBFInterpolator(Y, D, **options)
        close(ours(at), known, options)
    close(interpolate.RBFInterpolator(Y, D, kernel=kernel, epsilon=KERNELS[kernel])(Y), D)


def test_derivatives_of_radial_functions():
    at = rng.random((2, 2))
    for kernel in ("thin_plate_spline", "gaussian", "linear"):
        check_grads(lambda y, d, e, x, kernel=kernel: interpolate.RBFInterpolator(
            y, d, kernel=kernel, epsilon=e)(x), (Y, D, np.array(5.0), at), 1, atol=1e-4, rtol=1e-4)
    made = interpolate.RBFInterpolator(Y, D)
    same(ft.jit(ft.vmap(lambda x: made(x[None])[0]))(at), made(at))
    assert np.isfinite(np.asarray(ft.grad(lambda x: made(x).sum())(Y))).all()
    with pytest.raises(ArgumentError, match="needs epsilon"):
        interpolate.RBFInterpolator(Y, D, kernel="gaussian")
    with pytest.raises(ShapeError, match="more terms"):
        interpolate.RBFInterpolator(Y[:2], D[:2])


def test_the_nearest_point():
    at = rng.random((4, 3, 2))
    known = theirs.NearestNDInterpolator(Y, D, rescale=True)(at)
    close(interpolate.NearestNDInterpolator(Y, D, rescale=True)(at), known)
    where = at[..., 0], at[..., 1]
    close(interpolate.griddata(Y, D[:, 0], where, "nearest"),
          theirs.griddata(Y, D[:, 0], where, "nearest"))
    for method in ("nearest", "linear", "cubic"):
        close(interpolate.griddata(Y[:, 0], D[:, 0], at[..., 0], method),
              theirs.griddata(Y[:, 0], D[:, 0], at[..., 0], method), method)
    with pytest.raises(ArgumentError, match="slopes"):
        interpolate.griddata(Y, D, at, "cubic")


def test_polynomials_through_all_values():
    x, y = np.cos(np.arange(7)), rng.standard_normal((2, 7))
    at = np.concatenate([rng.uniform(-1, 1, 4), x[:2]])
    ours = interpolate.BarycentricInterpolator(x, y, axis=1)
    known = theirs.KroghInterpolator(x, y, axis=1)
    close(ours(at), known(at))
    for nu in (1, 2):
        close(ours.derivative(at, nu), known.derivative(at, nu), nu)
        close(interpolate.krogh_interpolate(x, y, at, nu, axis=1),
              theirs.krogh_interpolate(x, y, at, nu, axis=1), nu)
    grown = np.sort(x)
    close(interpolate.pchip_interpolate(grown, y, at, 1, 1),
          theirs.pchip_interpolate(grown, y, at, 1, 1))
    check_grads(lambda x, y, at: interpolate.barycentric_interpolate(x, y, at),
                (x, y[0], at), 1, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_names_of_fitpack(k):
    x, y = np.sort(rng.random(9)) * 3, rng.standard_normal(9)
    at = np.linspace(-0.5, 3.5, 12)
    known, ours = theirs.splrep(x, y, k=k, s=0), interpolate.splrep(x, y, k=k)
    close((*ours[:2], ours[2]), known)
    for ext in (0, 1, 3):
        close(interpolate.splev(at, ours, 1, ext), theirs.splev(at, known, 1, ext), ext) \
            if ext != 3 else None
        close(interpolate.splev(at, ours, 0, ext), theirs.splev(at, known, 0, ext), ext)
    close(interpolate.splint(0.3, 9.0, ours), np.asarray(theirs.splint(0.3, 9.0, known)))
    spline = theirs.BSpline(*known)
    for how in (True, False, "periodic"):
        spline.extrapolate = how
        mine = interpolate.BSpline(*known, extrapolate=how)
        close(mine.integrate(x[0] - 0.3, x[-1] + 0.4), spline.integrate(x[0] - 0.3, x[-1] + 0.4),
              how)
    close(mine.antiderivative(2)(x), spline.antiderivative(2)(x))
    close(interpolate.InterpolatedUnivariateSpline(x, y, k=k)(at),
          theirs.InterpolatedUnivariateSpline(x, y, k=k)(at))
    knots = np.r_[[x[0]] * (k + 1), x[4], [x[-1]] * (k + 1)]
    weights = rng.random(9) + 0.5
    close(interpolate.make_lsq_spline(x, y, knots, k, weights)(at),
          theirs.make_lsq_spline(x, y, knots, k, weights)(at))
    hat = np.sort(rng.random(k + 2))
    close(interpolate.BSpline.basis_element(hat)(hat), theirs.BSpline.basis_element(hat)(hat))


def test_surfaces():
    z = VALUES[..., 0]
    ours = interpolate.RectBivariateSpline(*GRID, z, kx=3, ky=2)
    known = theirs.RectBivariateSpline(*GRID, z, kx=3, ky=2)
    x, y = np.sort(INSIDE.T, axis=1)
    for order in ((0, 0), (1, 0), (0, 1), (2, 1)):
        close(ours(x, y, *order), known(x, y, *order), order)
        close(ours.ev(*INSIDE.T, *order), known.ev(*INSIDE.T, *order), order)
    check_grads(lambda z: interpolate.RectBivariateSpline(*GRID, z).ev(*INSIDE.T), (z,), 1)
    same(ft.jit(lambda s, x: s.ev(x, jnp.ones_like(x)))(ours, x), ours.ev(x, np.ones(5)))


def test_trees():
    for tree in (interpolate.RBFInterpolator(Y, D), interpolate.NearestNDInterpolator(Y, D),
                 interpolate.BarycentricInterpolator(Y[:, 0], D),
                 interpolate.RectBivariateSpline(*GRID, VALUES[..., 0])):
        again = ft.tree.map(lambda x: x, tree)
        assert type(again) is type(tree) and again is not tree
