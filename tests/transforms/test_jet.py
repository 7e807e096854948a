"""Derivatives of all orders along a curve are those of nested forward mode."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.experimental.jet import jet

RNG = np.random.default_rng(0)
X, D = RNG.uniform(0.3, 0.9, 4), RNG.standard_normal(4)
A = RNG.standard_normal((4, 4))
ORDER = 4


def nested(f, order=ORDER):
    """The derivatives of f(X + t D) at 0, one forward mode in another."""
    g, outs = lambda t: f(X + t * D), []
    for _ in range(order):
        g = derivative(g)
        outs.append(g(np.float64(0)))
    return outs


def derivative(g):
    return lambda t: ft.jvp(g, (t,), (np.float64(1),))[1]


@ft.custom_jvp
def with_rule(x):
    return jnp.sin(x) * x


with_rule.defjvps(lambda t, out, x: t * (jnp.cos(x) * x + jnp.sin(x)))

FUNCTIONS = {
    "exp": jnp.exp, "sin": jnp.sin, "tanh": jnp.tanh, "log1p": jnp.log1p, "sqrt": jnp.sqrt,
    "arctan": jnp.arctan, "erf": ft.scipy.special.erf, "gelu": ft.nn.gelu,
    "quotient": lambda x: (1 + x) / (x * x + 2), "power": lambda x: x**2.5 + x**x,
    "constant numerator": lambda x: 3.0 / x, "constant denominator": lambda x: x * x / 7,
    "network": lambda x: jnp.tanh(A @ jnp.tanh(A @ x)), "softmax": ft.nn.softmax,
    "solve": lambda x: jnp.linalg.solve(A + jnp.diag(x), x),
    "det": lambda x: jnp.linalg.det(A + jnp.diag(x)),
    "sort": lambda x: jnp.sort(x * x), "max": lambda x: jnp.max(jnp.sin(x)),
    "cumprod": jnp.cumprod, "where": lambda x: jnp.where(x > 0.5, x * x, jnp.sin(x)),
    "gather": lambda x: (x * x)[jnp.array([2, 0, 0])],
    "scatter": lambda x: jnp.zeros(5).at[1:].add(x * x),
    "complex": lambda x: jnp.abs(jnp.exp(1j * x) + x),
    "scan": lambda x: ft.lax.scan(lambda c, y: (jnp.sin(c * y), c * c), x[0], x)[1],
    "cond": lambda x: ft.lax.cond(x[0] > 0.1, jnp.sin, jnp.cos, x),
    "custom rule": with_rule, "jit": ft.jit(with_rule),
    "closure": lambda x: ft.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_nested_forward_mode(name):
    f = FUNCTIONS[name]
    value, terms = jet(f, (X,), ([D, *np.zeros((ORDER - 1, 4))],))
    np.testing.assert_allclose(value, f(X))
    for got, wanted in zip(terms, nested(f), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


def test_series_are_derivatives_of_curves():
    """Of x(t) with given derivatives: sin(t^2 / 2 + 1), whose second derivative at 0 is cos(1)."""
    _, terms = jet(jnp.sin, (1.0,), ((0.0, 1.0, 0.0, 0.0),))
    np.testing.assert_allclose(terms, [0, np.cos(1), 0, -3 * np.sin(1)], rtol=1e-6)


def test_many_orders_are_polynomially_many_operations():
    """The third power of the order, not a power of two."""
    def operations(order):
        zeros = [0.0] * (order - 1)
        f = lambda x: jet(lambda x: jnp.sin(jnp.exp(jnp.sin(x))), (x,), ((1.0, *zeros),))
        return len(ft.make_jaxpr(f)(0.3).eqns)

    assert operations(16) < 10 * operations(8)


def test_it_composes():
    third = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(ft.grad(third)(0.5), np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(ft.jit(third)(0.5), -np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(third)(X), -np.cos(X), rtol=1e-6)
    _, terms = jet(ft.grad(lambda x: jnp.sin(x).sum()), (X,), ([D, 0 * D],))
    np.testing.assert_allclose(terms, [-np.sin(X) * D, -np.cos(X) * D * D])
    _, terms = jet(lambda x: jet(jnp.exp, (x,), ((1.0, 0.0),))[1][1], (0.0,), ((1.0, 0.0),))
    np.testing.assert_allclose(terms, [1, 1])


def test_trees_constants_and_integers():
    value, terms = jet(lambda p, n: {"out": p["a"] * n, "n": n, "c": 2.0}, ({"a": X}, 3),
                       ([{"a": D}, {"a": 0 * D}], [0, 0]))
    np.testing.assert_allclose(terms["out"], [3 * D, 0 * D])
    assert value["n"] == 3 and [float(t) for t in terms["c"]] == [0, 0]


def test_bad_series():
    with pytest.raises(ArgumentError, match="1 primals and 2 series"):
        jet(jnp.sin, (1.0,), ((1.0,), (1.0,)))
    with pytest.raises(ArgumentError, match="series of 1 and 2 derivatives"):
        jet(jnp.add, (1.0, 1.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ArgumentError, match="order 1 has another structure"):
        jet(jnp.sin, (1.0,), (({"a": 1.0},),))
    with pytest.raises(ShapeError, match="order 2"):
        jet(jnp.sin, (1.0,), ((1.0, X),))
