"""Functions with rules of their own that close over traced values.

The law: under any composition of transforms, a function with a custom rule that closes over a
traced value in any of its parts gives what the function without the rule gives, where the rule
says what the derivative is.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import CustomRuleError

Function = Callable[[Any], Any]

# ------------------------------------------------------------------- functions with and without


class Holder:
    """A value as the attribute of an object that is called."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


def value_of(k: Any, way: str) -> Callable[[], Any]:
    """A function that gives k, which it reaches in one of several ways."""
    if way == "default":
        return lambda k=k: k
    if way == "object":
        return Holder(k)
    if way == "method":
        return Holder(k).__call__
    if way == "container":
        return lambda box={"a": [(k,)]}: box["a"][0][0]
    if way == "functions":
        def first() -> Any:
            return k

        def second() -> Any:
            return first()

        def third() -> Any:
            return second()

        def fourth() -> Any:
            return third()
        return fourth
    return lambda: k


WAYS = ("closure", "default", "object", "method", "container", "functions")


def jvp_function(k: Any, part: str, way: str) -> Function:
    """k * sin(x) by custom_jvp; what is not `part` has k as an argument of another function."""
    get = value_of(k, way)
    seen = {p: get if part in (p, "all") else (lambda: 1.0) for p in ("primal", "rule")}
    scale = get if part in ("all",) else (lambda: 2.0)

    @ft.custom_jvp
    def f(x: Any) -> Any:
        return scale() * jnp.sin(x) + (seen["primal"]() - seen["primal"]())

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), scale() * jnp.cos(x) * t + (seen["rule"]() - seen["rule"]()) * t

    return f


def vjp_function(k: Any, part: str, way: str) -> Function:
    get = value_of(k, way)
    seen = {p: get if part in (p, "all") else (lambda: 1.0) for p in ("primal", "fwd", "bwd")}
    scale = get if part in ("all",) else (lambda: 2.0)

    @ft.custom_vjp
    def f(x: Any) -> Any:
        return scale() * jnp.sin(x) + (seen["primal"]() - seen["primal"]())

    def fwd(x: Any) -> Any:
        return f(x) + (seen["fwd"]() - seen["fwd"]()), x

    def bwd(x: Any, ct: Any) -> Any:
        return (scale() * jnp.cos(x) * ct + (seen["bwd"]() - seen["bwd"]()) * ct,)

    f.defvjp(fwd, bwd)
    return f


def nested_function(k: Any, part: str, way: str) -> Function:
    """A custom_jvp function whose rule calls another one, inside a custom_vjp function."""
    inner = jvp_function(k, {"fwd": "primal", "bwd": "rule"}.get(part, part), way)
    outer_scale = 2.0 if part != "all" else value_of(k, way)()

    @ft.custom_vjp
    def f(x: Any) -> Any:
        return inner(x)

    def bwd(x: Any, ct: Any) -> Any:
        return (ct * outer_scale * jnp.cos(x),)

    f.defvjp(lambda x: (inner(x), x), bwd)
    return f


def plain_function(k: Any, part: str, way: str) -> Function:
    scale = k if part == "all" else 2.0
    return lambda x: scale * jnp.sin(x)


MAKERS = {"jvp": (jvp_function, ("primal", "rule", "all")),
          "vjp": (vjp_function, ("primal", "fwd", "bwd", "all")),
          "nested": (nested_function, ("primal", "bwd", "all"))}

# ----------------------------------------------------------------------------------- transforms


def scanned(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (0.5 * f(c), None), x, None, length=2)[0]


def scanned_inputs(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, y: (c + f(y), None), 0.0 * x,
                              jnp.stack([x, x + 0.25]))[0]


def looped(f: Function) -> Function:
    return lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, 0.5 * f(s[1])),
                                    (0, x))[1]


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "jit": ft.jit,
    "vmap": lambda f: lambda x: jnp.sum(ft.vmap(f)(jnp.stack([x, x + 0.25]))),
    "vmap_none": lambda f: lambda x: jnp.sum(
        ft.vmap(lambda y: f(x) * y)(jnp.arange(1.0, 3.0))),
    "grad": ft.grad,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](1.0),
    "scan": scanned,
    "scan_inputs": scanned_inputs,
    "cond": lambda f: lambda x: lax.cond(x > -10.0, f, lambda y: y, x),
    "while": looped,
    "checkpoint": ft.checkpoint,
}
FORWARD = {"jvp", "linearize"}


def composed(names: tuple[str, ...], level: int, constant: bool,
             make: Callable[[Any], Function]) -> Function:
    """The transforms, outermost first, of a function made with the argument at a level."""
    def at(i: int, values: tuple[Any, ...]) -> Function:
        def fun(x: Any) -> Any:
            inner = (*values, x)
            if i < len(names):
                return TRANSFORMS[names[i]](at(i + 1, inner))(x)
            k = 1.5 + jnp.cos(inner[level])
            out = make(k)(0.7 if constant else x)
            return out * x if constant else out
        return fun
    return at(0, ())


def programs(depth: int) -> list[tuple[Any, ...]]:
    return [(kind, part, names, level, constant)
            for kind, (_, parts) in MAKERS.items() for part in parts
            for names in itertools.product(TRANSFORMS, repeat=depth)
            if kind == "jvp" or not FORWARD.intersection(names)
            for level in range(depth + 1) for constant in (False, True)]


def check(kind: str, part: str, names: tuple[str, ...], level: int, constant: bool,
          way: str) -> None:
    make = MAKERS[kind][0]
    got = composed(names, level, constant, lambda k: make(k, part, way))(0.4)
    want = composed(names, level, constant, lambda k: plain_function(k, part, way))(0.4)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5, atol=2e-6)


def drawn(depth: int, count: int, seed: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    return [(*p, rng.choice(WAYS)) for p in rng.sample(programs(depth), count)]


def text(program: tuple[Any, ...]) -> str:
    kind, part, names, level, constant, way = program
    return f"{kind}-{part}-{'.'.join(names)}-{level}{'-constant' * constant}-{way}"


@pytest.mark.one_in(6)
@pytest.mark.parametrize("program", [
    *[(*p, WAYS[i % len(WAYS)]) for i, p in enumerate(programs(1))], *drawn(2, 60, 0),
    *drawn(3, 40, 1)], ids=text)
def test_closures_are_differentiated_and_mapped(program: tuple[Any, ...]) -> None:
    check(*program)


@pytest.mark.thorough
@pytest.mark.parametrize("program", [*drawn(2, 1500, 2), *drawn(3, 1500, 3)], ids=text)
def test_closures_under_many_compositions(program: tuple[Any, ...]) -> None:
    check(*program)


# --------------------------------------------------------------- rules that call their functions


@ft.custom_jvp
def doubled(x: Any) -> Any:
    return 2.0 * x


doubled.defjvp(lambda primals, tangents: (doubled(primals[0]), doubled(tangents[0])))


def plainly_doubled(x: Any) -> Any:
    return 2.0 * x


@pytest.mark.one_in(2)
@pytest.mark.parametrize("names", [
    *itertools.product(TRANSFORMS, repeat=1), *itertools.product(TRANSFORMS, ("grad", "scan")),
    *itertools.product(("grad", "linearize"), ("jit", "scan", "while", "checkpoint", "cond"),
                       ("scan", "jit", "cond"))], ids=".".join)
def test_rules_that_call_their_function_on_the_tangent(names: tuple[str, ...]) -> None:
    got, want = (composed(names, 0, False, lambda k, f=f: lambda x: f(jnp.sin(x)) * x)(0.4)
                 for f in (doubled, plainly_doubled))
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5)


def endless_forward() -> Function:
    @ft.custom_jvp
    def endless(x: Any) -> Any:
        return 2.0 * x

    endless.defjvp(lambda p, t: (endless(*p), ft.jvp(endless, p, t)[1]))
    return endless


def endless_backward() -> Function:
    @ft.custom_vjp
    def endless(x: Any) -> Any:
        return 2.0 * x

    endless.defvjp(lambda x: (endless(x), x), lambda x, ct: (ct * ft.grad(endless)(x),))
    return endless


@pytest.mark.parametrize("make", [endless_forward, endless_backward])
@pytest.mark.parametrize("around", ["jit", "scan", "checkpoint", "vmap"])
def test_rules_without_end_are_named(make: Callable[[], Function], around: str) -> None:
    for f in (make(), TRANSFORMS[around](make())):
        with pytest.raises(CustomRuleError, match="differentiates endless again, without end"):
            ft.grad(f)(1.0)


# -------------------------------------------------------------------- arguments and cotangents


def test_arguments_that_are_not_differentiated_are_given_by_name() -> None:
    @partial(ft.custom_vjp, nondiff_argnames=("scale", "f"))
    def applied(x: Any, f: Function, scale: float = 2.0) -> Any:
        return scale * f(x)

    applied.defvjp(lambda x, f, scale: (applied(x, f, scale), x),
                   lambda f, scale, x, ct: (10.0 * scale * ct * ft.grad(f)(x),))
    want = 20.0 * np.cos(0.3)
    np.testing.assert_allclose(ft.grad(lambda x: applied(x, jnp.sin))(0.3), want, rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda x: applied(x, f=jnp.sin, scale=4.0))(0.3), 2 * want,
                               rtol=1e-6)

    @partial(ft.custom_jvp, nondiff_argnames="f")
    def forward(x: Any, f: Function) -> Any:
        return f(x)

    forward.defjvp(lambda f, p, t: (f(*p), 10.0 * ft.jvp(f, p, t)[1]))
    np.testing.assert_allclose(ft.jit(ft.grad(lambda x: forward(x, jnp.sin)))(0.3),
                               10.0 * np.cos(0.3), rtol=1e-6)
    with pytest.raises(CustomRuleError, match="'g', which is no parameter"):
        ft.custom_jvp(lambda x, f: x, nondiff_argnames=("g",))


def test_arguments_that_are_not_differentiated_may_close_over_traced_values() -> None:
    @partial(ft.custom_vjp, nondiff_argnums=1)
    def applied(x: Any, f: Function) -> Any:
        return x * f(2.0)

    applied.defvjp(lambda x, f: (applied(x, f), None), lambda f, _, ct: (ct * f(2.0),))

    def run(x: Any) -> Any:
        return applied(x, lambda y: y * jnp.sin(x))

    def plain(x: Any) -> Any:
        return x * 2.0 * jnp.sin(x)

    xs = jnp.arange(3.0)
    for change in (ft.vmap(ft.grad(run)), ft.jit(ft.vmap(ft.grad(run))),
                   lambda xs: lax.map(ft.grad(run), xs)):
        np.testing.assert_allclose(change(xs), ft.vmap(ft.grad(plain))(xs), rtol=1e-6)


def test_none_stands_for_the_zeros_of_a_subtree() -> None:
    p = {"a": 2.0, "b": (3.0, [jnp.ones(2), None]), "c": {"d": 1.0}}

    def run(answer: Callable[[Any, Any], Any]) -> Any:
        @ft.custom_vjp
        def f(p: Any) -> Any:
            return p["a"] * p["b"][0] + p["b"][1][0].sum() + p["c"]["d"]

        f.defvjp(lambda p: (f(p), p), lambda p, ct: (answer(p, ct),))
        for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
            yield [np.asarray(x).tolist() for x in ft.tree.leaves(g(p))]

    for found in run(lambda p, ct: {"a": ct * p["b"][0], "b": None, "c": None}):
        assert found == [3.0, 0.0, [0.0, 0.0], 0.0]
    for found in run(lambda p, ct: {"a": None, "b": (ct * p["a"], [None, None]), "c": {"d": ct}}):
        assert found == [0.0, 2.0, [0.0, 0.0], 1.0]
    for found in run(lambda p, ct: {"a": ct, "b": (None, None), "c": None}):
        assert found == [1.0, 0.0, [0.0, 0.0], 0.0]
    for wrong in ({"a": 1.0, "b": 1.0, "c": None}, {"a": None, "b": None},
                  {"a": None, "b": (None,), "c": None}):
        with pytest.raises(CustomRuleError, match="has another structure than the argument"):
            list(run(lambda p, ct, wrong=wrong: wrong))
