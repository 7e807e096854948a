"""Curves, surfaces and functions on spheres as splines, beside FITPACK."""

import numpy as np
import pytest
from scipy import interpolate as theirs

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import interpolate
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
AROUND = np.linspace(0, 2 * np.pi, 24)
POINTS = np.stack([np.cos(AROUND) * (1 + 0.1 * np.sin(5 * AROUND)), np.sin(AROUND)])
NOISY = POINTS + 0.03 * rng.standard_normal(POINTS.shape)
NOISY[:, -1] = NOISY[:, 0]
U = np.linspace(0, 1, 15)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_curves_through_points(k):
    for per in (0, 1):
        (tck, u), (known, at) = (m.splprep(POINTS.copy(), s=0, k=k, per=per)
                                 for m in (interpolate, theirs))
        same((u, tck[0]), (at, known[0]))
        same(np.stack(interpolate.splev(U, tck)), np.stack(theirs.splev(U, known)), 1e-7, 1e-7)


def test_curves_near_points():
    for s, per in ((0.05, 0), (1.0, 0), (20.0, 0), (20.0, 1)):
        found, left, *_ = interpolate.splprep(NOISY, s=s, per=per, full_output=1)
        known, there, *_ = theirs.splprep(NOISY.copy(), s=s, per=per, full_output=1)
        same((found[0][0], left), (known[0][0], there), 1e-3, 1e-3)
        same(np.stack(interpolate.splev(U, found[0], 1)), np.stack(theirs.splev(U, known[0], 1)),
             1e-2, 2e-2)
    t, w = np.r_[[0.0] * 4, 0.3, 0.6, [1.0] * 4], np.arange(1, 25.0)
    (tck, _), (known, _) = (m.splprep(NOISY.copy(), task=-1, t=t, w=w)
                            for m in (interpolate, theirs))
    same(np.stack(interpolate.splev(U, tck)), np.stack(theirs.splev(U, known)))
    for s in (0, 0.5):
        (curve, u), (known, at) = (m.make_splprep(list(NOISY), s=s) for m in (interpolate, theirs))
        same(u, at)
        same(curve(U), known(U), 1e-3, 1e-3)
    check_grads(lambda x: interpolate.splprep(x, s=0.05, u=U)[0][1], (NOISY[:, :15],), 1)
    closed, _ = interpolate.make_splprep(list(NOISY), bc_type="periodic")
    same(closed(0.2), closed(1.2))
    for wrong in (lambda: interpolate.splprep(NOISY, task=-1), lambda: interpolate.splprep(
            NOISY[:, [0, 0, 1, 2, 3]]), lambda: interpolate.make_splprep(NOISY, s=-1),
            lambda: ft.jit(lambda x: interpolate.splprep(x)[1])(NOISY)):
        with pytest.raises(ArgumentError, match="splprep"):
            wrong()


def test_knots_and_zeros():
    x = np.linspace(0.5, 9, 15)
    tck = theirs.splrep(x, np.sin(x) + 0.2)
    for m, place in ((1, 2.3), (2, 2.3), (1, 0.5), (2, 9.0), (1, x[5])):
        (t, c, k), known = (f(place, tck, m) for f in (interpolate.insert, theirs.insert))
        same(t, known[0], what=(m, place))
        inner = x[:-1]  # beyond a knot at the end FITPACK has nothing
        same(theirs.splev(inner, (np.asarray(t), np.asarray(c), k)), theirs.splev(inner, tck))
    around = theirs.splrep(AROUND, np.sin(AROUND), per=1)
    for m, place in ((1, 2.3), (2, 0.05), (1, 6.2)):
        (t, c, k), known = (f(place, around, m, per=1) for f in (interpolate.insert, theirs.insert))
        same((t, c[:-4]), (known[0], known[1][:-4]), what=(m, place))
    curve, _ = theirs.splprep(POINTS.copy(), s=0)
    assert len(interpolate.insert(0.3, curve)[1]) == 2
    same(ft.jit(lambda x: interpolate.insert(x, tck)[0])(np.array(2.3)), theirs.insert(2.3, tck)[0])
    check_grads(lambda x: interpolate.insert(x, tck)[1], (np.array(2.3),), 1)
    same(interpolate.sproot(tck), theirs.sproot(tck))
    same(interpolate.sproot(curve)[0], theirs.sproot(curve)[0])
    check_grads(lambda c: interpolate.sproot((tck[0], c, 3)), (tck[1],), 1)
    with pytest.warns(RuntimeWarning, match="mest is 1"):
        interpolate.sproot(tck, 1)


PLACES = rng.random(60) * 4, rng.random(60) * 2
Z = np.sin(PLACES[0]) * np.cos(2 * PLACES[1]) + 0.02 * rng.standard_normal(60)
GRID = np.linspace(0, 4, 6), np.linspace(0, 2, 5)


def test_surfaces():
    args = (*PLACES, Z, [1.0, 2.5], [1.0], rng.random(60) + 0.5, [0, 4, 0, 2])
    ours, known = (m.LSQBivariateSpline(*args, kx=3, ky=2) for m in (interpolate, theirs))
    same((*ours.get_knots(), ours.get_coeffs(), ours.get_residual()),
         (*known.get_knots(), known.get_coeffs(), known.get_residual()), 1e-7, 1e-7)
    for how in ((), (1, 1), (2, 0)):
        same(ours(*GRID, *how), known(*GRID, *how), 1e-6, 1e-6)
    same(ours.ev(*PLACES, 1, 0), known.ev(*PLACES, 1, 0), 1e-6, 1e-6)
    for box in ((0.5, 3, 0.2, 1.9), (-1, 9, 0.2, 1.9)):
        same(ours.integral(*box), known.integral(*box))
    same(ours.partial_derivative(1, 1)(*GRID), known.partial_derivative(1, 1)(*GRID), 1e-6, 1e-6)
    for s in (None, 0.3, 0.05, 0.03):
        ours, known = (m.SmoothBivariateSpline(*PLACES, Z, s=s) for m in (interpolate, theirs))
        same(ours.get_knots(), known.get_knots(), what=s)
        same(ours(*GRID), known(*GRID), 1e-3, 1e-3)
    tck, known = (m.bisplrep(*PLACES, Z, s=0.05) for m in (interpolate, theirs))
    same(interpolate.bisplev(*GRID, tck), theirs.bisplev(*GRID, known), 1e-3, 1e-3)
    same(interpolate.bisplev(1.0, 0.5, known, 1), theirs.bisplev(1.0, 0.5, known, 1))
    tck, known = (m.bisplrep(*PLACES, Z, task=-1, tx=known[0], ty=known[1])
                  for m in (interpolate, theirs))
    same(interpolate.bisplev(*GRID, tck), theirs.bisplev(*GRID, known), 1e-7, 1e-7)
    same(ft.jit(lambda f, x: f(*x))(ours, GRID), ours(*GRID))
    check_grads(lambda z: interpolate.LSQBivariateSpline(*PLACES, z, [2.0], [1.0])(*GRID), (Z,), 1)
    for wrong in (lambda: interpolate.LSQBivariateSpline(*PLACES, Z, [2, 1], []),
                  lambda: interpolate.bisplrep(*PLACES, Z[:9]), lambda: interpolate.bisplrep(
                  *PLACES, Z, task=-1), lambda: ours(*GRID, dx=5)):
        with pytest.raises((ArgumentError, ShapeError), match=r"Spline|bisplrep"):
            wrong()


def on_sphere(theta, phi):
    return 1 + 0.3 * np.cos(theta) + 0.2 * np.sin(theta) * np.cos(phi) + 0.1 * np.sin(
        theta) ** 2 * np.sin(2 * phi)


def test_spheres():
    theta, phi = np.arccos(rng.uniform(-1, 1, 60)), rng.uniform(0, 2 * np.pi, 60)
    r = on_sphere(theta, phi) + 0.01 * rng.standard_normal(60)
    grid = np.linspace(0, np.pi, 5), np.linspace(0, 2 * np.pi, 6)
    args = theta, phi, r, [0.8, 1.6, 2.4], [1, 2, 3.5, 5], rng.random(60) + 0.5
    ours, known = (m.LSQSphereBivariateSpline(*args) for m in (interpolate, theirs))
    same((*ours.get_knots(), ours.get_coeffs()), (*known.get_knots(), known.get_coeffs()))
    for how in ((), (1, 1)):
        same(ours(*grid, *how), known(*grid, *how))
    for s, near in ((5.0, 1e-8), (0.3, 0.02), (0.03, 0.1)):
        ours, known = (m.SmoothSphereBivariateSpline(theta, phi, r, s=s)
                       for m in (interpolate, theirs))
        same(ours.get_residual(), known.get_residual(), 1e-3)
        same(ours(*grid), known(*grid), near, near)
    u, v = np.linspace(0.2, 2.9, 6), np.linspace(-np.pi, 2.8, 7)
    values, at = on_sphere(u[:, None], v), (grid[0], np.linspace(-3, 2.7, 6))
    poles = {"pole_values": (1.3, 0.7)}
    flat = {"pole_values": 1.2, "pole_exact": True, "pole_continuity": True, "pole_flat": True}
    for options, near in ((poles, 1e-9), (flat, 1e-9), ({}, 0.02), ({"pole_continuity": True},
                          0.02), ({**poles, "pole_exact": True, "pole_continuity": True}, 1e-3)):
        ours, known = (m.RectSphereBivariateSpline(u, v, values, **options)
                       for m in (interpolate, theirs))
        same(ours(u, v), values, 1e-8, 1e-8)
        same(ours(*at), known(*at), near, near, options)
    same(ours.ev(1.0, 2.5), ours.ev(1.0, 2.5 - 2 * np.pi))
    check_grads(lambda r: interpolate.RectSphereBivariateSpline(u[:4], v[:4], r).ev(1.0, 2.0),
                (values[:4, :4],), 1)
    for wrong in (lambda: ours(4.0, 1.0), lambda: interpolate.RectSphereBivariateSpline(
            u, v, values, pole_flat=True), lambda: interpolate.SmoothSphereBivariateSpline(
            theta, phi + 7, r), lambda: interpolate.LSQSphereBivariateSpline(
            theta, phi, r, [4.0], [1.0])):
        with pytest.raises(ArgumentError, match="Sphere"):
            wrong()
