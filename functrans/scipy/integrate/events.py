"""Solutions by single steps: with events, between the steps, and at the steps themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.integrate.dense import DenseOutput, OdeSolution
from functrans.scipy.integrate.steppers import OdeSolver, known
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.typing import Array

Event = Callable[[Array, Array], Any]


class Stepped(NamedTuple):
    """Times and values (times, n), the solution between, and times and values of events."""

    t: Array
    y: Array
    sol: OdeSolution | None
    t_events: list[Array] | None
    y_events: list[Array] | None
    status: int
    solver: OdeSolver


class _Watched(NamedTuple):
    """An event, the direction it counts in, and after how many it ends the solution."""

    of: Event
    direction: float
    most: float


def _watched(events: Any, args: tuple[Any, ...]) -> list[_Watched]:
    found = []
    if not callable(events) and not isinstance(events, Iterable):
        raise ArgumentError(f"functrans.scipy.integrate.solve_ivp: events are {events!r}.",
                            where=user_source(), why="they are functions of time and value.",
                            fix="events=[lambda t, y: y[0]]")
    for event in ([events] if callable(events) else list(events)):
        check_callable(event, "scipy.integrate.solve_ivp: an event")
        terminal = getattr(event, "terminal", False)
        most = math.inf if terminal in (None, 0) else 1 if terminal is True else terminal
        if not (most == int(most) if math.isfinite(most) else True) or most <= 0:
            raise ArgumentError(f"functrans.scipy.integrate.solve_ivp: terminal is {terminal!r}.",
                                where=user_source(), why="it is a bool, or a number of events.")

        def of(t: Array, y: Array, event: Any = event) -> Array:
            value: Array = jnp.asarray(event(t, y, *args)).reshape(())
            return value

        found.append(_Watched(of, float(getattr(event, "direction", 0)), most))
    return found


def _root(event: Event, within: DenseOutput, low: float, high: float, at_low: float) -> Array:
    """Where an event is within a step: by bisection and secants of known numbers.

    The last step is Newton's, which has the derivatives of the root.
    """
    dtype = within.t_min.dtype
    name = "solve_ivp"

    def value(t: float) -> float:
        at = jnp.asarray(np.asarray(t, dtype))
        return known(name, event(at, within(at)))

    a, b, fa, fb = low, high, at_low, value(high)
    eps = 4 * float(np.finfo(dtype).eps)
    for k in range(200):
        if fa == 0 or abs(b - a) <= eps * max(abs(a), abs(b)) or fb == 0:
            break
        # regula falsi, halved on the side that stays (Illinois), and bisection now and then
        c = a - fa * (b - a) / (fb - fa) if k % 4 != 3 and fb != fa else (a + b) / 2
        c = c if min(a, b) < c < max(a, b) else (a + b) / 2
        fc = value(c)
        if (fc > 0) == (fb > 0) and fc != 0:
            fa = fa / 2 if k % 4 != 3 else fa
        else:
            a, fa = b, fb
        b, fb = c, fc
    best = a if abs(fa) < abs(fb) and value(a) == fa else b
    at = jnp.asarray(np.asarray(best, dtype))
    left, slope = jvp(lambda t: event(t, within(t)), (at,), (jnp.ones_like(at),))
    slope = lax.stop_gradient(slope)
    move = left / jnp.where(slope == 0, 1, slope)
    # the number itself is left as it was found
    return at - jnp.where(slope == 0, 0, move - lax.stop_gradient(move))


def stepped(solver: OdeSolver, t_eval: Array | None, dense_output: bool, events: Any,
            args: tuple[Any, ...], max_steps: int) -> Stepped:
    """The solution of a solver, step by step."""
    watched = [] if events is None else _watched(events, args)
    name = "solve_ivp"
    sign = solver.direction
    times, values = [solver.t], [solver.y]
    edges, interpolants = [solver.t], []
    at_events: list[list[Array]] = [[] for _ in watched]
    y_events: list[list[Array]] = [[] for _ in watched]
    seen = [known(name, w.of(solver.t, solver.y)) for w in watched]
    wanted = None if t_eval is None else [known(name, t) for t in t_eval]
    if wanted is not None:
        times, values = [], []
        _check_times(wanted, known(name, solver.t), known(name, solver.t_bound), sign)
    place, status, count = 0, 0, 0
    while solver.status == "running" and status == 0:
        count += 1
        if count > max_steps or solver.step() is not None:
            status = -1
            break
        t_old, t, y = solver.t_old, solver.t, solver.y
        within = solver.dense_output() if dense_output or watched or wanted is not None else None
        if within is not None and dense_output:
            interpolants.append(within)
        now = [known(name, w.of(t, y)) for w in watched]
        hits = []
        for i, (w, old, new) in enumerate(zip(watched, seen, now)):
            up, down = old <= 0 <= new, old >= 0 >= new
            if (up and w.direction >= 0) or (down and w.direction <= 0):
                assert within is not None
                hits.append((i, _root(w.of, within, known(name, t_old), known(name, t), old)))
        hits.sort(key=lambda hit: sign * known(name, hit[1]))
        for i, at in hits:
            assert within is not None
            at_events[i].append(at)
            y_events[i].append(within(at))
            if len(at_events[i]) >= watched[i].most:
                status, t, y = 1, at, y_events[i][-1]
                break
        seen = now
        if wanted is None:
            times, values = [*times, t], [*values, y]
        else:
            assert within is not None and t_eval is not None
            until = known(name, t)
            while place < len(wanted) and sign * (wanted[place] - until) <= 0:
                times, values = [*times, t_eval[place]], [*values, within(t_eval[place])]
                place += 1
        edges.append(t)
    n = solver.n
    sol = OdeSolution(edges, interpolants) if dense_output and interpolants else None
    return Stepped(
        jnp.stack(times) if times else jnp.zeros(0, solver.t.dtype),
        jnp.stack(values) if values else jnp.zeros((0, n), solver.y.dtype), sol,
        None if events is None else [_stacked(v, (), solver.t.dtype) for v in at_events],
        None if events is None else [_stacked(v, (n,), solver.y.dtype) for v in y_events],
        status, solver)


def _stacked(values: Sequence[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    return jnp.stack(values) if values else jnp.zeros((0, *shape), dtype)


def _check_times(wanted: list[float], start: float, end: float, sign: float) -> None:
    steps = np.diff(wanted)
    outside = any(sign * (t - start) < 0 or sign * (t - end) > 0 for t in wanted)
    if outside or (sign * steps < 0).any():
        raise ArgumentError("functrans.scipy.integrate.solve_ivp: t_eval is not in order within "
                            f"t_span, from {start:.3g} to {end:.3g}.", where=user_source())
