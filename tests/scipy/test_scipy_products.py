"""Products of the modules of scipy are in all digits, and those of users' functions as they say."""

import numpy as np
import pytest

import functrans as ft
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr
from functrans.scipy import interpolate, ndimage, optimize, signal, spatial

X = np.ones((6, 40), np.float32)


def precisions(jaxpr):
    """Of all products and convolutions of a program and of those in it."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("dot_general", "conv_general_dilated"):
            yield eqn.params.get("precision")
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    yield from precisions(inner.jaxpr)
                elif isinstance(inner, Jaxpr):
                    yield from precisions(inner)


OWN = {
    "gaussian": lambda x: ndimage.gaussian_filter(x, 1.0),
    "convolve": lambda x: ndimage.convolve(x, np.ones((3, 3), np.float32)),
    "spline": lambda x: ndimage.zoom(x, 1.5),
    "fir": lambda x: signal.lfilter([1.0, 2.0], [1.0], x),
    "polyphase": lambda x: signal.resample_poly(x, 3, 2, axis=1),
    "savgol": lambda x: signal.savgol_filter(x, 5, 2),
    "resize": lambda x: ft.image.resize(x, (3, 20), "cubic"),
    "rotation": lambda x: spatial.transform.Rotation(x[:, :4]).mean().quat,
    "mahalanobis": lambda x: spatial.distance.mahalanobis(x[0, :6], x[1, :6], x[:, :6]),
    "linprog": lambda x: optimize.linprog(x[0, :3], x[:2, :3], x[:2, 0]).x,
    "bfgs": lambda x: optimize.minimize(lambda v: (v * v).sum(), x[0], method="BFGS").x,
    "lbfgs": lambda x: optimize.minimize(lambda v: (v * v).sum(), x[0], method="L-BFGS-B").x,
    "fit": lambda x: optimize.least_squares(lambda v: v * v, x[0]).x,
    "root": lambda x: optimize.root(lambda v: v * v, x[0, :3], method="broyden1").x,
    "slerp": lambda x: interpolate.CubicSpline(np.arange(6, dtype=np.float32), x)(0.5),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OWN)
def test_products_have_all_digits(name):
    found = list(precisions(ft.make_jaxpr(OWN[name])(X).jaxpr))
    assert all("HIGHEST" in str(p) for p in found), found
    assert found or name in ("slerp",)


def test_precision_of_a_function_of_the_user_is_its_own():
    def f(v):
        return (v @ v.T).sum()

    found = list(precisions(ft.make_jaxpr(
        lambda x: optimize.minimize(f, x, method="BFGS").x)(X[:2, :3]).jaxpr))
    assert any(p is None for p in found)
