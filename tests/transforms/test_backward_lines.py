"""Equations of backward passes have the line of the operation whose derivative they are."""

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.jaxpr import subjaxprs
from functrans.core.source import own_lines, user_source


def model(x):
    y = jnp.sin(x)
    return (y * y).sum()


def looped(x):
    def body(c, t):
        return c * jnp.cos(t), c
    return lax.scan(body, 1.0, x)[0]


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for body in subjaxprs(eqn):
            yield from equations(body)


def sources(fun):
    jaxpr = ft.make_jaxpr(fun)(jnp.ones(3)).jaxpr
    return [(e.primitive.name, e.source) for e in equations(jaxpr) if e.source is not None]


def lines(fun, function):
    first = function.__code__.co_firstlineno
    return {(name, s.line - first, s.backward) for name, s in sources(fun)
            if s.function.startswith(function.__name__)}


def test_a_gradient_has_the_forward_lines():
    for fun in (ft.grad(model), ft.jit(ft.grad(model)), ft.grad(ft.jit(model)),
                ft.grad(ft.checkpoint(model)), lambda x: ft.vjp(model, x)[1](1.0),
                lambda x: ft.vmap(ft.grad(model))(x[None])):
        found = lines(fun, model)
        assert ("sin", 1, False) in found
        assert ("mul", 1, True) in found, "the derivative of sin"
        assert ("mul", 2, True) in found, "the derivative of the square"


def test_the_body_of_a_transposed_loop_has_the_lines_of_the_body():
    found = lines(ft.grad(looped), looped)
    assert ("cos", 2, False) in found
    assert ("mul", 2, True) in found


def test_forward_operations_do_not_run_backwards():
    assert not any(s.backward for _, s in sources(model))
    assert not any(s.backward for _, s in sources(lambda x: ft.jvp(model, (x,), (x,))))


def test_the_lines_of_a_rule_of_the_user_are_its_own():
    @ft.custom_vjp
    def twice(x):
        return 2 * x

    def backward(_, ct):
        return (ct * 3,)

    twice.defvjp(lambda x: (2 * x, None), backward)
    found = [s.function for name, s in sources(ft.grad(lambda x: twice(jnp.sin(x)).sum()))
             if name == "mul"]
    assert any(f.endswith("backward") for f in found)


def test_own_lines_are_those_of_the_code_that_runs():
    with own_lines():
        assert user_source().function == "test_own_lines_are_those_of_the_code_that_runs"
