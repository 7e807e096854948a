"""Solutions of equations of second order: a value and a slope, and the derivatives of both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import loop
from functrans.transforms import forward
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.tangents import SymbolicZero
from functrans.typing import Array

__all__ = ["Pair", "carried", "solution"]

Pair = tuple[Array, Array]

_TERMS = 40


def solution(raw: Callable[..., Pair], second: Callable[..., Array], counts: int = 0
             ) -> Callable[..., Pair]:
    """`raw`, the value and slope in its last argument, whose second derivative is
    second(value, slope, *args).

    The first `counts` arguments have no derivative, those between have that of `raw` itself.
    """
    ruled = custom_jvp(raw)

    def rule(primals: Any, tangents: Any) -> Any:
        value, slope = ruled(*primals)
        moved = [jnp.zeros_like(value), jnp.zeros_like(value)]
        last = len(primals) - 1
        for i, t in enumerate(tangents):
            if i < counts or isinstance(t, SymbolicZero):
                continue
            if i == last:
                parts: Any = (slope, second(value, slope, *primals))
            else:
                def along(x: Any, i: int = i) -> Any:
                    return raw(*primals[:i], x, *primals[i + 1:])

                parts = forward.jvp(along, (primals[i],), (jnp.ones_like(primals[i]),))[1]
            moved = [m + t * p for m, p in zip(moved, parts, strict=True)]
        return (value, slope), tuple(moved)

    ruled.defjvp(rule, symbolic_zeros=True)
    return functools.wraps(raw)(ruled)


def carried(equation: Callable[[Array], tuple[list[Any], list[Any], list[Any]]], at: Array,
            value: Array, slope: Array, to: Array, reach: Callable[[Array], Array]) -> Pair:
    """The solution of p y'' + q y' = w y at `to` of its value and slope `at` a point.

    `equation(x)` has the coefficients of the polynomials p, q and w in powers of t around x, and
    `reach(x)` the length of a step, by Taylor's series of 40 terms.
    """
    def advance(k: Any, at: Array, value: Array, slope: Array) -> tuple[Array, ...]:
        longest = lax.stop_gradient(reach(at))
        rest = to - at
        last = lax.abs(rest) <= longest
        step = jnp.where(last, rest, jnp.where(rest < 0, -longest, longest))
        p, q, w = equation(at)
        kept = max(len(w) + 1, len(q), len(p) - 1, 2)

        # the terms a_n t^n, newest first
        def term(n: Any, state: Any) -> Any:
            total, rise, recent = state
            m = n.astype(step.dtype)  # of a_(m + 2)
            inner = jnp.zeros_like(step)
            power = step * step
            for j, c in enumerate(w):
                inner = inner + c * power * recent[j + 1]
                power = power * step
            power = step
            for j, c in enumerate(q):
                inner = inner - c * power * jnp.maximum(m + 1.0 - j, 0.0) * recent[j]
                power = power * step
            power = step
            for j, c in enumerate(p[1:], 1):
                inner = inner - c * power * jnp.maximum((m + 2.0 - j) * (m + 1.0 - j), 0.0) \
                    * recent[j - 1]
                power = power * step
            new = inner / (p[0] * (m + 2.0) * (m + 1.0))
            return total + new, rise + (m + 2.0) * new, (new, *recent[:-1])

        none = jnp.zeros_like(value)
        first = slope * step
        recent = (first, value, *[none] * (kept - 2))
        total, rise, _ = lax.fori_loop(0, _TERMS, term, (value + first, first, recent))
        moved = step != 0
        return (jnp.where(last, to, at + step), total,
                jnp.where(moved, rise / jnp.where(moved, step, 1.0), slope))

    out = loop(advance, (at, value, slope), lambda at, value, slope: at != to, 100_000)
    return out[1], out[2]
