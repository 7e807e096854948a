"""Kelvin and Struve functions beside mpmath, and polynomials on other intervals beside SciPy."""

import mpmath
import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.scipy import special

X = np.array([1e-6, 0.02, 0.9, 2.0, 2.1, 7.7, 21.9, 22.1, 60.0, 300.0])


def on_diagonal(name, x):
    """A Kelvin function by Bessel functions of complex numbers, and the size of both parts."""
    root = mpmath.expjpi(0.25)
    first, order = name.startswith("be"), int(name.endswith("p"))
    found = (mpmath.besseli if first else mpmath.besselk)(order, mpmath.mpf(x) * root)
    found *= (root if first else -root) if order else 1
    return (found.real if name[2] == "r" else found.imag), abs(found)


KELVIN = ("ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip")


@pytest.mark.parametrize("name", KELVIN)
def test_kelvin_functions(name):
    fun = getattr(special, name)
    with mpmath.workdps(40):
        expected, size = (np.array(list(map(float, v)))
                          for v in zip(*[on_diagonal(name, x) for x in X], strict=True))
    error = np.abs(np.asarray(fun(X)) - expected)
    assert (error <= 5e-14 * size).all() and (error <= 1e-11 * np.abs(expected)).all()
    single = fun(X.astype(np.float32))
    assert single.dtype == np.float32
    with np.errstate(all="ignore"):
        wide = np.asarray(fun(X.astype(np.float32).astype(np.float64)))
        fits = (np.abs(wide) < 3e38) & (np.abs(wide) > 1e-34)
    np.testing.assert_allclose(np.asarray(single)[fits], wide[fits], 1e-6, 1e-30)
    special_points = np.array([0.0, -1.5, -30.0, np.nan])
    np.testing.assert_allclose(fun(special_points), getattr(scipy.special, name)(special_points),
                               1e-6, 1e-15)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name, order", [*((n, None) for n in KELVIN), *(
    (n, v) for n in ("struve", "modstruve") for v in (0.0, 1.0, 4.0)), ("modstruve", 2.5)])
def test_derivatives_and_lanes(name, order):
    def fun(x):
        of = getattr(special, name)
        return of(x) if order is None else of(order, x)

    points = np.array([0.5, 2.5, 8.0, 40.0])
    ft.test_util.check_grads(fun, (points,), order=2, modes=["fwd", "rev"], rtol=1e-4)
    np.testing.assert_allclose(ft.vmap(fun)(points), fun(points), 1e-13)
    np.testing.assert_allclose(ft.jit(fun)(points), fun(points), 1e-12)


def test_kelvin_in_one():
    got, expected = special.kelvin(X[:-1]), scipy.special.kelvin(X[:-1])
    for g, e in zip(got, expected, strict=True):
        assert g.dtype == np.complex128
        np.testing.assert_allclose(g, e, 1e-8)
    assert special.kelvin(np.float32(1))[0].dtype == np.complex64


@pytest.mark.parametrize("order", [0, 1, 2, 7, 20, 30])
def test_struve(order):
    with mpmath.workdps(30):
        expected = np.array([float(mpmath.struveh(order, x)) for x in X])
    got = special.struve(float(order), X)
    np.testing.assert_allclose(got, expected, 1e-12, 1e-15 if order < 2 else 0)
    np.testing.assert_allclose(special.struve(order, -X), expected * (-1.0) ** (order + 1), 1e-12,
                               1e-15)
    if order < 30:
        with mpmath.workdps(30):
            between = np.array([float(mpmath.struveh(order + 0.3, x)) for x in X])
        np.testing.assert_allclose(special.struve(order + 0.3, X), between, 1e-12, 1e-14)
        assert np.isnan(special.struve(order + 0.3, -1.0))
    assert np.isnan(special.struve(np.array([1000.5, np.nan]), 1.0)).all()
    np.testing.assert_allclose(special.struve(np.array([0.0, 1.0, 2.0]), np.inf),
                               [0, 2 / np.pi, np.inf])


@pytest.mark.parametrize("order", [0.0, 1.0, 2.5, -0.7, -1.0, 12.0])
def test_modified_struve(order):
    with mpmath.workdps(30):
        expected = np.array([float(mpmath.struvel(order, x)) for x in X])
    np.testing.assert_allclose(special.modstruve(order, X), expected, 1e-13)
    ends = np.array([-2.0, np.nan, np.inf])
    expected = scipy.special.modstruve(order, ends[:2])
    np.testing.assert_allclose(special.modstruve(order, ends), [*expected, np.inf], 1e-12)
    assert special.modstruve(order, 0.0) == (2 / np.pi if order == -1 else
                                             np.inf if order < -1 else 0.0)


@pytest.mark.parametrize("name", ["eval_chebyc", "eval_chebys", "eval_sh_chebyt", "eval_sh_chebyu",
                                  "eval_sh_legendre"])
def test_polynomials_on_other_intervals(name):
    n, x = np.arange(8.0)[:, None], np.linspace(-0.5, 1.9, 7)
    fun, expected = getattr(special, name), getattr(scipy.special, name)(n, x)
    np.testing.assert_allclose(fun(n, x), expected, 1e-12, 1e-12)
    ft.test_util.check_grads(lambda x: fun(5.0, x), (x,), order=2, modes=["fwd", "rev"])


def test_shifted_jacobi():
    n, x = np.arange(6.0)[:, None], np.linspace(0.1, 0.9, 5)
    expected = scipy.special.eval_sh_jacobi(n, 3.0, 1.5, x)
    np.testing.assert_allclose(special.eval_sh_jacobi(n, 3.0, 1.5, x), expected, 1e-11, 1e-13)
