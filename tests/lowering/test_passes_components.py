"""Loops over short vectors become loops over their components, with the same results."""

import itertools
import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import get_aval
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import subjaxprs
from functrans.core.staging import stage
from functrans.lowering.passes.components import MOVING
from functrans.lowering.passes.pipeline import simplify

LANES = 37


def lorenz(v):
    return jnp.stack([10 * (v[1] - v[0]), v[0] * (28 - v[2]) - v[1], v[0] * v[1] - 8 / 3 * v[2]])


def runge_kutta(v):
    k = lorenz(v)
    return v + 0.005 * (k + lorenz(v + 0.01 * k))


W = np.random.default_rng(3).uniform(-0.5, 0.5, (3, 3)).astype(np.float32)

STEPS = {
    "stack of slices": runge_kutta,
    "matrix": lambda v: jnp.tanh(W @ v),
    "outer product": lambda v: v + 0.1 * jnp.outer(v, v).sum(0) - 0.1 * jnp.trace(jnp.outer(v, v)),
    "matrix of the state": lambda v: jnp.linalg.norm(v) * (jnp.stack([v, -v, v * v]) @ v) * 0.1,
    "einsum": lambda v: jnp.einsum("i,ij,jk->k", v, jnp.eye(3) + 0.1, W),
    "cross": lambda v: v + 0.01 * jnp.cross(v, v[::-1]),
    "roll": lambda v: 0.5 * (jnp.roll(v, 1) + v),
    "pad": lambda v: jnp.pad(v, (1, 2))[1:4] - 0.1 * jnp.pad(v, (2, 0))[:3],
    "cumulative": lambda v: jnp.sin(jnp.cumsum(v) - jnp.cumsum(v[::-1])),
    "extrema": lambda v: v - 0.1 * v.max() * jnp.minimum(v.min(), v.prod()),
    "where": lambda v: jnp.where(v > v.mean(), 0.9 * v, v + 0.01),
    "counts": lambda v: v * jnp.arange(3) * 0.3 + jnp.full(3, 0.25),
    "reshape": lambda v: jnp.concatenate([v, v * v]).reshape(2, 3).T.reshape(3, 2).sum(1) * 0.4,
    "any, all": lambda v: jnp.where((v > 0.5).any() & (v > -5).all(), v * 0.7, v),
    "index update": lambda v: v.at[1].add(0.1 * v[0]).at[0].set(v[2]),
    "clip": lambda v: jnp.clip(v, -0.5, v[0] + 2.0) + jnp.stack([v[1], v[1], v[2]]) * 0.1,
    "branches": lambda v: lax.cond(v[0] > 0.5, lambda u: u[::-1] * 0.9, lambda u: u + 0.1, v),
    "inner loop": lambda v: lax.fori_loop(0, 3, lambda i, u: u.at[0].add(0.1 * u[2] * i), v),
    "inner while": lambda v: lax.while_loop(lambda u: u[0] < 2, lambda u: u[::-1] + 0.3, v * 0.1),
}


def trajectory(step):
    def run(v):
        return lax.scan(lambda c, _: (step(c), c[1:]), v, None, length=5)
    return run


def until(step):
    def run(v):
        return lax.while_loop(lambda s: (s[1] < 7) & (jnp.abs(s[0]).sum() < 50),
                              lambda s: (step(s[0]), s[1] + 1), (v, 0))[0]
    return run


def mapped(loop):
    return ft.vmap(loop)


def mapped_along_another_axis(loop):
    return lambda x: ft.vmap(loop, in_axes=1, out_axes=-1)(x.T)


def jacobians(loop):
    return ft.vmap(ft.jacfwd(loop))


def gradient(loop):
    return ft.grad(lambda x: sum((o ** 2).sum() for o in ft.tree.leaves(ft.vmap(loop)(x))))


LOOPS = (trajectory, until)
PROGRAMS = (mapped, mapped_along_another_axis, jacobians, gradient)
COMBINED = [(s, loop, PROGRAMS[(i + 2 * k) % 4]) for i, s in enumerate(STEPS)
            for k, loop in enumerate(LOOPS)]
ALL = list(itertools.product(STEPS, LOOPS, PROGRAMS))


def arguments():
    return np.random.default_rng(0).uniform(0.1, 1.0, (LANES, 3)).astype(np.float32)


def moving(jaxpr):
    """The operations in bodies of loops that move elements."""
    return [eqn.primitive.name for loop in jaxpr.eqns for body in subjaxprs(loop)
            for eqn in body.eqns if eqn.primitive in MOVING]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("step, loop, program", [
    pytest.param(*c, id=f"{c[0]}-{c[1].__name__}-{c[2].__name__}",
                 marks=() if c in COMBINED else pytest.mark.thorough) for c in ALL])
def test_values_and_derivatives_are_those_of_whole_vectors(step, loop, program):
    x = arguments()
    fun = program(loop(STEPS[step]))
    closed = stage(lambda v: ft.tree.leaves(fun(v)), [get_aval(x)])
    whole = closed.jaxpr.hoist_consts()
    args = [*closed.consts, x]
    parts = simplify(whole)
    check_jaxpr(parts)
    expected = interpret(whole, args)
    for outs in (interpret(parts, args), ft.tree.leaves(ft.jit(fun)(x))):
        for actual, e in zip(outs, expected, strict=True):
            np.testing.assert_allclose(actual, e, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", ["stack of slices", "matrix", "cross", "cumulative", "einsum",
                                  "reshape"])
def test_a_step_of_components_moves_nothing(name):
    x = arguments()
    closed = stage(lambda v: ft.tree.leaves(ft.vmap(trajectory(STEPS[name]))(v)), [get_aval(x)])
    assert moving(simplify(closed.jaxpr.hoist_consts())) == []


def test_the_loop_is_one_kernel():
    x = arguments()
    explained = str(ft.explain(ft.vmap(lambda v: lax.fori_loop(
        0, 100, lambda i, u: runge_kutta(u), v)), x))
    assert "a loop over short vectors is one over their components" in explained


@pytest.mark.parametrize("step, width", [
    (lambda v: jnp.sin(v) * 2, 3), (jnp.sort, 3), (lambda v: jnp.roll(v, 1) * 0.5, 12),
], ids=["nothing to gain", "no rule", "long axes"])
def test_other_loops_are_left_as_they_are(step, width):
    x = np.ones((LANES, width), np.float32)
    run = ft.vmap(lambda v: lax.fori_loop(0, 5, lambda i, u: step(u), v))
    closed = stage(lambda v: [run(v)], [get_aval(x)])
    body, = subjaxprs(next(e for e in simplify(closed.jaxpr.hoist_consts()).eqns
                           if e.primitive.higher_order))
    assert any(v.aval.shape == x.shape for v in (*body.invars, *body.outvars))


def test_cotangents_of_components_are_not_added_to_zeros():
    """What a step reads of a vector has a cotangent of zeros but at one place."""
    def end(s):
        def step(s, _):
            return s + 0.1 * jnp.stack([s[1] - s[0], s[0] * s[2], s[0] * s[1]]), None
        return jnp.sum(lax.scan(step, s, None, length=5)[0])

    closed = ft.make_jaxpr(ft.vmap(ft.grad(end)))(np.ones((600, 3), "f"))
    text = str(simplify(closed.jaxpr.hoist_consts()))
    assert " = mul " in text
    assert not re.search(r"= add\w* \w+ -?0\.0:", text)
