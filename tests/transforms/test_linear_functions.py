"""What `vjp` and `linearize` return: pytrees of residuals, which pass through every transform."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp

Function = Callable[..., Any]
XS = jnp.linspace(0.1, 1.0, 4)


@ft.custom_vjp
def tripled(x: Any) -> Any:
    return jnp.sin(x)


tripled.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cos, ct: (3.0 * ct * cos,))

FUNCTIONS: dict[str, Function] = {
    "product": lambda x: jnp.sin(x) * jnp.cos(x),
    "linear": lambda x: 3.0 * x,
    "constant": lambda x: 0.0 * x + 1.0,
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=3)[0],
    "cond": lambda x: lax.cond(x > 0.5, jnp.sin, jnp.cos, x),
    "while": lambda x: lax.while_loop(lambda c: c < 2.0, lambda c: c * 1.7 + x, x),
    "jitted": ft.jit(lambda x: jnp.exp(x) / x),
    "checkpoint": ft.checkpoint(lambda x: jnp.tanh(jnp.tanh(x))),
    "custom": tripled,
    "matrix": lambda x: jnp.sum(jnp.tanh(jnp.outer(XS * x, XS) @ XS)),
}
# What is returned by `vjp` and `linearize`, called with a cotangent or a tangent.
KINDS: dict[str, tuple[Function, Function]] = {
    "vjp": (lambda f, x: ft.vjp(f, x)[1], lambda pull, ct: pull(ct)[0]),
    "linearize": (lambda f, x: ft.linearize(f, x)[1], lambda push, t: push(t)),
}
# Ways of a derivative from where it is made to where it is called, for all of XS.
WAYS: dict[str, Function] = {
    "returned": lambda make, call: [call(ft.jit(make)(x), 2.0) for x in XS],
    "argument": lambda make, call: [ft.jit(call)(make(x), 2.0) for x in XS],
    "both": lambda make, call: [ft.jit(call)(ft.jit(make)(x), 2.0) for x in XS],
    "mapped": lambda make, call: ft.vmap(lambda d: call(d, 2.0))(ft.vmap(make)(XS)),
    "unmapped": lambda make, call: [
        ft.vmap(call, (None, 0))(make(x), jnp.array([2.0, 1.0]))[0] for x in XS],
    "stacked": lambda make, call: ft.vmap(lambda d: call(d, 2.0))(
        lax.scan(lambda c, x: (c, make(x)), 0.0, XS)[1]),
    "carried": lambda make, call: [
        lax.scan(lambda d, ct: (d, call(d, ct)), make(x), jnp.array([2.0]))[1][0] for x in XS],
    "branch": lambda make, call: [
        lax.cond(x > 0, lambda d: call(d, 2.0), lambda d: call(d, 3.0), make(x)) for x in XS],
    "chosen": lambda make, call: [
        call(lax.cond(x > 0, lambda d: d, lambda d: d, make(x)), 2.0) for x in XS],
    "closed over": lambda make, call: [
        ft.jit(lambda ct, d=d: call(d, ct))(2.0) for d in map(make, XS)],
    "looped": lambda make, call: [
        lax.fori_loop(0, 2, lambda i, s: (s[0], call(s[0], 2.0)), (make(x), 0.0))[1] for x in XS],
    "copied": lambda make, call: [call(copy.deepcopy(make(x)), 2.0) for x in XS],
    "rebuilt": lambda make, call: [call(ft.tree.map(jnp.copy, make(x)), 2.0) for x in XS],
}
# No residual has an axis to map; the trips of a loop, and so its residuals, differ in number. A
# custom_vjp function has no forward mode.
IMPOSSIBLE = {("mapped", "linear"), ("mapped", "constant"), ("stacked", "linear"),
              ("stacked", "constant"), ("stacked", "while")}


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("way", "kind", "name"), [
    (way, kind, name) for way in WAYS for kind in KINDS for name in FUNCTIONS
    if (kind, name) != ("linearize", "custom") and (way, name) not in IMPOSSIBLE])
def test_derivatives_go_where_arrays_go(way: str, name: str, kind: str) -> None:
    f = FUNCTIONS[name]
    make, call = KINDS[kind]
    got = WAYS[way](lambda x: make(f, x), call)
    want = [2.0 * float(ft.grad(f)(x)) for x in XS]
    np.testing.assert_allclose(np.asarray(jnp.stack(list(got))), want, rtol=2e-5, atol=1e-6)


def test_derivatives_of_derivatives_that_left_jit() -> None:
    f = FUNCTIONS["product"]
    inner = ft.jit(lambda y: ft.vjp(f, y)[1])
    second = ft.grad(lambda x: inner(x)(1.0)[0])
    np.testing.assert_allclose(ft.vmap(second)(XS), ft.vmap(ft.grad(ft.grad(f)))(XS), rtol=1e-5)
    np.testing.assert_allclose(ft.jit(ft.vmap(second))(XS), ft.vmap(ft.grad(ft.grad(f)))(XS),
                               rtol=1e-5)


def test_trees_and_integers() -> None:
    def f(p: Any, i: Any) -> Any:
        return {"out": p["w"] @ p["b"][0] * i, "n": i}

    p = {"w": jnp.ones((3, 2)), "b": (jnp.array([1.0, 2.0]),)}
    out, pull = ft.jit(lambda p, i: ft.vjp(f, p, i))(p, 3)
    assert out["out"].shape == (3,) and len(ft.tree.leaves(pull)) >= 2
    ct, none = ft.jit(lambda d: d({"out": jnp.ones(3), "n": np.zeros((), ft.float0)}))(pull)
    np.testing.assert_allclose(ct["w"], 3.0 * np.ones((3, 1)) * [1.0, 2.0])
    np.testing.assert_allclose(ct["b"][0], [9.0, 9.0])
    assert none.dtype == ft.float0


def test_one_program_serves_all_derivatives_of_a_jitted_function() -> None:
    traced = []

    def use(pull: Any) -> Any:
        traced.append(1)
        return pull(1.0)[0]

    make, used = ft.jit(lambda x: ft.vjp(FUNCTIONS["product"], x)[1]), ft.jit(use)
    for x in XS:
        used(make(x))
    assert len(traced) == 1
