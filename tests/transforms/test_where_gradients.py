"""Gradients of `where` know nothing of the branch that is not taken, to any order."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.test_util import check_grads

X = jnp.array([-1.0, 0.0, 2.0])
TWO = np.ones((3, 2), np.float32)

# functions whose branches have infinite or no derivatives where they are not taken
FUNCTIONS = {
    "sqrt": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
    "log": lambda x: jnp.where(x > 0, jnp.log(x), x),
    "log of sqrt": lambda x: jnp.where(x > 0, jnp.log(jnp.sqrt(x)) * x, x),
    "reciprocal": lambda x: jnp.where(x != 0, 1 / x, x),
    "power": lambda x: jnp.where(x > 0, x ** 0.5, 0.0),
    "arccos": lambda x: jnp.where(abs(x) < 1, jnp.arccos(x), 0.0),
    "overflow": lambda x: jnp.where(x < 1, jnp.exp(x * 50), 0.0),
    "broadcast": lambda x: jnp.where((x > 0)[:, None], jnp.sqrt(x)[:, None] * TWO, 0.0),
    "reduction": lambda x: jnp.where(x.sum() > 9, jnp.linalg.norm(x * 0), 1.0),
    "nested": lambda x: jnp.where(x > 0, jnp.where(x > 1, jnp.log(x - 1), 0.0), x),
    "jit": lambda x: jnp.where(x > 0, ft.jit(lambda y: jnp.log(jnp.sqrt(y)))(x), 0.0),
    "checkpoint": lambda x: jnp.where(x > 0, ft.checkpoint(lambda y: jnp.log(jnp.sqrt(y)))(x), 0.0),
    "rows": lambda x: jnp.where((x > 0)[:, None], x[:, None] / jnp.sqrt((x * x)[:, None]), 0.0),
    "select": lambda x: jnp.select([x > 1, x > 0], [jnp.log(x - 1), jnp.sqrt(x)], x),
}
WAYS = {
    "grad": lambda f: ft.grad(f),
    "jit": lambda f: ft.jit(ft.grad(f)),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](np.float32(1))[0],
    "vmap": lambda f: lambda x: ft.vmap(ft.grad(f))(x[None])[0],
    "grad of grad": lambda f: ft.grad(lambda x: ft.grad(f)(x).sum()),
    "jit of grad of grad": lambda f: ft.jit(ft.grad(lambda x: ft.grad(f)(x).sum())),
    "hessian": lambda f: ft.hessian(f),
    "jacrev of jacrev": lambda f: ft.jacrev(ft.jacrev(f)),
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,))[1],
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
def test_derivatives_are_finite_where_the_branch_is_not_taken(fun, way):
    found = way(lambda x: fun(x).sum())(X)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("fun", FUNCTIONS.values(), ids=FUNCTIONS)
def test_derivatives_of_the_branch_that_is_taken_are_right(fun):
    check_grads(fun, (np.array([0.3, 1.7, 2.9]),), order=2)


def test_a_zero_cotangent_of_the_branch_that_is_taken_keeps_its_second_derivative():
    # at the minimum the cotangent of sqrt is 0, and its derivative is not
    fun = lambda x: jnp.where(x > 0, (jnp.sqrt(x) - 1) ** 2, 0.0).sum()
    assert np.allclose(ft.hessian(fun)(jnp.array([1.0, 4.0, 0.0])), np.diag([0.5, 1 / 16, 0.0]))


def test_programs_without_where_multiply_as_ever():
    text = str(ft.make_jaxpr(ft.grad(lambda x: (jnp.sqrt(x) * jnp.log(x)).sum()))(X))
    assert "masked" not in text
    selected = lambda w, x: jnp.where(x > 0, jnp.tanh(x @ w), 0.0).sum()
    text = str(ft.make_jaxpr(ft.grad(selected))(np.ones((3, 3)), np.ones((3, 3))))
    assert text.count("masked_mul") == 1, "up to the product, not beyond"


@pytest.mark.parametrize("scale", [
    lambda x: x * 0.125, lambda x: x / np.float32(8), lambda x: x / jnp.sqrt(64.0)])
def test_constant_factors_stay_plain(scale):
    masked = lambda x: jnp.where(x > 0, scale(x), -np.inf).max()
    assert "masked" not in str(ft.make_jaxpr(ft.grad(masked))(X))
