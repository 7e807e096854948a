"""Loops that one side of a choice reads run where it is chosen."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.lazy_choices import with_lazy_choices
from functrans.lowering.passes.pipeline import simplify


def steps(x, n=5):
    return lax.fori_loop(0, n, lambda k, y: jnp.sin(y) + k, x)


def choice(x):
    return jnp.where(x > 0, steps(x * 2) + 1, x)


def several(x):
    y = steps(x)
    return jnp.where(x > 0, y, 0.0), jnp.where(x > 0, x, y * 2), jnp.where(
        x > 0, jnp.stack([steps(x, 3), x]), 0.0)


def one_after_another(x):
    """The second choice reads what is computed from the first."""
    a = jnp.where(x > 0, steps(x), x)
    return jnp.where(x > 0, steps(a + 1), a)


def in_a_loop(x):
    return lax.fori_loop(0, 3, lambda k, y: jnp.where(y > k, steps(y), -y), x)


def read_besides(x):
    y = steps(x)
    return jnp.where(x > 0, y, 0.0) + y


def read_by_the_test(x):
    y = steps(x)
    return jnp.where(y > 0, y, steps(y, 2))


def without_loops(x):
    return jnp.where(x > 0, jnp.sin(x), jnp.cos(x))


def condition(x):
    """Where x is not positive it does not matter whether the loop ends above 2."""
    return jnp.where(steps(x) > 2, 0.0, jnp.maximum(x, 0.0))


def condition_of_several(x):
    dark = steps(x) > 2
    colour = jnp.maximum(jnp.stack([x, 2 * x, x - 1]), 0.0)
    return jnp.where(dark, 0.0, colour), jnp.where(dark, -1, 1)


def condition_of_no_number(x):
    return jnp.where(steps(x) > 2, x, -x)


def zeros_of_two_signs(x):
    return jnp.where(steps(x) > 2, 0.0, x * 0.0)


def loops_outside(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns].count("scan")


@pytest.mark.parametrize("fun, before, after", [
    (choice, 1, 0), (several, 2, 1), (one_after_another, 2, 0), (in_a_loop, 1, 1),
    (condition, 1, 0), (condition_of_several, 1, 0), (condition_of_no_number, 1, 1),
    (zeros_of_two_signs, 1, 0), (read_besides, 1, 1), (read_by_the_test, 2, 1),
    (without_loops, 0, 0)])
@pytest.mark.parametrize("x", [1.5, -1.5, np.nan])
def test_values(fun, x, before, after):
    jaxpr = simplify(ft.make_jaxpr(fun)(np.float32(x)).jaxpr.hoist_consts())
    lazy = with_lazy_choices(jaxpr)
    assert (loops_outside(jaxpr), loops_outside(lazy)) == (before, after)
    for a, b in zip(interpret(lazy, [np.float32(x)]), interpret(jaxpr, [np.float32(x)]),
                    strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
