"""Steps along a direction: by the strong conditions of Wolfe, and along a projected arc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.products import vdot
from functrans.typing import Array

ValueAndGrad = Callable[[Array], tuple[Array, Array]]
BRACKET, ZOOM, FOUND = 0, 1, 2


class Step(NamedTuple):
    """Where a line search ended."""

    size: Array
    value: Array
    gradient: Array
    evaluations: Array
    found: Array


class _Point(NamedTuple):
    """A point on the line: its step, and value, slope and gradient there."""

    at: Array
    value: Array
    slope: Array
    gradient: Array


def wolfe(fun: ValueAndGrad, x: Array, value: Array, gradient: Array, direction: Array,
          first: Array, c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20) -> Step:
    """A step that lowers the value and the slope enough: Nocedal and Wright (2006), ch. 3.5.

    Near the minimum, where values are equal to roundoff, slopes decide: Hager and Zhang, SIAM J.
    Optim. 16 (2005), eq. 4.1. Where no step is found within `maxiter` evaluations, the best one is
    taken, and `found` says whether it lowers the value.
    """
    slope = vdot(gradient, direction)
    start = _Point(jnp.zeros_like(value), value, slope, gradient)
    noise = 4 * float(finfo(value.dtype).eps) * jnp.abs(value)

    def unfinished(state: Any) -> Any:
        phase, count, *_ = state
        return (phase != FOUND) & (count < maxiter)

    def improve(state: Any) -> Any:
        phase, count, trial, low, high = state
        now_value, now_gradient = fun(x + trial * direction)
        now = _Point(trial, now_value, vdot(now_gradient, direction), now_gradient)
        enough = now.value <= value + c1 * trial * slope
        equal = (now.value <= value + noise) & (now.slope <= (2 * c1 - 1) * slope)
        is_flat = jnp.abs(now.slope) <= -c2 * slope
        accepted = (enough & is_flat) | (equal & (now.slope >= c2 * slope))
        # too high (or no number): the minimum is between the lower point and this one
        high_now = ~(enough | equal) | (now.value > low.value + noise) | ~jnp.isfinite(now.value)
        rising = now.slope * jnp.where(phase == ZOOM, high.at - low.at, 1) >= 0
        first_phase = phase == BRACKET
        new_low = _choose(high_now & ~accepted, low, now)
        new_high = _choose(high_now, now, _choose(rising, low, high))
        zooming = ~first_phase | high_now | rising
        phase = jnp.where(accepted, FOUND, jnp.where(zooming, ZOOM, BRACKET))
        trial = jnp.where(zooming, _between(new_low, new_high), 2 * trial)
        return phase, count + 1, trial, new_low, new_high

    state = (jnp.array(BRACKET), jnp.array(0), first.astype(value.dtype), start, start)
    phase, count, _, best, _ = lax.while_loop(unfinished, improve, state)
    found = (phase == FOUND) | (best.value < value)
    return Step(best.at, best.value, best.gradient, count, found)


def _choose(condition: Any, a: Any, b: Any) -> Any:
    return type(a)(*(jnp.where(condition, u, v) for u, v in zip(a, b)))


def _between(low: _Point, high: _Point) -> Array:
    """The minimum of the cubic through two points and slopes, well within the interval."""
    width = high.at - low.at
    safe = jnp.where(width == 0, 1, width)
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / safe
    square = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(safe) * jnp.sqrt(jnp.maximum(square, 0))
    divisor = high.slope - low.slope + 2 * d2
    part = 1 - (high.slope + d2 - d1) / jnp.where(divisor == 0, 1, divisor)
    usable = (square >= 0) & (divisor != 0) & jnp.isfinite(part)
    return low.at + width * jnp.where(usable, jnp.clip(part, 0.1, 0.9), 0.5)


def projected(fun: ValueAndGrad, x: Array, value: Array, gradient: Array, direction: Array,
              first: Array, lower: Array, upper: Array, c1: float = 1e-4, maxiter: int = 30
              ) -> tuple[Array, Step]:
    """The point along clip(x + t direction) that lowers the value enough, by halves of t.

    Source: Bertsekas, SIAM J. Control Optim. 20 (1982).
    """
    noise = 4 * float(finfo(value.dtype).eps) * jnp.abs(value)

    def unfinished(state: Any) -> Any:
        _, _, _, _, count, found = state
        return ~found & (count < maxiter)

    def improve(state: Any) -> Any:
        trial, *_, count, _ = state
        point = jnp.clip(x + trial * direction, lower, upper)
        now, slope = fun(point)
        found = now <= value + c1 * vdot(gradient, point - x) + noise
        return jnp.where(found, trial, trial / 2), point, now, slope, count + 1, found

    state = (first.astype(value.dtype), x, value, gradient, jnp.array(0), jnp.array(False))
    trial, point, now, slope, count, found = lax.while_loop(unfinished, improve, state)
    point = jnp.where(found, point, x)
    return point, Step(trial, jnp.where(found, now, value), jnp.where(found, slope, gradient),
                       count, found)
