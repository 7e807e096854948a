"""Numbers that change from step to step: learning rates, decays, temperatures.

A schedule is a function of the number of updates before, a Python number or an array. Between
their ends they hold the value of the nearer end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.optim.transforms import Number, Schedule

__all__ = ["constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule",
           "exponential_decay", "join_schedules", "linear_onecycle_schedule", "linear_schedule",
           "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule",
           "sgdr_schedule", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
           "warmup_exponential_decay_schedule"]


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"{name} must be positive, got {value}.", where=user_source())


def constant_schedule(value: Number) -> Schedule:
    """The same number at every step.

    >>> import functrans as ft
    >>> ft.optim.constant_schedule(0.1)(7)
    0.1
    """
    return lambda count: value


def polynomial_schedule(init_value: float, end_value: float, power: float, transition_steps: int,
                        transition_begin: int = 0) -> Schedule:
    """(init - end) (1 - t)^power + end, where t grows from 0 to 1 in `transition_steps` steps.

    >>> import functrans as ft
    >>> [float(ft.optim.polynomial_schedule(1.0, 0.0, 2, 4)(k)) for k in (0, 2, 4, 9)]
    [1.0, 0.25, 0.0, 0.0]
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def value(count: Any) -> Number:
        left = 1 - jnp.clip(count - begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * left**power + end_value

    return value


def linear_schedule(init_value: float, end_value: float, transition_steps: int,
                    transition_begin: int = 0) -> Schedule:
    """A straight line from one number to the other.

    >>> import functrans as ft
    >>> [float(ft.optim.linear_schedule(0.0, 1.0, 4)(k)) for k in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def exponential_decay(init_value: float, transition_steps: int, decay_rate: float,
                      transition_begin: int = 0, staircase: bool = False,
                      end_value: float | None = None) -> Schedule:
    """init decay_rate^(t / transition_steps), at whole quotients alone if `staircase`.

    >>> import functrans as ft
    >>> [float(ft.optim.exponential_decay(8.0, 2, 0.5)(k)) for k in (0, 2, 4)]
    [8.0, 4.0, 2.0]
    """
    if transition_steps <= 0 or decay_rate == 0:
        return constant_schedule(init_value)
    bound = jnp.maximum if decay_rate < 1 else jnp.minimum

    def value(count: Any) -> Number:
        since = count - max(transition_begin, 0)
        power = since / transition_steps
        power = jnp.floor(power) if staircase else power
        decayed = jnp.where(since <= 0, init_value, init_value * jnp.power(decay_rate, power))
        return decayed if end_value is None else bound(decayed, end_value)

    return value


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0,
                          exponent: float = 1.0) -> Schedule:
    """Half a cosine from init to alpha init (Loshchilov and Hutter 2016).

    >>> import functrans as ft
    >>> [round(float(ft.optim.cosine_decay_schedule(1.0, 4)(k)), 3) for k in (0, 2, 4)]
    [1.0, 0.5, 0.0]
    """
    _positive("decay_steps", decay_steps)

    def value(count: Any) -> Number:
        done = jnp.minimum(count, decay_steps) / decay_steps
        decayed = 0.5 * (1 + jnp.cos(math.pi * done))
        return init_value * ((1 - alpha) * decayed**exponent + alpha)

    return value


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other; each counts from its boundary.

    >>> import functrans as ft
    >>> both = ft.optim.join_schedules([ft.optim.constant_schedule(1.0),
    ...                                 ft.optim.linear_schedule(2.0, 0.0, 2)], [10])
    >>> [float(both(k)) for k in (9, 10, 11)]
    [1.0, 2.0, 1.0]
    """
    if len(boundaries) != len(schedules) - 1:
        raise ArgumentError(f"{len(schedules)} schedules have {len(schedules) - 1} boundaries, "
                            f"got {len(boundaries)}.", where=user_source())

    def value(count: Any) -> Number:
        found = schedules[0](count)
        for boundary, schedule in zip(boundaries, schedules[1:], strict=True):
            found = jnp.where(count < boundary, found, schedule(count - boundary))
        return found

    return value


def warmup_constant_schedule(init_value: float, peak_value: float, warmup_steps: int) -> Schedule:
    """A line to the peak, which stays.

    >>> rate = ft.optim.warmup_constant_schedule(0.0, 1.0, 4)
    >>> [float(rate(step)) for step in (0, 2, 4, 9)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps),
                           constant_schedule(peak_value)], [warmup_steps])


def warmup_cosine_decay_schedule(init_value: float, peak_value: float, warmup_steps: int,
                                 decay_steps: int, end_value: float = 0.0,
                                 exponent: float = 1.0) -> Schedule:
    """A line to the peak in `warmup_steps`, then half a cosine to the end at `decay_steps`.

    >>> import functrans as ft
    >>> rate = ft.optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 110)
    >>> [round(float(rate(k)), 3) for k in (5, 10, 60, 110)]
    [0.5, 1.0, 0.5, 0.0]
    """
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps),
         cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)],
        [warmup_steps])


def warmup_exponential_decay_schedule(
        init_value: float, peak_value: float, warmup_steps: int, transition_steps: int,
        decay_rate: float, transition_begin: int = 0, staircase: bool = False,
        end_value: float | None = None) -> Schedule:
    """A line to the peak, then exponential decay.

    >>> rate = ft.optim.warmup_exponential_decay_schedule(
    ...     0.0, 1.0, 2, transition_steps=1, decay_rate=0.5)
    >>> [float(rate(step)) for step in (0, 1, 2, 3)]
    [0.0, 0.5, 1.0, 0.5]
    """
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps),
         exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase,
                           end_value)], [warmup_steps])


def piecewise_constant_schedule(init_value: float,
                                boundaries_and_scales: Mapping[int, float] | None = None
                                ) -> Schedule:
    """init, times every scale whose boundary was reached.

    >>> import functrans as ft
    >>> [float(ft.optim.piecewise_constant_schedule(1.0, {2: 0.5})(k)) for k in (1, 2)]
    [1.0, 0.5]
    """
    scales = dict(boundaries_and_scales or {})
    if any(s < 0 for s in scales.values()):
        raise ArgumentError(f"scales must not be negative, got {scales}.", where=user_source())

    def value(count: Any) -> Number:
        found = jnp.asarray(init_value, float)
        for boundary, scale in sorted(scales.items()):
            found = found * jnp.where(count >= boundary, scale, 1.0)
        return found

    return value


def piecewise_interpolate_schedule(interpolate_type: str, init_value: float,
                                   boundaries_and_scales: Mapping[int, float] | None = None
                                   ) -> Schedule:
    """Between boundaries a line ("linear") or half a cosine ("cosine") from value to value.

    >>> rate = ft.optim.piecewise_interpolate_schedule("linear", 1.0, {10: 0.5})
    >>> [round(float(rate(step)), 3) for step in (0, 5, 10)]
    [1.0, 0.75, 0.5]
    """
    if interpolate_type not in ("linear", "cosine"):
        raise ArgumentError(f'interpolate_type is "linear" or "cosine", got {interpolate_type!r}.',
                            where=user_source())
    bounds, values = [0], [init_value]
    for boundary, scale in sorted((boundaries_and_scales or {}).items()):
        bounds.append(boundary)
        values.append(values[-1] * scale)

    def value(count: Any) -> Number:
        found = jnp.asarray(values[-1], float)
        for k in range(len(bounds) - 2, -1, -1):
            t = (count - bounds[k]) / max(bounds[k + 1] - bounds[k], 1)
            t = t if interpolate_type == "linear" else (1 - jnp.cos(math.pi * t)) / 2
            between = values[k] + (values[k + 1] - values[k]) * t
            found = jnp.where(count < bounds[k + 1], between, found)
        return found

    return value


def linear_onecycle_schedule(transition_steps: int, peak_value: float, pct_start: float = 0.3,
                             pct_final: float = 0.85, div_factor: float = 25.0,
                             final_div_factor: float = 1e4) -> Schedule:
    """Lines up to the peak, down again, and on to almost nothing (Smith 2018).

    >>> rate = ft.optim.linear_onecycle_schedule(100, 1.0)
    >>> [round(float(rate(step)), 3) for step in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    _positive("transition_steps", transition_steps)
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, {
        int(pct_start * transition_steps): div_factor,
        int(pct_final * transition_steps): 1 / div_factor,
        transition_steps: 1 / final_div_factor})


def cosine_onecycle_schedule(transition_steps: int, peak_value: float, pct_start: float = 0.3,
                             div_factor: float = 25.0, final_div_factor: float = 1e4) -> Schedule:
    """Half a cosine up to the peak, another one down to almost nothing (Smith 2018).

    >>> rate = ft.optim.cosine_onecycle_schedule(100, 1.0)
    >>> [round(float(rate(step)), 3) for step in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    _positive("transition_steps", transition_steps)
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, {
        int(pct_start * transition_steps): div_factor,
        int(transition_steps): 1 / (div_factor * final_div_factor)})


def sgdr_schedule(cosine_kwargs: Sequence[Mapping[str, Any]]) -> Schedule:
    """Cosine decays with warm restarts, one `warmup_cosine_decay_schedule` after the other.

    >>> cycle = dict(init_value=0.0, peak_value=1.0, decay_steps=10, warmup_steps=2, end_value=0.0)
    >>> rate = ft.optim.sgdr_schedule([cycle, cycle])
    >>> [round(float(rate(step)), 3) for step in (0, 2, 10, 12)]
    [0.0, 1.0, 0.0, 1.0]
    """
    boundaries, step = [], 0
    for known in cosine_kwargs[:-1]:
        step += known["decay_steps"]
        boundaries.append(step)
    return join_schedules([warmup_cosine_decay_schedule(**known) for known in cosine_kwargs],
                          boundaries)
