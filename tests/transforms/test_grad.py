"""grad and value_and_grad: arguments, auxiliary outputs, integers, complex numbers, Jacobians."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, IntegerGradError, NonScalarGradError


def product(x, y, z=1.0):
    return (x * y ** 2 * z).sum()


def test_argnums():
    args = (np.float64(2.0), np.float64(3.0), np.float64(5.0))
    partials = (45.0, 60.0, 18.0)
    assert float(ft.grad(product)(*args)) == partials[0]
    for i in range(3):
        assert float(ft.grad(product, i)(*args)) == partials[i]
        assert float(ft.grad(product, i - 3)(*args)) == partials[i]
    assert tuple(map(float, ft.grad(product, (2, 0))(*args))) == (18.0, 45.0)
    assert tuple(map(float, ft.grad(product, (-1,))(*args))) == (18.0,)
    assert float(ft.grad(product)(2.0, 3.0, z=5.0)) == 45.0
    with pytest.raises(ArgumentError, match=r"argument 3.*3 positional"):
        ft.grad(product, 3)(*args)
    with pytest.raises(ArgumentError, match="twice"):
        ft.grad(product, (0, -3))(*args)


def test_aux_keeps_its_structure_and_loses_tangents():
    def fun(x):
        return (x ** 2).sum(), {"x": x, "n": 3, "s": "text", "twice": [x * 2, None]}

    x = np.arange(3.0)
    gradient, aux = ft.grad(fun, has_aux=True)(x)
    np.testing.assert_allclose(gradient, 2 * x)
    np.testing.assert_allclose(aux["twice"][0], 2 * x)
    assert aux["n"] == 3 and aux["s"] == "text" and aux["twice"][1] is None
    np.testing.assert_allclose(np.asarray(aux["x"]), x)
    (value, aux), gradient = ft.value_and_grad(fun, has_aux=True)(x)
    assert float(value) == 5.0
    second = ft.grad(lambda x: ft.grad(lambda y: (y ** 3, y ** 2), has_aux=True)(x)[1])(2.0)
    assert float(second) == 4.0
    with pytest.raises(ArgumentError, match="pair"):
        ft.grad(lambda x: x, has_aux=True)(1.0)


def test_trees():
    params = {"w": np.ones((2, 2)), "b": [np.zeros(2), None]}
    gradient = ft.grad(lambda p: (p["w"] @ np.arange(2.0) + p["b"][0]).sum())(params)
    assert gradient["b"][1] is None
    np.testing.assert_allclose(gradient["w"], [[0, 1], [0, 1]])
    np.testing.assert_allclose(gradient["b"][0], 1.0)


def test_dtypes_of_gradients():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert ft.grad(lambda x: x.sum() * 2)(jnp.ones(3, dtype)).dtype == dtype
    half, double = ft.grad(lambda a, b: (a.astype("float64") * b).sum(), (0, 1))(
        jnp.ones(2, "float16"), jnp.ones(2, "float64"))
    assert (half.dtype, double.dtype) == (np.float16, np.float64)
    assert ft.grad(lambda x: x * x)(3.0).weak_type  # as the number that it is added to
    assert not ft.grad(lambda x: x * x)(np.float32(3)).weak_type


def test_integers_and_non_scalars_are_refused():
    with pytest.raises(IntegerGradError, match="int32"):
        ft.grad(lambda x: x * 1.0)(np.int32(1))
    for bad in (lambda x: x, lambda x: (x[0], x[1]), lambda x: x[0] > 0, lambda x: x[0] * 1j):
        with pytest.raises(NonScalarGradError):
            ft.grad(bad)(np.ones(2))


def test_allow_int():
    gradient = ft.grad(lambda p: p["x"] * p["n"], allow_int=True)({"x": 2.0, "n": np.int32(3)})
    assert float(gradient["x"]) == 3.0
    assert gradient["n"].dtype == ft.float0 and gradient["n"].shape == ()


def test_complex_conventions():
    z = np.complex128(1.0 + 2.0j)
    # conjugate of the direction of steepest ascent, as in JAX: values of jax 0.10
    assert complex(ft.grad(lambda z: jnp.abs(z) ** 2)(z)) == pytest.approx(2 - 4j)
    assert complex(ft.grad(lambda z: jnp.real(z * z))(z)) == pytest.approx(2 + 4j)
    assert complex(ft.grad(lambda z: jnp.imag(z))(z)) == pytest.approx(-1j)
    assert complex(ft.grad(lambda z: jnp.angle(z))(z)) == pytest.approx(-0.4 - 0.2j)
    assert complex(ft.grad(jnp.sin, holomorphic=True)(z)) == pytest.approx(np.cos(z))
    assert complex(ft.grad(lambda z: z ** 3, holomorphic=True)(z)) == pytest.approx(3 * z ** 2)
    np.testing.assert_allclose(
        ft.jacfwd(lambda z: z * np.arange(3), holomorphic=True)(z), np.arange(3))
    with pytest.raises(IntegerGradError, match="holomorphic"):
        ft.grad(jnp.sin, holomorphic=True)(1.0)
    with pytest.raises(NonScalarGradError, match="holomorphic"):
        ft.grad(lambda z: z * z)(z)


def test_stop_gradient():
    assert float(ft.grad(lambda x: x * ft.stop_gradient(x))(3.0)) == 3.0
    tree = ft.stop_gradient({"a": jnp.ones(2), "n": 3, "none": None})
    assert tree["none"] is None
    for wrap in (ft.jit, ft.vmap, ft.checkpoint):
        out = ft.grad(lambda x, w=wrap: w(lambda v: v * ft.stop_gradient(v))(x).sum())(
            np.arange(3.0))
        np.testing.assert_allclose(out, np.arange(3.0))
    assert float(ft.jvp(ft.stop_gradient, (3.0,), (1.0,))[1]) == 0.0


def test_python_control_flow_on_values():
    def fun(x):
        total = x
        while total < 100:
            total = total * x if total > 10 else total * 2
        return total

    assert float(fun(3.0)) == 12.0 * 3.0 ** 2
    assert float(ft.grad(fun)(3.0)) == 4 * 3 * 3.0 ** 2


def test_unused_arguments_have_zero_gradients():
    a, b = ft.grad(lambda x, y: x * 1.0, (0, 1))(2.0, np.ones((2, 3), np.float32))
    assert float(a) == 1.0
    assert b.shape == (2, 3) and b.dtype == np.float32 and not np.asarray(b).any()


def test_nested_grads_do_not_confuse_perturbations():
    assert float(ft.grad(lambda x: x * ft.grad(lambda y: x + y)(1.0))(2.0)) == 1.0
    assert float(ft.grad(lambda x: x * ft.grad(lambda y: x * y)(1.0))(3.0)) == 6.0
    derivative = jnp.sin
    for _ in range(5):
        derivative = ft.grad(derivative)
    assert float(derivative(np.float64(0.3))) == pytest.approx(np.cos(0.3))


def test_jacobians_of_trees_and_argnums():
    def fun(p, y):
        return {"a": p["w"] * y, "b": (p["w"].sum() + y ** 2,)}

    p, y = {"w": np.arange(1.0, 3.0)}, np.float64(3.0)
    for jacobian in (ft.jacfwd, ft.jacrev):
        result = jacobian(fun, (0, 1))(p, y)
        np.testing.assert_allclose(result["a"][0]["w"], np.eye(2) * 3)
        np.testing.assert_allclose(result["a"][1], p["w"])
        np.testing.assert_allclose(result["b"][0][0]["w"], [1, 1])
        np.testing.assert_allclose(result["b"][0][1], 6.0)
        single, aux = jacobian(lambda x: (x ** 2, {"x": x}), has_aux=True)(np.arange(3.0))
        np.testing.assert_allclose(single, np.diag(2 * np.arange(3.0)))
        np.testing.assert_allclose(np.asarray(aux["x"]), np.arange(3.0))
    hessian = ft.hessian(lambda q: (q["u"] ** 2 * q["v"]).sum())({"u": y, "v": y + 1})
    np.testing.assert_allclose([[hessian[i][j] for j in "uv"] for i in "uv"], [[8, 6], [6, 0]])
    np.testing.assert_allclose(
        ft.hvp(product, (2.0, 3.0), (1.0, 0.0)), (0.0, 6.0))


def test_the_function_runs_once():
    calls = []
    ft.value_and_grad(lambda x: (calls.append(1), x * x)[1])(2.0)
    assert calls == [1]
