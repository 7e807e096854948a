"""jvp, vjp, linearize, linear_transpose: structures, auxiliary outputs, integers, reuse, errors."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import DTypeError, FunctransError, ShapeError

X, T = np.arange(1.0, 4.0), np.array([0.5, -1.0, 2.0])


def fun(x, p):
    return {"y": jnp.sin(x) * p["w"], "n": jnp.argmax(x), "z": (x.sum(),)}


def test_structures_and_integers():
    p = {"w": np.float64(3.0), "n": np.int32(2)}
    zero = np.zeros((), ft.float0)
    out, tangent = ft.jvp(fun, (X, p), (T, {"w": np.float64(1.0), "n": zero}))
    expected = np.cos(X) * T * 3 + np.sin(X)
    np.testing.assert_allclose(tangent["y"], expected)
    np.testing.assert_allclose(tangent["z"][0], T.sum())
    assert tangent["n"].dtype == ft.float0
    assert int(out["n"]) == 2
    out, pull = ft.vjp(fun, X, p)
    ct = {"y": T, "n": zero, "z": (np.float64(2.0),)}
    for _ in range(2):
        x_bar, p_bar = pull(ct)
        np.testing.assert_allclose(x_bar, np.cos(X) * T * 3 + 2)
        np.testing.assert_allclose(p_bar["w"], np.sin(X) @ T)
        assert p_bar["n"].dtype == ft.float0
    out, push = ft.linearize(fun, X, p)
    for scale in (1.0, -2.0):
        pushed = push(scale * T, {"w": np.float64(scale), "n": zero})
        np.testing.assert_allclose(pushed["y"], scale * expected)


def test_aux():
    pair = lambda x: (x ** 2, {"kept": x, "text": "t"})
    _, tangent, aux = ft.jvp(pair, (X,), (T,), has_aux=True)
    np.testing.assert_allclose(tangent, 2 * X * T)
    np.testing.assert_allclose(np.asarray(aux["kept"]), X)
    _, pull, aux = ft.vjp(pair, X, has_aux=True)
    np.testing.assert_allclose(pull(T)[0], 2 * X * T)
    assert aux["text"] == "t"
    _, push, aux = ft.linearize(pair, X, has_aux=True)
    np.testing.assert_allclose(push(T), 2 * X * T)


def test_linear_maps_compose_with_everything():
    square = lambda x: x ** 2 * x[0]
    jacobian = np.diag(2 * X * X[0])
    jacobian[:, 0] += X ** 2
    _, push = ft.linearize(square, X)
    _, pull = ft.vjp(square, X)
    np.testing.assert_allclose(ft.vmap(push)(np.eye(3)), jacobian.T)
    np.testing.assert_allclose(ft.vmap(pull)(np.eye(3))[0], jacobian)
    np.testing.assert_allclose(ft.jit(push)(T), jacobian @ T)
    np.testing.assert_allclose(ft.jit(lambda c: pull(c)[0])(T), T @ jacobian)
    np.testing.assert_allclose(ft.linear_transpose(push, X)(T)[0], T @ jacobian)
    np.testing.assert_allclose(ft.grad(lambda t: push(t).sum())(T), jacobian.sum(0))
    np.testing.assert_allclose(ft.jacrev(lambda c: pull(c)[0])(T), jacobian.T)
    np.testing.assert_allclose(ft.jacfwd(lambda c: pull(c)[0])(T), jacobian.T)


def test_maps_made_inside_other_transforms():
    def through_pullback(x):
        return ft.vjp(lambda y: y ** 3 * x, x)[1](np.ones(3))[0].sum()

    np.testing.assert_allclose(ft.grad(through_pullback)(X), 9 * X ** 2)
    np.testing.assert_allclose(ft.jit(ft.grad(through_pullback))(X), 9 * X ** 2)
    np.testing.assert_allclose(
        ft.vmap(lambda x: ft.linearize(jnp.sin, x)[1](x))(X), np.cos(X) * X)
    np.testing.assert_allclose(
        ft.jit(lambda x, t: ft.linearize(jnp.sin, x)[1](t))(X, T), np.cos(X) * T)


def test_the_function_runs_once_for_many_pushes_and_pulls():
    runs = []

    def counted(x):
        runs.append(1)
        return jnp.sin(x)

    _, push = ft.linearize(counted, X)
    _, pull = ft.vjp(counted, X)
    for _ in range(3):
        push(T)
        pull(T)
    assert len(runs) == 2


def test_linear_transpose():
    matrix = np.arange(6.0).reshape(2, 3)
    transposed = ft.linear_transpose(lambda x: {"y": matrix @ x, "z": x[:1] * 2}, X)
    (back,) = transposed({"y": np.array([1.0, 2.0]), "z": np.array([3.0])})
    np.testing.assert_allclose(back, matrix.T @ [1, 2] + [6, 0, 0])
    shape = ft.ShapeDtypeStruct((3,), "float64")
    np.testing.assert_allclose(ft.linear_transpose(jnp.cumsum, shape)(X)[0],
                               np.cumsum(X[::-1])[::-1])
    with pytest.raises(FunctransError, match=r"sin.*not linear|linear"):
        ft.linear_transpose(jnp.sin, X)(X)


@pytest.mark.parametrize(("tangent", "error", "text"), [
    (np.ones(2), ShapeError, r"f64\[2\].*f64\[3\]"),
    (np.ones(3, np.float32), DTypeError, r"f32\[3\].*f64\[3\]"),
    ([np.ones(3)], FunctransError, "tangent"),
])
def test_tangents_and_cotangents_must_fit(tangent, error, text):
    with pytest.raises(error, match=text):
        ft.jvp(jnp.sin, (X,), (tangent,))
    with pytest.raises(error, match=text.replace("tangent", "cotangent")):
        ft.vjp(jnp.sin, X)[1](tangent)
    with pytest.raises(error, match=text):
        ft.linearize(jnp.sin, X)[1](tangent)


def test_complex_pairing():
    z = np.array([1.0 + 2.0j, -0.5 + 1.0j])
    t, ct = np.array([0.3 - 1.0j, 2.0 + 0.5j]), np.array([1.0 + 1.0j, 0.2 - 0.7j])
    for f in (jnp.sin, jnp.conj, lambda z: jnp.abs(z) * z, lambda z: z.at[0].multiply(1j)):
        _, pushed = ft.jvp(f, (z,), (t,))
        (pulled,) = ft.vjp(f, z)[1](ct)
        np.testing.assert_allclose(np.sum(ct * np.asarray(pushed)).real,
                                   np.sum(np.asarray(pulled) * t).real)
