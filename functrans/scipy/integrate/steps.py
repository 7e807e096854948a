"""Steps of explicit Runge-Kutta methods with adaptive sizes, to the times that are asked for.

Each time is a `while_loop` of steps: under `vmap` each lane takes its own. The sizes of steps are
not differentiated, so that derivatives are those of the steps that were taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.numpy.common import converted
from functrans.scipy.integrate.tableaus import Tableau
from functrans.scipy.products import matmul
from functrans.typing import Array

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
Derivative = Callable[[Array, Array], Array]


class StepTolerance(NamedTuple):
    """What errors are measured by."""

    rtol: Any
    atol: Any

    def norm(self, error: Array, *values: Array) -> Array:
        """The root of the mean square of errors, relative to what is allowed."""
        size = jnp.abs(values[0])
        for v in values[1:]:
            size = jnp.maximum(size, jnp.abs(v))
        return rms(error / (self.atol + self.rtol * size))


class Walk(NamedTuple):
    """Where a solution is, and its last step: from `before` on, with the stages `slopes`."""

    t: Array
    y: Array
    f: Array
    h: Array
    before: Array
    y_before: Array
    h_before: Array
    slopes: Array
    steps: Array
    evaluations: Array
    rejected: Array


def rms(x: Array) -> Array:
    """The root of the mean square, whose derivative at 0 is 0."""
    square = jnp.mean(jnp.real(x) ** 2 + jnp.imag(x) ** 2)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def first_step(fun: Derivative, t: Array, y: Array, f: Array, sign: Array, order: int,
               tolerance: StepTolerance, longest: Any) -> Array:
    """A size for the first step: Hairer, Norsett and Wanner (1993), II.4."""
    d0, d1 = tolerance.norm(y, y), tolerance.norm(f, y)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 > 0, d1, 1))
    h0 = jnp.minimum(h0, longest)
    after = fun(t + sign * h0, y + sign * h0 * f)
    d2 = tolerance.norm(after - f, y) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(
        most > 0, most, 1)) ** (1 / (order + 1)))
    found = jnp.minimum(jnp.minimum(100 * h0, h1), longest)
    return lax.stop_gradient(found.astype(t.dtype))


def start(fun: Derivative, t: Array, y: Array, h: Array, f: Array, stages: int) -> Walk:
    """Before the first step."""
    return Walk(t, y, f, h, t, y, jnp.ones_like(t), jnp.zeros((stages, y.size), y.dtype),
                jnp.array(0), jnp.array(2), jnp.array(False))


def walk_to(fun: Derivative, tableau: Tableau, walk: Walk, target: Array, end: Array, sign: Array,
            tolerance: StepTolerance, longest: Any, limit: Any) -> Walk:
    """Steps until `target` is reached or passed; where steps have no interpolant, until there."""
    least = 10 * float(finfo(walk.t.dtype).eps)
    stop = target if tableau.p is None else end

    def unfinished(s: Walk) -> Any:
        too_small = s.h <= least * jnp.abs(s.t)
        return (sign * (target - s.t) > 0) & (s.steps < limit) & ~too_small & jnp.isfinite(s.h)

    def improve(s: Walk) -> Walk:
        left = sign * (stop - s.t)
        last = s.h >= left
        h = sign * jnp.where(last, left, s.h)
        y, f, slopes, error = step(fun, tableau, s.t, s.y, s.f, h, tolerance)
        error = lax.stop_gradient(error)
        accepted = error <= 1
        power = jnp.where(error > 0, error, 1) ** (-1 / (tableau.order + 1))
        factor = jnp.clip(SAFETY * power, SHRINK, GROW)
        factor = jnp.where(error > 0, factor, GROW)
        factor = jnp.where(jnp.isnan(error), SHRINK, factor)
        factor = jnp.where(accepted & s.rejected, jnp.minimum(factor, 1), factor)
        # a step that was cut at its end says little of the next one
        size = jnp.where(accepted & last, jnp.maximum(s.h, jnp.abs(h) * factor),
                         jnp.abs(h) * factor)
        size = jnp.minimum(lax.stop_gradient(size), longest)
        t = jnp.where(last, stop, s.t + h)

        def take(new: Any, old: Any) -> Any:
            return jnp.where(accepted, new, old)

        return Walk(take(t, s.t), take(y, s.y), take(f, s.f), size.astype(s.h.dtype),
                    take(s.t, s.before), take(s.y, s.y_before), take(h, s.h_before),
                    take(slopes, s.slopes), s.steps + 1, s.evaluations + len(tableau.c),
                    ~accepted)

    return lax.while_loop(unfinished, improve, walk._replace(steps=jnp.array(0)))


def step(fun: Derivative, tableau: Tableau, t: Array, y: Array, f: Array, h: Array,
         tolerance: StepTolerance) -> tuple[Array, Array, Array, Array]:
    """One step: the new value and derivative, the stages, and the norm of the error."""
    slopes = [f]
    for row, c in zip(tableau.a[1:], tableau.c[1:]):
        slopes.append(fun(t + float(c) * h, y + h * _sum(row, slopes)))
    value = y + h * _sum(tableau.b, slopes)
    slopes.append(fun(t + h, value))
    if len(tableau.e) == 1:
        error = tolerance.norm(h * _sum(tableau.e[0], slopes), y, value)
    else:  # of two orders, of which the one corrects the other
        fifth, third = (tolerance.norm(_sum(e, slopes), y, value) for e in tableau.e)
        whole = fifth**2 + 0.01 * third**2
        error = jnp.abs(h) * fifth**2 / jnp.where(whole > 0, jnp.sqrt(jnp.where(
            whole > 0, whole, 1)), 1)
    return value, slopes[-1], jnp.stack(slopes), error


def _sum(weights: Any, slopes: list[Array]) -> Array:
    total = None
    for w, k in zip(weights, slopes):
        if w != 0:
            total = float(w) * k if total is None else total + float(w) * k
    assert total is not None
    return total


def value_at(tableau: Tableau, walk: Walk, target: Array, sign: Array) -> Array:
    """The solution at a time within the last step; NaN where it was not reached."""
    if tableau.p is None:
        y = walk.y
    else:
        x = (target - walk.before) / walk.h_before
        powers = jnp.stack([x ** (k + 1) for k in range(tableau.p.shape[1])])
        weights = matmul(jnp.asarray(tableau.p).astype(walk.t.dtype), powers)
        inside = walk.y_before + walk.h_before * matmul(weights.astype(walk.y.dtype), walk.slopes)
        y = jnp.where(target == walk.t, walk.y, inside)
    return jnp.where(sign * (target - walk.t) <= 0, y, math.nan)


def solve(fun: Derivative, tableau: Tableau, y: Array, times: Array, tolerance: StepTolerance,
          longest: Any, first: Any, limit: Any) -> tuple[Array, Walk, Array]:
    """The solution at times that go one way, from the first on; the walk, and whether it ended."""
    t = times[0]
    end = times[-1]
    sign = jnp.where(end >= t, 1, -1).astype(t.dtype)
    f = fun(t, y)
    if first is None:
        h = first_step(fun, t, y, f, sign, tableau.order, tolerance, jnp.minimum(
            longest, jnp.abs(end - t)))
    else:
        h = jnp.abs(converted("scipy.integrate", first, t.dtype))

    def advance(walk: Walk, target: Array) -> tuple[Walk, Array]:
        walk = walk_to(fun, tableau, walk, target, end, sign, tolerance, longest, limit)
        return walk, value_at(tableau, walk, target, sign)

    begin = start(fun, t, y, h, f, len(tableau.c) + 1)
    walk, values = lax.scan(advance, begin, times[1:])
    return jnp.concatenate([y[None], values]), walk, sign * (end - walk.t) <= 0
