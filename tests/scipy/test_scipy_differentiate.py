"""Derivatives by differences beside SciPy's, with the same numbers of evaluations."""

import numpy as np
import pytest
import scipy.differentiate

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import differentiate

X = np.linspace(0.3, 2, 4)


@pytest.fixture(autouse=True)
def float64():
    with ft.default_dtypes("float64"):
        yield


@pytest.mark.parametrize("name", ["exp", "log", "sqrt"])
@pytest.mark.parametrize("options", [
    {}, {"order": 4}, {"initial_step": 0.1, "step_direction": 1}, {"maxiter": 2},
    {"step_direction": np.array([0, 1, -1, 0]), "initial_step": 0.1},
    {"step_factor": 3.0, "tolerances": {"rtol": 1e-5}}])
def test_derivative(name, options):
    with np.errstate(all="ignore"):
        theirs = scipy.differentiate.derivative(getattr(np, name), X, **options)
    ours = differentiate.derivative(getattr(jnp, name), X, **options)
    np.testing.assert_allclose(ours.df, theirs.df, rtol=1e-9)
    for key in ("status", "nit", "nfev"):
        assert getattr(ours, key).tolist() == getattr(theirs, key).tolist(), key


def three(x):
    m = np if isinstance(x, np.ndarray) else jnp
    return m.stack([x[0] * x[1], m.sin(x[0]) + x[1] ** 2, x[2] * x[0]])


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_jacobian_and_hessian(shape):
    x = np.random.default_rng(0).random(shape)
    ours, theirs = (m.jacobian(three, x) for m in (differentiate, scipy.differentiate))
    np.testing.assert_allclose(ours.df, theirs.df, atol=1e-11)

    def form(x):
        return (x**2).sum(0) * x[0] + x[1] * x[2]

    ours, theirs = (m.hessian(form, x) for m in (differentiate, scipy.differentiate))
    np.testing.assert_allclose(ours.ddf, theirs.ddf, atol=1e-9)


def test_differences_under_transforms():
    def slope(x):
        return differentiate.derivative(jnp.exp, x).df

    for found in (ft.jit(slope)(X), ft.vmap(slope)(X), ft.grad(lambda x: slope(x).sum())(X)):
        np.testing.assert_allclose(found, np.exp(X), rtol=1e-10)
    kept = differentiate.derivative(lambda x: jnp.stack([x, x**2]), X, preserve_shape=True)
    np.testing.assert_allclose(kept.df, [np.ones(4), 2 * X], rtol=1e-9)


def test_mistakes():
    with pytest.raises(ShapeError, match="own derivative"):
        differentiate.derivative(lambda x: x.sum(), X)
    with pytest.raises(ShapeError, match="is a number"):
        differentiate.jacobian(lambda x: x, 1.0)
    with pytest.raises(ArgumentError, match="tolerances"):
        differentiate.derivative(jnp.exp, X, tolerances={"tol": 1.0})
