"""Reductions of what loops collect are those that the loop carries."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.carried_reductions import carry_reductions
from functrans.lowering.passes.pipeline import simplify

LANES, STEPS = 24, 20
X = np.random.default_rng(0).uniform(-1, 1, LANES).astype("f")
WEIGHTS = np.linspace(1, 2, STEPS).astype("f")
EACH = np.random.default_rng(1).normal(size=(LANES, STEPS)).astype("f")


def walk(x, length=STEPS):
    return lax.scan(lambda c, _: (c * 0.9 + jnp.sin(c), c), x, None, length=length)[1]


def backwards(x, each):
    return lax.scan(lambda c, e: (c * 0.9 + e, c * e), x, each, reverse=True)[1]


def vectors(x):
    return lax.scan(lambda c, _: (c * 0.9, jnp.stack([c, c * c])), x, None, length=STEPS)[1]


CASES = {
    "sum": lambda x, w, e: walk(x).sum(),
    "a long sum": lambda x, w, e: walk(x, 1003).sum(),
    "moments": lambda x, w, e: (walk(x).mean(), ((walk(x) - 1) ** 2).mean()),
    "extrema": lambda x, w, e: (walk(x).max(), jnp.minimum(walk(x), 0.5).min()),
    "a count": lambda x, w, e: (walk(x) > 0.3).sum(),
    "weights": lambda x, w, e: (walk(x) * w).sum() + walk(x) @ w,
    "weights of its own": lambda x, w, e: walk(x) @ e + jnp.sum(jnp.exp(walk(x)) * e),
    "two stacks": lambda x, w, e: walk(x) @ backwards(x, e[::-1]),
    "backwards": lambda x, w, e: backwards(x, e).sum() / backwards(x, e).max(),
    "vectors": lambda x, w, e: (vectors(x).sum(), vectors(x).sum(0), vectors(x).max(1).sum()),
    "used besides": lambda x, w, e: (walk(x).sum(), walk(x)[3:]),
    "of what it gives": lambda x, w, e: ((walk(x) - walk(x).mean()) ** 2).sum(),
}
STACKS_LEFT = {"two stacks": 1, "used besides": 1}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    fun = ft.vmap(CASES[name], (0, None, 0))
    jaxpr = simplify(ft.make_jaxpr(fun)(X, WEIGHTS, EACH).jaxpr.hoist_consts())
    carried = carry_reductions(jaxpr, lambda eqn: True)
    assert carried is not jaxpr
    for a, b in zip(interpret(carried, [X, WEIGHTS, EACH]), interpret(jaxpr, [X, WEIGHTS, EACH]),
                    strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
    left = sum(len(eqn.outvars) - eqn.params["num_carry"] for eqn in carried.eqns
               if eqn.primitive.name == "scan")
    assert left == STACKS_LEFT.get(name, 0)


def test_long_sums_are_exact_to_few_digits():
    """One after another a million terms would be 10,000 times less exact."""
    def fun(x):
        return lax.scan(lambda c, _: (c, c), x, None, length=1 << 17)[1].sum()

    jaxpr = simplify(ft.make_jaxpr(ft.vmap(fun))(X).jaxpr.hoist_consts())
    carried = carry_reductions(jaxpr, lambda eqn: True)
    if carried is jaxpr:  # the sum of one number is a product
        return
    (found,) = interpret(carried, [X])
    np.testing.assert_allclose(found, X.astype("f8") * (1 << 17), rtol=1e-4)


def test_of_numbers_that_are_none():
    x = np.float32([np.inf, -np.inf, np.nan, 0.0])
    fun = ft.vmap(lambda x: (walk(x).sum(), walk(x).max(), walk(x).min()))
    jaxpr = simplify(ft.make_jaxpr(fun)(x).jaxpr.hoist_consts())
    for a, b in zip(interpret(carry_reductions(jaxpr, lambda eqn: True), [x]),
                    interpret(jaxpr, [x]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_halves_are_not_added_one_after_another():
    def fun(x):
        return lax.scan(lambda c, _: (c * 0.9, c), x, None, length=30)[1].sum()

    x = X.astype("f2")
    jaxpr = simplify(ft.make_jaxpr(ft.vmap(fun))(x).jaxpr.hoist_consts())
    assert carry_reductions(jaxpr, lambda eqn: True) is jaxpr
