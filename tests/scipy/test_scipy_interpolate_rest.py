"""Polynomials of several variables, tensor products, rational and radial functions beside SciPy."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import interpolate as theirs

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import interpolate
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
X = np.array([0, 1, 1.5, 3.0])
AT = rng.uniform(-1, 4, (5, 2))


def test_bernstein():
    c = rng.standard_normal((4, 3, 2))
    ours, known = interpolate.BPoly(c, X), theirs.BPoly(c, X)
    for how in ((0,), (2,), (0, False), (0, "periodic")):
        same(ours(AT, *how), known(AT, *how), what=how)
    for ends in ((0.2, 2.2), (-1.0, 7.0, "periodic")):
        same(ours.integrate(*ends), known.integrate(*ends))
    same(ours.antiderivative(2)(AT), known.antiderivative(2)(AT))
    same(interpolate.BPoly.from_power_basis(interpolate.PPoly(c, X)).c,
         theirs.BPoly.from_power_basis(theirs.PPoly(c, X)).c)
    for name, ends in itertools.product(("PPoly", "BPoly"), ([4.0, 5.0], [-3.0, -2.0])):
        more = rng.standard_normal((4, 2, 2))
        pair = [getattr(m, name)(c.copy(), X) for m in (interpolate, theirs)]
        for made in pair:
            made.extend(more, np.array(ends))
        same((pair[0].c, pair[0].x), (pair[1].c, pair[1].x))
    y = rng.standard_normal((4, 2, 3))
    for orders in (None, 2, 3):
        same(interpolate.BPoly.from_derivatives(X, y, orders).c,
             theirs.BPoly.from_derivatives(X, y, orders).c)
    mixed = [[1.0, 2], [3, 4.0, 5.0], [1.0], [2.0, 3.0]]
    same(interpolate.BPoly.from_derivatives(X, mixed).c, theirs.BPoly.from_derivatives(X, mixed).c)
    same(ft.jit(lambda p, x: p(x))(ours, AT), ours(AT))
    check_grads(lambda c, x: interpolate.BPoly(c, X)(x), (c, AT[0]), 1)


def test_polynomials_of_several_variables():
    c, x = rng.standard_normal((3, 4, 2, 3, 2)), (np.array([0, 1, 2.0]), np.array([0, 0.5, 2, 3]))
    ours, known = interpolate.NdPPoly(c, x), theirs.NdPPoly(c, x)
    at = rng.uniform(-1, 3, (4, 3, 2))
    for how in ((), ((1, 2),), (None, False)):
        same(ours(at, *how), known(at, *how))
    same(ours.antiderivative((1, 2))(at), known.antiderivative((1, 2))(at))
    same(ours.derivative((3, 0))(at), known.derivative((3, 0))(at))
    same(ours.integrate([(0, 1.5), (0.2, 2)]), known.integrate([(0, 1.5), (0.2, 2)]))
    for axis in (0, 1):
        same(ours.integrate_1d(0, 1.5, axis)(at[..., :1]), known.integrate_1d(0, 1.5, axis)(
            at[..., :1]))
    same(ft.vmap(ours)(at), ours(at))
    check_grads(lambda c, at: interpolate.NdPPoly(c, x)(at), (c, at[0]), 1)


def test_tensor_products():
    t, k = (np.r_[[0.0] * 4, 1, 2, [3.0] * 4], np.r_[[0.0] * 3, 1.5, [3.0] * 3]), (3, 2)
    c, at = rng.standard_normal((6, 4, 2)), rng.uniform(-0.5, 3.5, (4, 3, 2))
    ours, known = interpolate.NdBSpline(t, c, k), theirs.NdBSpline(t, c, k)
    same(ours(at), known(at))
    same(ours(at, extrapolate=False), known(at, extrapolate=False))
    for nu in ((1, 0), (1, 1), (3, 2), (4, 0)):
        same(ours(at, nu=nu), known(at, nu=nu), what=nu)
        same(ours.derivative(nu)(at), known.derivative(nu)(at), what=nu)
    inside = at.clip(0, 3).reshape(-1, 2)
    same(interpolate.NdBSpline.design_matrix(inside, t, k),
         theirs.NdBSpline.design_matrix(inside, t, k).toarray())
    same(ft.jit(lambda s, x: s(x))(ours, at), known(at))
    check_grads(lambda c, x: interpolate.NdBSpline(t, c, k)(x), (c, at[0]), 1)
    with pytest.raises(ShapeError, match="coefficients"):
        interpolate.NdBSpline(t, c[:-1], k)
    for wrong in (lambda: interpolate.NdBSpline(list(t), c, k),
                  lambda: interpolate.NdBSpline((t[0][::-1], t[1]), c, k), lambda: ours(at, nu=1)):
        with pytest.raises(ArgumentError, match="NdBSpline"):
            wrong()


FUNCTIONS = {"exp": np.exp, "tan": lambda x: np.tan(4 * x), "runge": lambda x: 1 / (1 + 25 * x * x),
             "complex": lambda x: np.exp(1j * x) / (x - 2j), "kink": lambda x: np.abs(x + 0.1)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_aaa(name):
    x, at = np.linspace(-1, 1, 100), rng.uniform(-1, 1, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, known = (m.AAA(x, FUNCTIONS[name](x), max_terms=20) for m in (interpolate, theirs))
    assert len(ours.weights) == len(known.weights)
    same(ours(at), known(at), 1e-7, 1e-7)
    same(ours(x[:3]), FUNCTIONS[name](x[:3]), 1e-7, 1e-7)
    same(ft.jit(lambda f, x: f(x))(ours, at), ours(at))
    if name in ("tan", "runge", "complex"):
        order, other = np.lexsort(np.round([ours.poles().imag, ours.poles().real], 4)), np.lexsort(
            np.round([known.poles().imag, known.poles().real], 4))
        near = np.abs(known.poles()[other]) < 3
        same(np.asarray(ours.poles())[order][near], known.poles()[other][near], 1e-5, 1e-5)
        same(np.asarray(ours.residues())[order][near], known.residues()[other][near], 1e-4, 1e-4)


def test_aaa_says_what_is_wrong():
    x = np.linspace(-1, 1, 30)
    with pytest.warns(RuntimeWarning, match="2 terms"):
        interpolate.AAA(x, np.tan(x), max_terms=2)
    with pytest.raises(ArgumentError, match="before jit"):
        ft.jit(lambda y: interpolate.AAA(x, y)(0.0))(x)


def test_floater_hormann():
    z, y, at = np.sort(np.linspace(0, 1, 12) + 0.02 * rng.random(12)), rng.standard_normal(
        (2, 12)), rng.random((3, 4))
    for d in (0, 3, 5):
        ours, known = (m.FloaterHormannInterpolator(z, y, d=d, axis=1)
                       for m in (interpolate, theirs))
        same(ours(at), known(at), 1e-8, 1e-8)
    same(ours(z[2:4]), y[:, 2:4])
    ours, known = (m.FloaterHormannInterpolator(z[::-1], y[0]) for m in (interpolate, theirs))
    same(ours(at), known(at), 1e-8, 1e-8)
    for name in ("poles", "roots"):
        found = [v[np.abs(v) < 3].round(6) for v in (
            np.asarray(getattr(f, name)()) for f in (ours, known))]
        same(np.sort_complex(found[0]), np.sort_complex(found[1]), 1e-4, 1e-4)
    check_grads(lambda z, y, x: interpolate.FloaterHormannInterpolator(z, y)(x),
                (z[:6], y[0, :6], at[0]), 1)


def test_power_series():
    series = 1 / np.array([1, 1, 2, 6, 24, 120.0])
    for m, n in ((2, None), (0, 3), (3, 1), (1, 0)):
        same(interpolate.pade(series, m, n), tuple(p.coeffs for p in theirs.pade(series, m, n)))
    check_grads(lambda a: interpolate.pade(a, 2), (series,), 1)
    with pytest.raises(ArgumentError, match="less than the number"):
        interpolate.pade(series, 6)
    with ft.default_dtypes("float64"):
        for order in (None, 6):
            same(interpolate.approximate_taylor_polynomial(jnp.sin, 0.3, 4, 0.5, order),
                 theirs.approximate_taylor_polynomial(np.sin, 0.3, 4, 0.5, order).coeffs)


OPTIONS = [{"function": name} for name in (
    "multiquadric", "inverse", "gaussian", "linear", "cubic", "quintic", "thin_plate")] + [
    {"epsilon": 0.7, "smooth": 0.1}, {"norm": "cityblock"}, {"function": lambda r: r + 1},
    {"function": lambda self, r: r**3 + self.epsilon}]


def test_radial_functions():
    x, y = rng.random(12), 3 * rng.random(12)
    d, (gx, gy) = np.sin(x) * y, rng.random((2, 3, 4))
    for options in OPTIONS:
        same(interpolate.Rbf(x, y, d, **options)(gx, gy), theirs.Rbf(x, y, d, **options)(gx, gy),
             1e-7, 1e-7, options)
    many = rng.random((12, 3))
    same(interpolate.Rbf(x, y, many, mode="N-D")(gx, gy), theirs.Rbf(x, y, many, mode="N-D")(
        gx, gy), 1e-7, 1e-7)
    check_grads(lambda x, d, g: interpolate.Rbf(x, y[:5], d, function="gaussian")(g, gy[0]),
                (x[:5], d[:5], gx[0]), 1)
    for wrong in ({"function": "gauss"}, {"norms": 2}, {"mode": "2-D"}):
        with pytest.raises(ArgumentError, match="Rbf"):
            interpolate.Rbf(x, d, **wrong)
    with pytest.raises(ArgumentError, match="RegularGridInterpolator"):
        interpolate.interp2d(x, y, d)
