"""Gaussian quadratures: those of SciPy, exact for polynomials, and differentiable."""

import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.core.errors import ArgumentError
from functrans.scipy import special
from functrans.test_util import check_grads

RULES = {"legendre": (), "chebyt": (), "chebyu": (), "hermite": (), "hermitenorm": (),
         "laguerre": (), "jacobi": (0.3, 1.7), "gegenbauer": (1.3,), "genlaguerre": (0.7,)}


@pytest.mark.parametrize("name", RULES)
def test_nodes_and_weights(name):
    args = [np.float64(a) for a in RULES[name]]
    with ft.enable_x64(True):
        for n in (1, 2, 3, 16):
            found = getattr(special, f"roots_{name}")(n, *args, mu=True)
            expected = getattr(scipy.special, f"roots_{name}")(n, *args, mu=True)
            for f, e in zip(found, expected, strict=True):
                assert f.dtype == np.float64
                np.testing.assert_allclose(f, e, 1e-12, 1e-14)
    x, w = getattr(special, f"roots_{name}")(4, *RULES[name])
    assert x.dtype == w.dtype == np.float32


def test_many_nodes_keep_the_weights_of_the_tails():
    with ft.enable_x64(True):
        x, w = map(np.asarray, special.roots_hermite(200))
        u, v = map(np.asarray, special.roots_legendre(100))
    expected_x, expected_w = np.polynomial.hermite.hermgauss(200)
    np.testing.assert_allclose(x, expected_x, 1e-13, 1e-14)
    heavy = expected_w > 1e-250
    np.testing.assert_allclose(w[heavy], expected_w[heavy], 1e-10)
    np.testing.assert_allclose((v * u**198).sum(), 2 / 199, 1e-13)


def test_derivatives_in_the_parameters():
    def integral(a, b):
        x, w = special.roots_jacobi(6, a, b)
        return (w * ft.numpy.exp(x)).sum()

    check_grads(integral, (np.float64(0.3), np.float64(1.7)), order=2, rtol=1e-6)
    check_grads(lambda a: special.roots_genlaguerre(5, a)[0][1], (np.float64(0.7),), order=1,
                rtol=1e-6)
    a = np.array([0.2, 0.5, 1.0])
    mapped = ft.jit(ft.vmap(lambda a: special.roots_jacobi(6, a, a)[1]))(a)
    for k, value in enumerate(a):
        np.testing.assert_allclose(mapped[k], special.roots_jacobi(6, value, value)[1], 1e-12)


def test_bad_arguments():
    for n in (0, 2.5, -1):
        with pytest.raises(ArgumentError, match="number of nodes"):
            special.roots_legendre(n)
    with pytest.raises(ArgumentError, match="n=150"):
        special.roots_laguerre(1000)
