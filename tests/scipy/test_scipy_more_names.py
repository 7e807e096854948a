"""Smooth surfaces, nested integrals, Hermitian transforms, larger tables, beside SciPy's."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.stats

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import fft, integrate, interpolate, optimize, spatial, stats
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(0)
POINTS, PLACES = rng.random((40, 2)), rng.random((100, 2)) * 1.1
VALUES = np.sin(3 * POINTS[:, 0]) * np.cos(2 * POINTS[:, 1])


def smooth(points, values, **options):
    return scipy.interpolate.CloughTocher2DInterpolator(points, values, tol=1e-12, maxiter=4000,
                                                        **options)


def test_smooth_surfaces():
    ours, golden = interpolate.CloughTocher2DInterpolator(POINTS, VALUES), smooth(POINTS, VALUES)
    same(ours(PLACES), golden(PLACES))
    same(ft.jit(lambda f, x: f(x))(ours, PLACES), golden(PLACES))
    wide, both = POINTS * [1, 9], np.stack([VALUES, VALUES**2], 1)
    options = {"rescale": True, "fill_value": -1.0}
    same(interpolate.CloughTocher2DInterpolator(wide, both, **options)(PLACES * [1, 9]),
         smooth(wide, both, **options)(PLACES * [1, 9]), 1e-9, 1e-9)
    mesh = spatial.Delaunay(POINTS)
    same(interpolate.CloughTocher2DInterpolator(mesh, VALUES)(PLACES[:, 0], PLACES[:, 1]),
         golden(PLACES))
    few = POINTS[:9]
    check_grads(lambda x, v, p: interpolate.CloughTocher2DInterpolator(p, v)(x),
                (0.5 * few[:3] + 0.3 * few[3:6] + 0.2 * few[6:9], VALUES[:9], few), 1,
                modes=["fwd"], rtol=1e-4, atol=1e-4)
    with pytest.raises(ShapeError, match=r"\(n, 2\)"):
        interpolate.CloughTocher2DInterpolator(rng.random((9, 3)), np.ones(9))
    with pytest.raises(ArgumentError, match="values"):
        interpolate.CloughTocher2DInterpolator(POINTS, VALUES[:5])


def test_polynomials_through_places():
    x, w = np.array([0.0, 1.0, 2.5, 4.0]), np.array([1.0, -1.0, 0.5, 3.0])
    same(interpolate.lagrange(x, w), scipy.interpolate.lagrange(x, w).coef, 1e-9, 1e-9)
    check_grads(interpolate.lagrange, (x, w), 1)


def test_nested_integrals():
    def cube(z, y, x):
        return x * y * z

    with ft.default_dtypes("float64"):
        limits = (0.0, 1.0, lambda x: x, lambda x: 2 * x, lambda x, y: 0.0, lambda x, y: x + y)
        same(integrate.tplquad(cube, *limits)[0], scipy.integrate.tplquad(cube, *limits)[0])
        many = integrate.nquad(lambda x, y, a: jnp.exp(-a * x) * y, [
            lambda y, a: (0.0, y), (0.0, 1.0)], (1.5,), {"epsabs": 1e-9})
        same(many[0], scipy.integrate.nquad(lambda x, y, a: np.exp(-a * x) * y, [
            lambda y, a: (0.0, y), (0.0, 1.0)], (1.5,))[0])
        check_grads(lambda a: integrate.dblquad(
            lambda y, x: jnp.sin(a * x * y), 0.0, 1.0, 0.0, lambda x: a * x)[0],
            (np.float64(0.7),), 1)
        for n in range(1, 9):
            weights, error = integrate.newton_cotes(n)
            same((weights, error), scipy.integrate.newton_cotes(n))
    with pytest.raises(ArgumentError, match="options"):
        integrate.nquad(cube, [(0, 1)], opts=[{}, {}])


@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
def test_hermitian_transforms(norm):
    x, z = rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 4, 4)) + 1j * rng.normal(size=(3, 4, 4))
    pair = Pair(fft, scipy.fft)
    for name, value in (("hfftn", z), ("ihfftn", x), ("hfft2", z), ("ihfft2", x)):
        pair(name, value, norm=norm)
    pair("hfftn", z, (4, 6), (0, 2), norm=norm)
    pair("fft", x, 5, 1, norm, True, workers=2)
    pair("rfftn", x=x, axes=(0, 2), overwrite_x=False)
    with pytest.raises(TypeError, match=r"fft.*worker"):
        fft.fft(x, worker=2)


def test_larger_tables():
    table = np.array([[3, 1, 2], [0, 4, 5]])
    found = stats.fisher_exact(table)
    golden = scipy.stats.fisher_exact(table, method=scipy.stats.PermutationMethod(
        n_resamples=9999, rng=np.random.default_rng(1)))
    same(found.statistic, golden.statistic, 1e-5)
    assert abs(float(found.pvalue) - golden.pvalue) < 0.02
    again = stats.fisher_exact(table, rng=ft.random.key(0), n_resamples=999)
    assert float(again.pvalue) == float(stats.fisher_exact(table, rng=0, n_resamples=999).pvalue)
    with pytest.raises(ArgumentError, match="no sides"):
        stats.fisher_exact(table, "less")
    with pytest.raises(ArgumentError, match="whole"):
        stats.fisher_exact(table + 0.5)


def test_constraints_have_scipys_arguments():
    x = np.array([0.5, 2.0])
    for name, args in (("Bounds", (0.0, np.array([1.0, 3.0]), True)),
                       ("LinearConstraint", (np.eye(2), 0.0, 1.0, [False]))):
        ours, golden = (getattr(m, name)(*args) for m in (optimize, scipy.optimize))
        same(ours.residual(x), golden.residual(x))
        assert np.all(ours.keep_feasible == golden.keep_feasible)
