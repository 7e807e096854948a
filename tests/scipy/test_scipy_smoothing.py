"""Splines that smooth and triangulations beside scipy.interpolate."""

import numpy as np
import pytest
import scipy.interpolate as theirs
from scipy.spatial import Delaunay

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import interpolate
from functrans.scipy.interpolate.triangulation import delaunay
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
X = np.sort(rng.random(30)) * 6
Y = np.sin(X) + 0.1 * rng.standard_normal(30)
W = rng.random(30) + 0.5
AT = np.linspace(-0.5, 7, 23)


def test_smoothing_spline():
    for lam in (1e-4, 0.01, 1.0, 100.0):
        for y, w in ((Y, None), (np.stack([Y, Y**2], 1), W)):
            found, known = (m.make_smoothing_spline(X, y, w, lam) for m in (interpolate, theirs))
            same(found(AT), known(AT), 1e-6, 1e-6)
            same(found(AT, 1), known(AT, 1), 1e-5, 1e-5)
    same(interpolate.make_smoothing_spline(X, Y.reshape(1, 30), lam=0.1, axis=1)(AT),
         theirs.make_smoothing_spline(X, Y.reshape(1, 30), lam=0.1, axis=1)(AT), 1e-6, 1e-6)
    # SciPy's search for lam ends early
    same(interpolate.make_smoothing_spline(X, Y)(AT), theirs.make_smoothing_spline(X, Y)(AT), 5e-3,
         5e-3)
    # a line needs no curvature, at any price
    same(interpolate.make_smoothing_spline(X, 2 * X + 1)(AT), 2 * AT + 1, 1e-8)

    def value(x, y, w, lam):
        return interpolate.make_smoothing_spline(x, y, w, lam)(jnp.array([1.0, 2.5]))

    check_grads(value, (X[::2], Y[::2], W[::2], np.array(0.3)), 1, atol=1e-4, rtol=1e-4)
    many = ft.vmap(lambda y: interpolate.make_smoothing_spline(X, y, lam=0.1)(AT))(
        np.stack([Y, Y[::-1]]))
    same(many[1], interpolate.make_smoothing_spline(X, Y[::-1], lam=0.1)(AT), 1e-7, 1e-7)
    with pytest.raises(ShapeError, match="a lam of its own"):
        interpolate.make_smoothing_spline(X, np.stack([Y, Y], 1))


def test_the_price_that_is_found():
    def value(y):
        return interpolate.make_smoothing_spline(X, y)(jnp.array([1.0, 2.5]))

    check_grads(value, (Y,), 1, modes=["rev"], atol=1e-4, rtol=1e-4)
    same(ft.jit(value)(Y), value(Y), 1e-7, 1e-7)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_as_few_knots_as_a_distance_allows(k):
    for s in (0.05, 0.3, 2.0):
        found = [np.asarray(t) for t in interpolate.generate_knots(X, Y, k=k, s=s, w=W)]
        known = list(theirs.generate_knots(X, Y, k=k, s=s, w=W))
        assert len(found) == len(known)
        same(tuple(found), tuple(known))
        made, other = (m.make_splrep(X, Y, k=k, s=s, w=W) for m in (interpolate, theirs))
        # SciPy's leaves s within a thousandth
        same(made(X), other(X), 2e-3, 2e-3)
        left = ((np.asarray(made(X)) - Y) ** 2 * W**2).sum()
        assert left < s * (1 + 1e-6)
        if len(made.t) > 2 * k + 2 and len(made.t) < len(X) + k + 1:
            same(left, s, 1e-6)
    check_grads(lambda y: interpolate.make_splrep(X, y, k=k, s=0.3)(AT[5:8]), (Y,), 1, atol=1e-3,
                rtol=1e-3)


def test_splines_with_methods():
    found, known = (m.UnivariateSpline(X, Y, s=0.3, ext=3) for m in (interpolate, theirs))
    same(found.get_residual(), known.get_residual(), 2e-3)
    same(found(AT), known(AT), 1e-2, 1e-2)
    same(found.get_knots(), known.get_knots())
    for ext in (0, "zeros", "const"):
        for name, args in (("InterpolatedUnivariateSpline", ()), ("LSQUnivariateSpline", (
                [2.0, 4.0],))):
            found, known = (getattr(m, name)(X, Y, *args, ext=ext) for m in (interpolate, theirs))
            same(found(AT), known(AT), 1e-8, 1e-8)
            same(found.derivative(2)(X), known.derivative(2)(X), 1e-7, 1e-7)
            same(found.integral(1.0, 5.0), np.asarray(known.integral(1.0, 5.0)), 1e-9)
            same(found.derivatives(2.0), known.derivatives(2.0), 1e-7)
            same(found.antiderivative()(X), known.antiderivative()(X), 1e-8, 1e-8)
            same(found.get_residual(), known.get_residual(), 1e-7, 1e-20)
            same(found.get_coeffs(), known.get_coeffs(), 1e-8)
    box = interpolate.LSQUnivariateSpline(X, Y, [2.0], W, (-1.0, 8.0))
    same(box(AT), theirs.LSQUnivariateSpline(X, Y, [2.0], W, (-1.0, 8.0))(AT), 1e-7, 1e-7)
    same(ft.jit(lambda f, x: f(x))(box, AT), box(AT))
    tck = theirs.splrep(X, Y, s=0)
    for name in ("splder", "splantider"):
        ours, known = (getattr(m, name)(tck) for m in (interpolate, theirs))
        same(tuple(ours[:2]), tuple(known[:2]), 1e-9, 1e-9)
        assert ours[2] == known[2]
    same(interpolate.spalde(2.0, tck), np.asarray(theirs.spalde(2.0, tck)))
    ours, known = (m.splrep(X, Y, w=10 * W) for m in (interpolate, theirs))
    same(interpolate.splev(X, ours), theirs.splev(X, known), 2e-2, 2e-2)
    ours, known = (m.splrep(X, Y, task=-1, t=[2.0, 4.0]) for m in (interpolate, theirs))
    same(interpolate.splev(X, ours), theirs.splev(X, known), 1e-8)
    with pytest.raises(ArgumentError, match="y is traced"):
        ft.jit(lambda y: interpolate.UnivariateSpline(X, y, s=0.3)(1.0))(Y)
    with pytest.raises(ArgumentError, match="does not take ext=2"):
        interpolate.UnivariateSpline(X, Y, ext=2)


def volume(points, simplices):
    sides = points[simplices[:, 1:]] - points[simplices[:, :1]]
    return abs(np.linalg.det(sides)).sum()


@pytest.mark.parametrize(("count", "dims"), [(10, 2), (200, 2), (40, 3), (20, 4)])
def test_triangulation(count, dims):
    points = np.random.default_rng(count).random((count, dims)) * [100, 1, 3, 2][:dims]
    ours, known = (np.sort(s, 1).tolist() for s in (delaunay(points), Delaunay(points).simplices))
    assert sorted(ours) == sorted(known)


def test_triangulation_of_grids_and_of_points_twice():
    for shape in ((9, 5), (4, 3, 4)):
        axes = [np.linspace(0, 1 + i, n) for i, n in enumerate(shape)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(shape))
        whole = np.prod([a[-1] for a in axes]) * (1, 1, 2, 6)[len(shape)]
        np.testing.assert_allclose(volume(points, delaunay(points)), whole)
        np.testing.assert_allclose(volume(points, delaunay(np.repeat(points, 2, 0)) // 2), whole)
        linear = interpolate.LinearNDInterpolator(points, points @ np.arange(1.0, 1 + len(shape)))
        same(linear(points), points @ np.arange(1.0, 1 + len(shape)), 1e-9)
    angles = np.arange(12) * np.pi / 6
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    np.testing.assert_allclose(volume(circle, delaunay(circle)), 6.0)


@pytest.mark.one_in(1)
@pytest.mark.parametrize("dims", [2, 3])
def test_linear_between_scattered_points(dims):
    points = rng.random((40, dims))
    values = rng.standard_normal((40, 2))
    places = rng.random((60, dims)) * 1.2 - 0.1
    found, known = (m.LinearNDInterpolator(points, values) for m in (interpolate, theirs))
    same(found(places), known(places), 1e-8)
    same(found(*places.T), known(*places.T), 1e-8)
    for rescale in (False, True):
        same(interpolate.griddata(points * ([50] + [1] * (dims - 1)), values[:, 0], places,
                                  fill_value=-1.0, rescale=rescale),
             theirs.griddata(points * ([50] + [1] * (dims - 1)), values[:, 0], places,
                             fill_value=-1.0, rescale=rescale), 1e-8)
    inside = places[np.isfinite(known(places)[:, 0])][:4]
    check_grads(lambda p, v, x: interpolate.LinearNDInterpolator(p, v)(x),
                (points, values, inside), 1, eps=1e-6, atol=1e-3, rtol=1e-3)
    same(ft.jit(ft.vmap(found))(places), found(places), 1e-12)
    with pytest.raises(ArgumentError, match="points is traced"):
        ft.jit(lambda p: interpolate.LinearNDInterpolator(p, values)(places))(points)
    with pytest.raises(ArgumentError, match="fewer dimensions"):
        interpolate.LinearNDInterpolator(points * ([1] * (dims - 1) + [0]), values)
    with pytest.raises(ShapeError, match="n > dims"):
        interpolate.LinearNDInterpolator(points[:dims], values[:dims])
    with pytest.raises(ArgumentError, match="cubic"):
        interpolate.griddata(points, values[:, 0], places, "cubic")
