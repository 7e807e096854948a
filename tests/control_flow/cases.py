"""Programs with control flow, each beside the same function as plain Python on numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret


@dataclass(frozen=True)
class Case:
    """`fun` of one float64 scalar; `python` computes the same with Python's own control flow."""

    name: str
    fun: Callable[[Any], Any]
    python: Callable[[float], float]
    points: tuple[float, ...] = (1.3, 0.5, 2.0, 20.0)


def scan_with_outputs(x):
    carry, ys = lax.scan(lambda c, a: (jnp.sin(c * a) + x, c * x), x, float64(1.0, 2.0, 3.0, 4.0))
    return carry + ys.sum() + ys[1]


def scan_with_outputs_python(x):
    c, ys = x, []
    for a in (1.0, 2.0, 3.0, 4.0):
        ys.append(c * x)
        c = np.sin(c * a) + x
    return c + sum(ys) + ys[1]


def reverse_scan(x):
    (_, total), ys = lax.scan(lambda c, a: ((c[0] + 1, c[1] * a + x * c[0]), c[1] ** 2), (0, x),
                              float64(0.5, 1.5, 0.7), reverse=True)
    return total * ys[0] + ys[2]


def reverse_scan_python(x):
    i, total, ys = 0, x, []
    for a in (0.7, 1.5, 0.5):
        ys.append(total ** 2)
        i, total = i + 1, total * a + x * i
    return total * ys[2] + ys[0]


def power_loop(x):
    return lax.while_loop(lambda c: c < 100.0, lambda c: c * c * 0.1 * x + c + 0.3, x)


def power_loop_python(x):
    c = x
    while c < 100.0:
        c = c * c * 0.1 * x + c + 0.3
    return c


def static_fori(x):
    return lax.fori_loop(1, 5, lambda i, c: jnp.sin(c) * x + i, x)


def static_fori_python(x):
    c = x
    for i in range(1, 5):
        c = np.sin(c) * x + i
    return c


def dynamic_fori(x):
    upper = jnp.where(x > 1.0, 4, 2)
    return lax.fori_loop(0, upper, lambda i, c: (c[0] * x + i, c[1] + jnp.cos(c[0])), (x, x))[1]


def dynamic_fori_python(x):
    a = b = x
    for i in range(4 if x > 1.0 else 2):
        a, b = a * x + i, b + np.cos(a)
    return b


def choice(x):
    return lax.cond(x > 1.0, lambda a, b: jnp.sin(a) * b, lambda a, b: a - b ** 3, x, x * 2)


def choice_python(x):
    return np.sin(x) * 2 * x if x > 1.0 else x - (2 * x) ** 3


def switching(x):
    return lax.switch((x > 1.0).astype(jnp.int32) + (x > 10.0), [
        lambda c: c * 2.0, lambda c: jnp.sin(c), lambda c: 1.0 / c + x], x)


def switching_python(x):
    index = (x > 1.0) + (x > 10.0)
    return (2 * x, np.sin(x), 1 / x + x)[index]


def while_in_scan(x):
    def body(c, a):
        d = lax.while_loop(lambda d: d < a, lambda d: d * 1.5 + jnp.sin(x) + 0.1, c)
        return d * 0.5, d

    carry, ys = lax.scan(body, x, float64(3.0, 10.0, 40.0))
    return carry + (ys ** 2).sum()


def while_in_scan_python(x):
    c, total = x, 0.0
    for a in (3.0, 10.0, 40.0):
        d = c
        while d < a:
            d = d * 1.5 + np.sin(x) + 0.1
        c, total = d * 0.5, total + d ** 2
    return c + total


def scan_in_while_in_cond(x):
    def grow(c):
        return lax.scan(lambda d, a: (d + a * (1.2 + jnp.cos(d * x)), None), c,
                        float64(0.5, 1.0, 2.0))[0] + 1.0

    return lax.cond(x > 1.0, lambda c: lax.while_loop(lambda d: d < 12.0, grow, c),
                    lambda c: c * c, x)


def scan_in_while_in_cond_python(x):
    if x <= 1.0:
        return x * x
    c = x
    while c < 12.0:
        for a in (0.5, 1.0, 2.0):
            c = c + a * (1.2 + np.cos(c * x))
        c = c + 1.0
    return c


def while_in_while(x):
    def outer(c):
        return lax.while_loop(lambda d: d < c + x, lambda d: d * 1.3 + x, c)

    return lax.while_loop(lambda c: c < 10.0, outer, x)


def while_in_while_python(x):
    c = x
    while c < 10.0:
        d = c
        while d < c + x:
            d = d * 1.3 + x
        c = d
    return c


def cond_in_while(x):
    def body(c):
        i, v = c
        return i + 1, lax.cond(v > 4.0, lambda v: v * 0.6 + x, lambda v: v * v + 1.0, v)

    return lax.while_loop(lambda c: c[0] < 5, body, (0, x))[1]


def cond_in_while_python(x):
    v = x
    for _ in range(5):
        v = v * 0.6 + x if v > 4.0 else v * v + 1.0
    return v


def combined(x):
    elems = float64(0.5, 1.5, 0.7, 1.1, 0.9) * x
    return (lax.associative_scan(lambda a, b: a * b, elems) ** 2).sum()


def combined_python(x):
    return float((np.cumprod(np.array([0.5, 1.5, 0.7, 1.1, 0.9]) * x) ** 2).sum())


CASES = (
    Case("scan", scan_with_outputs, scan_with_outputs_python, (1.3, 0.5, 2.0, 0.2)),
    Case("reverse scan", reverse_scan, reverse_scan_python),
    Case("while", power_loop, power_loop_python),
    Case("static fori", static_fori, static_fori_python, (1.3, 0.5, 2.0)),
    Case("dynamic fori", dynamic_fori, dynamic_fori_python, (1.3, 0.5, 2.0)),
    Case("cond", choice, choice_python),
    Case("switch", switching, switching_python),
    Case("while in scan", while_in_scan, while_in_scan_python, (1.3, 0.5, 2.0, 17.0)),
    Case("scan in while in cond", scan_in_while_in_cond, scan_in_while_in_cond_python,
         (1.3, 0.5, 2.0)),
    Case("while in while", while_in_while, while_in_while_python),
    Case("cond in while", cond_in_while, cond_in_while_python, (1.3, 0.5, 0.1, 5.0)),
    Case("associative scan", combined, combined_python, (1.3, 0.5, 0.9)),
)


def float64(*values: float) -> Any:
    return jnp.array(values, dtype="float64") if len(values) > 1 \
        else jnp.array(values[0], dtype="float64")


def check_staged(fun: Callable[..., Any], *args: Any) -> None:
    """The staged program is well formed, and gives what the function gives."""
    closed = ft.make_jaxpr(fun)(*args)
    check_jaxpr(closed)
    leaves = [np.asarray(x) for x in ft.tree.leaves(args)]
    outs = interpret(closed.jaxpr.hoist_consts(), [*map(np.asarray, closed.consts), *leaves])
    for staged, eager in zip(outs, ft.tree.leaves(fun(*args)), strict=True):
        np.testing.assert_allclose(staged, np.asarray(eager), rtol=1e-10, atol=1e-12)
