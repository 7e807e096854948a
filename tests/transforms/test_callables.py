"""custom_gradient, fwd_and_bwd, named_call, typeof, ensure_compile_time_eval."""

import contextlib

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import CustomRuleError, LeakedTracerError, NonArrayError


def test_custom_gradient_uses_what_it_closes_over():
    @ft.custom_gradient
    def product(x, y):
        z = jnp.sin(x)
        return z * y, lambda ct: (ct * y * 10, ct * z * 100)

    assert product(0.5, 2.0).item() == pytest.approx(2 * np.sin(0.5))
    for run in (lambda f: f, ft.jit):
        slopes = run(ft.grad(product, (0, 1)))(0.5, 2.0)
        assert [s.item() for s in slopes] == pytest.approx([20, 100 * np.sin(0.5)])
    lanes = ft.vmap(ft.grad(product))(jnp.arange(3.0), jnp.ones(3))
    assert lanes.tolist() == [10, 10, 10]


def test_custom_gradient_of_trees():
    @ft.custom_gradient
    def f(tree):
        return {"out": tree["x"] * 2}, lambda ct: ({"x": ct["out"] * 7},)

    assert ft.grad(lambda t: f(t)["out"].sum())({"x": jnp.ones(2)})["x"].tolist() == [7, 7]
    single = ft.custom_gradient(lambda x: (x ** 2, lambda ct: 5 * ct))
    assert ft.grad(single)(3.0).item() == 5
    with pytest.raises(CustomRuleError, match="no pair of a value and a function"):
        ft.custom_gradient(lambda x: x)(1.0)


@pytest.mark.parametrize("jitted", [True, False])
def test_two_passes(jitted):
    def f(x, w):
        return jnp.tanh(x @ w), x.sum()

    x, w = jnp.ones((2, 3)), jnp.full((3, 2), 0.1)
    forward, backward = ft.fwd_and_bwd(f, argnums=(0, 1), has_aux=True, jitted=jitted)
    out, residuals, aux = forward(x, w)
    expected, pull, aux2 = ft.vjp(f, x, w, has_aux=True)
    np.testing.assert_allclose(out, expected)
    assert aux.item() == aux2.item() == 6
    for ours, theirs in zip(backward(residuals, jnp.ones((2, 2))), pull(jnp.ones((2, 2)))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    one, back = ft.fwd_and_bwd(lambda x, w: x @ w, -1, jitted=jitted)
    assert back(one(x, w)[1], jnp.ones((2, 2))).shape == w.shape


def test_names_and_types():
    text = ft.make_jaxpr(ft.named_call(lambda x: jnp.sin(x), name="wave"))(1.0)
    assert text.jaxpr.eqns[0].source is not None
    assert ft.named_call(np.square)(3) == 9
    assert str(ft.typeof(np.ones(2))) == "f64[2]" and ft.typeof(True).weak_type is False
    seen = []
    ft.jit(lambda x: seen.append(ft.typeof(x)))(jnp.ones(3))
    assert seen[0].shape == (3,)
    with pytest.raises(NonArrayError):
        ft.typeof("text")


def test_known_values_are_computed_while_tracing():
    def f(x):
        with ft.ensure_compile_time_eval():
            table = jnp.arange(4).sum()
            assert table.item() == 6
        return x * table

    jaxpr = ft.make_jaxpr(f)(1.0)
    assert len(jaxpr.jaxpr.eqns) == 1 or "iota" not in str(jaxpr)
    assert ft.jit(f)(2.0).item() == 12 and ft.grad(f)(2.0).item() == 6


@pytest.mark.parametrize("transform", [
    ft.jit, ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: lambda x: ft.vmap(f)(x[None])])
def test_values_that_are_traced_stay_so_in_compile_time_evaluation(transform):
    @ft.custom_jvp
    def twice(x):
        return 2.0 * x

    twice.defjvps(lambda t, out, x: 3.0 * t)

    def f(x, inside):
        with ft.ensure_compile_time_eval() if inside else contextlib.nullcontext():
            y = ft.lax.cond(x > 0, jnp.sin, jnp.cos, x) * jnp.arange(3).sum()
            return ft.jit(twice)(y) + twice(jnp.ones(())) * ft.grad(jnp.tanh)(x)

    x = jnp.float32(2.0)
    inside, outside = (transform(lambda x, i=i: f(x, i))(x) for i in (True, False))
    np.testing.assert_allclose(inside, outside, rtol=1e-6)


def test_an_operation_on_a_traced_value_is_refused_in_eval_context():
    def leaking(x):
        with ft.core.eval_context():
            return x + 1

    with pytest.raises(LeakedTracerError):
        ft.jit(leaking)(1.0)


def test_traced_values_are_traced_beside_known_ones():
    """As JAX's: libraries check arguments so, which are known or not."""
    @ft.custom_jvp
    def doubled(x):
        return 2 * x

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 3 * tangents[0]))

    def f(x):
        with ft.ensure_compile_time_eval():
            known = 2.0 if (jnp.arange(3) >= 0).all() else x
            return jnp.sin(doubled(x)) * known + jnp.where(x == x, ft.jit(jnp.cos)(x), 0)

    expected = 2 * np.sin(1.0) + np.cos(0.5)
    for run in (f, ft.jit(f), lambda x: ft.vmap(f)(jnp.full(2, x))[1]):
        assert run(0.5).item() == pytest.approx(expected, rel=1e-6)
    for grad in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.jacfwd(f)):
        assert grad(0.5).item() == pytest.approx(6 * np.cos(1.0) - np.sin(0.5), rel=1e-6)


class Unnamed:
    """A callable whose own name and annotations are objects of a library."""

    def __init__(self):
        self.__dict__.update({"__name__": object(), "__annotations__": None, "scale": 2.0})

    def __call__(self, x, data=None):
        return self.scale * x


@pytest.mark.parametrize("transform", [ft.jit, ft.vmap, ft.checkpoint, ft.make_jaxpr, ft.jacfwd])
def test_names_that_are_no_texts_are_left_out(transform):
    transformed = transform(Unnamed())
    assert "Unnamed" in transformed.__name__
    transformed(jnp.ones(3))


def test_vmap_of_an_unnamed_callable_with_what_is_no_array():
    assert ft.vmap(Unnamed(), in_axes=(0, None))(jnp.ones(3), "data").tolist() == [2.0] * 3
