"""Custom rules with symbolic_zeros see which tangents are zero, in staged and mapped calls too."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.source import interpreted
from functrans.custom_derivatives import SymbolicZero, zero_from_primal

VIEWS = {
    "eager": lambda f: f,
    "jit": ft.jit,
    "nested jit": lambda f: ft.jit(ft.jit(f)),
    "vmap": lambda f: lambda *x: ft.vmap(f)(*[v[None] for v in x])[0],
    "vmap of jit": lambda f: lambda *x: ft.vmap(ft.jit(f))(*[v[None] for v in x])[0],
    "scan": lambda f: lambda *x: ft.lax.scan(lambda c, _: (c, f(*x)), 0.0, None, 1)[1][0]}
X, Y = jnp.float32(0.5), jnp.float32(2.0)
view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def is_zero(x):
    return isinstance(x, SymbolicZero)


def product_by_jvp(seen):
    @ft.custom_jvp
    def product(x, y):
        return x * y, jnp.sin(y)

    def rule(primals, tangents):
        (x, y), (s, t) = primals, tangents
        seen.append((is_zero(s), is_zero(t)))
        slope = sum(a * b for a, b in ((s, 10 * y), (t, 100 * x)) if not is_zero(a))
        of_sin = zero_from_primal(y, symbolic_zeros=True) if is_zero(t) else t * jnp.cos(y)
        return (x * y, jnp.sin(y)), (slope, of_sin)

    product.defjvp(rule, symbolic_zeros=True)
    return product


@view
def test_a_jvp_rule_sees_zeros_and_returns_them(view):
    seen = []
    product = product_by_jvp(seen)

    @ft.custom_jvp
    def refuses(x):
        return 3.0 * x

    @refuses.defjvp
    def refuse(primals, tangents):
        raise AssertionError("nothing depends on what is differentiated here")

    def f(x, y):
        p, q = product(x, y)
        return p + refuses(q)  # q does not depend on x

    assert ft.grad(view(f), 0)(X, Y).item() == 20
    assert seen and all(zeros == (False, True) for zeros in seen)
    seen.clear()
    slopes = ft.grad(view(lambda x, y: sum(product(x, y))), (0, 1))(X, Y)
    np.testing.assert_allclose(slopes, [20, 50 + np.cos(2)], rtol=1e-6)
    assert (False, False) in seen
    _, tangent = ft.jvp(lambda y: view(lambda x, y: sum(product(x, y)))(X, y), (Y,), (1.0,))
    assert tangent.item() == pytest.approx(50 + np.cos(2))


@view
def test_rules_of_custom_vjp_see_what_is_perturbed_and_which_cotangents_are_zero(view):
    seen = []

    @ft.custom_vjp
    def product(x, y):
        return x * y, x + y

    def fwd(x, y):
        flags = x.perturbed, y.perturbed
        seen.append(flags)
        x, y = x.value, y.value
        # residuals of a number of their own for each pattern
        return (x * y, x + y), (y if flags[0] else None, x if flags[1] else None, flags)

    def bwd(residuals, cts):
        y, x, flags = residuals
        assert [type(f) for f in flags] == [bool, bool]  # Python's numbers stay so
        seen.append(tuple(map(is_zero, cts)))
        return (10 * y * cts[0] if flags[0] else None, 100 * x * cts[0] if flags[1] else None)

    product.defvjp(fwd, bwd, symbolic_zeros=True)
    first = view(lambda x, y: product(x, y)[0])
    assert ft.grad(first, 0)(X, Y).item() == 20
    assert seen[0] == (True, False) and (True, True) not in seen and seen[-1] == (False, True)
    assert ft.grad(first, 1)(X, Y).item() == 50
    assert [s.item() for s in ft.jit(ft.grad(first, (0, 1)))(X, Y)] == [20, 50]


@pytest.mark.parametrize("kind", [ft.jit, ft.vmap], ids=["jit", "vmap"])
def test_a_rule_that_raises_does_so_when_a_derivative_asks(kind):
    @ft.custom_jvp
    def f(x):
        return x

    @f.defjvp
    def rule(primals, tangents):
        raise RuntimeError("this is not differentiated")

    x = jnp.ones(2)
    assert kind(lambda v: f(v) + f(jnp.ones(())))(x).shape == (2,)
    assert kind(ft.grad(lambda v: (v * f(X)).sum()))(x).tolist() == [0.5, 0.5]
    with pytest.raises(RuntimeError, match="this is not differentiated"):
        ft.grad(lambda x: kind(f)(x).sum())(x)


def test_a_rule_that_raises_leaves_no_place_behind():
    @ft.custom_jvp
    def f(x):
        return x

    @f.defjvp
    def rule(primals, tangents):
        raise RuntimeError("this is not differentiated")

    for around in (ft.checkpoint, ft.jit, lambda g: ft.checkpoint(ft.jit(g))):
        wrapped = around(f)
        with pytest.raises(RuntimeError):
            ft.grad(lambda x, g=wrapped: g(jnp.sin(x)))(1.0)
        assert interpreted.source is None and not interpreted.backward


def test_types_are_results_of_eval_shape_and_note_shardings():
    struct = ft.ShapeDtypeStruct((2, 3), "float32")
    found = ft.eval_shape(lambda x: {"given": struct, "made": x.T}, struct)
    assert found == {"given": struct, "made": ft.ShapeDtypeStruct((3, 2), "float32")}
    assert struct.sharding is None
    placed = ft.ShapeDtypeStruct((2, 3), "float32", sharding="everywhere")
    assert placed != struct and "sharding='everywhere'" in repr(placed)
    assert struct.aval.to_tangent_aval() == struct.aval
    assert ft.ShapeDtypeStruct((2,), "int32").aval.to_tangent_aval().dtype == ft.float0
    assert zero_from_primal({"a": X, "b": [Y]})["b"][0].item() == 0
