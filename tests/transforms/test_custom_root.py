"""custom_root: its derivatives are those of the root, whatever finds it."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import TreeMismatchError


def newton(f, x):
    """Without a derivative of its own: it goes by values of the host."""
    def solve(_, x):
        step = jnp.linalg.solve(ft.jacfwd(f)(x), f(x))
        return x - ft.pure_callback(np.asarray, step, step, vmap_method="sequential")
    return lax.fori_loop(0, 12, solve, x)


def tangent_solve(g, y):
    return jnp.linalg.solve(ft.jacfwd(g)(y), y)


def root(a):
    """x with x + sin(x)/2 = a, shifted among its elements."""
    return lax.custom_root(lambda x: x + 0.5 * jnp.sin(jnp.roll(x, 1)) - a, jnp.zeros_like(a),
                           newton, tangent_solve)  # fmt: skip


def unrolled(a):
    x = jnp.zeros_like(a)
    for _ in range(60):
        x = a - 0.5 * jnp.sin(jnp.roll(x, 1))
    return x


A = np.random.default_rng(0).standard_normal(3)


@pytest.mark.parametrize("around", [lambda f: f, ft.jit])
def test_derivatives_are_those_of_the_root(around):
    for make in (lambda f: f, ft.jacrev, ft.jacfwd,
                 lambda f: ft.hessian(lambda a: (f(a) ** 3).sum()),
                 lambda f: ft.vmap(ft.grad(lambda a: (f(a) ** 3).sum()))):  # fmt: skip
        given = jnp.asarray(np.stack([A, -A])) if "vmap" in make.__code__.co_names else \
            jnp.asarray(A)
        np.testing.assert_allclose(around(make(root))(given), make(unrolled)(given), atol=1e-10)


def test_trees_with_something_else():
    def cube(a):
        def solve(f, guess):
            return {"x": jnp.cbrt(a["v"])}, 7
        (found, count) = lax.custom_root(
            lambda t: {"x": t["x"] ** 3 - a["v"]}, {"x": jnp.ones(2)}, solve,
            lambda g, y: {"x": y["x"] / g({"x": jnp.ones(2)})["x"]}, has_aux=True)  # fmt: skip
        return found["x"].sum(), count

    slope, count = ft.grad(cube, has_aux=True)({"v": jnp.array([8.0, 27.0])})
    assert count == 7
    np.testing.assert_allclose(slope["v"], [1 / 12, 1 / 27], rtol=1e-5)


def test_mistakes_are_told():
    with pytest.raises(TreeMismatchError, match="the result of f"):
        lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y)
    with pytest.raises(TreeMismatchError, match="the result of solve"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y)
    with pytest.raises(TreeMismatchError, match="is no pair"):
        lax.custom_root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: y, has_aux=True)
