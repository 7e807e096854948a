"""Functions with rules of their own that close over traced values.

The law: under any composition of transforms, a function with a custom rule that closes over a
traced value in any of its parts gives what the function without the rule gives, where the rule
says what the derivative is.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as fnp

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
        return lambda box={"a": [(k,)]}: box["a"][0][0]  # noqa: B006
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
        return scale() * fnp.sin(x) + (seen["primal"]() - seen["primal"]())

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), scale() * fnp.cos(x) * t + (seen["rule"]() - seen["rule"]()) * t

    return f


def vjp_function(k: Any, part: str, way: str) -> Function:
    get = value_of(k, way)
    seen = {p: get if part in (p, "all") else (lambda: 1.0) for p in ("primal", "fwd", "bwd")}
    scale = get if part in ("all",) else (lambda: 2.0)

    @ft.custom_vjp
    def f(x: Any) -> Any:
        return scale() * fnp.sin(x) + (seen["primal"]() - seen["primal"]())

    def fwd(x: Any) -> Any:
        return f(x) + (seen["fwd"]() - seen["fwd"]()), x

    def bwd(x: Any, ct: Any) -> Any:
        return (scale() * fnp.cos(x) * ct + (seen["bwd"]() - seen["bwd"]()) * ct,)

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
        return (ct * outer_scale * fnp.cos(x),)

    f.defvjp(lambda x: (inner(x), x), bwd)
    return f


def plain_function(k: Any, part: str, way: str) -> Function:
    scale = k if part == "all" else 2.0
    return lambda x: scale * fnp.sin(x)


MAKERS = {"jvp": (jvp_function, ("primal", "rule", "all")),
          "vjp": (vjp_function, ("primal", "fwd", "bwd", "all")),
          "nested": (nested_function, ("primal", "bwd", "all"))}

# ----------------------------------------------------------------------------------- transforms


def scanned(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (0.5 * f(c), None), x, None, length=2)[0]


def scanned_inputs(f: Function) -> Function:
    return lambda x: lax.scan(lambda c, y: (c + f(y), None), 0.0 * x,
                              fnp.stack([x, x + 0.25]))[0]


def looped(f: Function) -> Function:
    return lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, 0.5 * f(s[1])),
                                    (0, x))[1]


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "jit": ft.jit,
    "vmap": lambda f: lambda x: fnp.sum(ft.vmap(f)(fnp.stack([x, x + 0.25]))),
    "vmap_none": lambda f: lambda x: fnp.sum(
        ft.vmap(lambda y: f(x) * y)(fnp.arange(1.0, 3.0))),
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
            k = 1.5 + fnp.cos(inner[level])
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


@pytest.mark.parametrize("program", [
    *[(*p, WAYS[i % len(WAYS)]) for i, p in enumerate(programs(1))], *drawn(2, 60, 0),
    *drawn(3, 40, 1)], ids=text)
def test_closures_are_differentiated_and_mapped(program: tuple[Any, ...]) -> None:
    check(*program)


@pytest.mark.thorough
@pytest.mark.parametrize("program", [*drawn(2, 1500, 2), *drawn(3, 1500, 3)], ids=text)
def test_closures_under_many_compositions(program: tuple[Any, ...]) -> None:
    check(*program)
