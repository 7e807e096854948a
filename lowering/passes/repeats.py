"""Repeated structure: runs of equations that a program has several times become one function.

Layers, steps and gates written as a Python loop are such runs, forward and backward ones. They are
found by their equations alone: a period of the sequence of operations, types and parameters, whose
equations read each other in the same way each time. What they read besides are operands, what is
read of them elsewhere results. A function is scheduled and written once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from math import prod
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.lowering.passes.repeated_residuals import Recomputed
from functrans.lowering.passes.rewrite import literal_key
from functrans.primitives.base import constant_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_update_slice_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p

__all__ = ["Repeats", "call_repeats"]

LEAST_EQUATIONS: Final = 1000
"""Equations of a program whose repeats are looked for."""
LEAST_REPEATS: Final = 4
LEAST_BODY: Final = 12
"""Equations of a function; shorter periods are taken several at a time."""
WINDOW: Final = 8
"""Equal operations in a row that suggest a period."""
PRODUCTS: Final = frozenset((dot_general_p, conv_general_dilated_p))
UPDATES: Final = frozenset((dynamic_update_slice_p, scatter_p, scatter_add_p, scatter_mul_p,
                            scatter_min_p, scatter_max_p))


class Repeats(Record, eq=False):
    """A program whose repeats are calls (conds of one branch), and the functions that they call."""

    jaxpr: Jaxpr
    functions: Mapping[Jaxpr, int] = field(default_factory=dict)
    """With how many calls each has."""


class _Repetition(Record):
    """`times` runs of `period` equations, the first of which is equation `start`."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times


def call_repeats(jaxpr: Jaxpr) -> Repeats:
    """The program with functions for what it repeats; loops and what acts are in none."""
    if len(jaxpr.eqns) < LEAST_EQUATIONS or jaxpr.primitives.isdisjoint(PRODUCTS) \
            or jaxpr.size_names or jaxpr.constvars:
        return Repeats(jaxpr)
    constants = [eqn for eqn in jaxpr.eqns if eqn.primitive is constant_p]
    eqns = [eqn for eqn in jaxpr.eqns if eqn.primitive is not constant_p]
    finder = _Finder(eqns, jaxpr.outvars)
    again = Recomputed(eqns, jaxpr.outvars)
    for run in finder.runs():
        again.add(run.start, run.period, run.times)
    changed = again.result()
    if len(changed) != len(eqns) or any(a is not b for a, b in zip(changed, eqns, strict=True)):
        eqns = changed
        finder = _Finder(eqns, jaxpr.outvars)
    made: list[Equation] = list(constants)
    functions: dict[Jaxpr, int] = {}
    at = 0
    for run in finder.runs():
        made += eqns[at:run.start]
        calls, body = finder.calls(run)
        functions[body] = len(calls)
        made += calls
        at = run.end
    if not functions:
        return Repeats(jaxpr)
    made += eqns[at:]
    return Repeats(Jaxpr((), jaxpr.invars, tuple(made), jaxpr.outvars, name=jaxpr.name), functions)


class _Finder:
    def __init__(self, eqns: Sequence[Equation], outvars: Sequence[Atom]) -> None:
        self.eqns = eqns
        self.made = {v: (k, n) for k, eqn in enumerate(eqns) for n, v in enumerate(eqn.outvars)}
        self.last: dict[Atom, int] = {}
        for k, eqn in enumerate(eqns):
            self.last.update(dict.fromkeys(eqn.invars, k))
        self.last.update(dict.fromkeys(outvars, len(eqns)))
        known: dict[Hashable, int] = {}
        own = count(-1, -1)
        self.kinds = [next(own) if self._updates(eqn) or (key := _kind(eqn)) is None
                      else known.setdefault(key, len(known)) for eqn in eqns]

    def _updates(self, eqn: Equation) -> bool:
        """Whether an equation may replace elements of a value where that is, as no function can."""
        if eqn.primitive not in UPDATES or eqn.invars[0] not in self.made:
            return eqn.primitive in UPDATES
        return self.eqns[self.made[eqn.invars[0]][0]].primitive is not broadcast_in_dim_p

    # --- where they are

    def runs(self) -> Iterator[_Repetition]:
        """The runs of a program in order; those that begin first are taken."""
        kinds, n = self.kinds, len(self.kinds)
        windows: dict[tuple[int, ...], list[int]] = {}
        for k in range(n - WINDOW + 1):
            windows.setdefault(tuple(kinds[k:k + WINDOW]), []).append(k)
        ends: dict[int, int] = {}  # where the equations a period later differ, by the period
        at = 0
        while at < n - WINDOW:
            best = None
            places = windows[tuple(kinds[at:at + WINDOW])]
            for later in _after(places, at):
                period = later - at
                if at < ends.get(period, 0):
                    continue
                end = later
                while end < n and kinds[end] == kinds[end - period] >= 0:
                    end += 1
                ends[period] = end - period
                if end - at >= LEAST_REPEATS * period:
                    best = self._fitted(at, period, end)
                    if best is not None:
                        break
            if best is None:
                at += 1
            else:
                yield best
                at = best.end

    def _fitted(self, start: int, period: int, end: int) -> _Repetition | None:
        """The run from where few bytes pass from one time to the next, products first."""
        period *= -(-LEAST_BODY // period)
        if end - start < LEAST_REPEATS * period or not any(
                eqn.primitive in PRODUCTS for eqn in self.eqns[start:start + period]):
            return None
        crossing = self._crossing(start + (end - start) // period // 2 * period - period, period)
        first = min(range(period), key=lambda k: (
            crossing[k], self.eqns[start + k].primitive not in PRODUCTS, k))
        times = (end - start - first) // period
        run = _Repetition(start + first, period, times)
        agreeing = self._agreeing(run)
        return _Repetition(run.start, period, agreeing) if agreeing >= LEAST_REPEATS else None

    def _crossing(self, start: int, period: int) -> list[int]:
        """The bytes of values that the next time reads, for each place where times could begin."""
        found = [0] * period
        end = start + 2 * period
        readers: dict[Atom, int] = {}
        for k in range(start, end):
            readers.update({a: k for a in self.eqns[k].invars if isinstance(a, Var)})
        for k in range(start, start + period):
            for v in self.eqns[k].outvars:
                for cut in range(k + 1, readers.get(v, k) + 1):
                    if cut - k <= period:
                        found[(cut - start) % period] += _nbytes(v.aval)
        return found

    def _agreeing(self, run: _Repetition) -> int:
        """How many times, from the first, equations read each other in the same way."""
        for time in range(1, run.times):
            begin, length = run.start + time * run.period, run.period
            for k in range(length):
                for a, b in zip(self.eqns[run.start + k].invars, self.eqns[begin + k].invars,
                                strict=True):
                    if self._inner(a, run.start, length) != self._inner(b, begin, length):
                        return time
        return run.times

    def _inner(self, a: Atom, begin: int, length: int) -> tuple[int, int] | None:
        """Which equation of a time makes a value, if one does."""
        if isinstance(a, Literal) or a not in self.made:
            return None
        k, n = self.made[a]
        return (k - begin, n) if begin <= k < begin + length else None

    # --- what they become

    def calls(self, run: _Repetition) -> tuple[list[Equation], Jaxpr]:
        """The calls in place of a run, and the function that they call."""
        times = [self.eqns[run.start + t * run.period:run.start + (t + 1) * run.period]
                 for t in range(run.times)]
        operands: dict[tuple[Atom, ...], Var] = {}
        env: dict[Atom, Var] = {}
        body: list[Equation] = []
        results: list[tuple[int, int]] = []
        for k, eqn in enumerate(times[0]):
            invars: list[Atom] = []
            for n, a in enumerate(eqn.invars):
                if isinstance(a, Literal):
                    invars.append(a)
                elif a in env:
                    invars.append(env[a])
                else:
                    each = tuple([time[k].invars[n] for time in times])
                    invars.append(operands.setdefault(each, Var(a.aval)))
            outvars = tuple([Var(v.aval) for v in eqn.outvars])
            body.append(eqn.replace(invars=tuple(invars), outvars=outvars))
            env.update(zip(eqn.outvars, outvars, strict=True))
            for n in range(len(eqn.outvars)):
                if any(self.last.get(time[k].outvars[n], -1) >= run.start + (t + 1) * run.period
                       for t, time in enumerate(times)):
                    results.append((k, n))
        function = Jaxpr((), tuple(operands.values()), tuple(body), tuple(
            [body[k].outvars[n] for k, n in results]), name="repeated")
        index = Literal(np.int32(0), ShapedArray((), np.dtype(np.int32)))
        return [Equation(cond_p, (index, *[each[t] for each in operands]),
                         tuple([time[k].outvars[n] for k, n in results]),
                         {"branches": (function,)}, time[0].source)
                for t, time in enumerate(times)], function


def _after(places: Sequence[int], at: int) -> list[int]:
    """The next few places after one."""
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if places[middle] <= at else (low, middle)
    return list(places[low:low + 6])


def _kind(eqn: Equation) -> Hashable:
    """Equal for equations that do the same with other operands; None for those that act."""
    primitive: Primitive = eqn.primitive
    if primitive.has_effect or primitive.higher_order:
        return None
    operands = [literal_key(a) if isinstance(a, Literal) else a.aval for a in eqn.invars]
    if not eqn.params:
        return primitive, tuple(operands), tuple([v.aval for v in eqn.outvars])
    params: list[Any] = sorted(eqn.params.items())
    key = (primitive, tuple(params), tuple(operands), tuple([v.aval for v in eqn.outvars]),
           str(params) if any(isinstance(x, float) for _, x in params) else "")
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _nbytes(aval: ShapedArray) -> int:
    return int(prod(map(int, aval.shape))) * aval.dtype.itemsize
