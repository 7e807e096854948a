"""Functions of what a program repeats return the least of which the rest can be computed again.

The backward function of a layer reads values of the forward one. Where they are light elementwise
functions of fewer bytes, these are returned, and the reader computes the others: what kernels do by
themselves where no boundary of a function is between. What to return is a minimum cut of a period.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.lowering.passes.minimum_cut import cut_of_values
from functrans.primitives.arithmetic import (
    abs_p,
    add_p,
    div_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    sign_p,
    sub_p,
)
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.compare import Comparison, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.shape import iota_p, reshape_p

__all__ = ["Recomputed"]

LIGHT: Final = frozenset({
    abs_p, add_p, add_any_p, broadcast_in_dim_p, convert_element_type_p, div_p, full_p, iota_p,
    max_p, min_p, mul_p, neg_p, reshape_p, select_n_p, sign_p, sub_p})
ENOUGH: Final = 0.9
"""Of the bytes that are returned those that are worth a change, at most."""


class Recomputed:
    """Equations of a program, with some computed again before those that read their results."""

    def __init__(self, eqns: Sequence[Equation], outvars: Iterable[Atom]) -> None:
        self.eqns = eqns
        self.kept = set(outvars)
        self.made = {v for eqn in eqns for v in eqn.outvars}
        self.users: dict[Atom, list[int]] = {}
        for k, eqn in enumerate(eqns):
            for a in dict.fromkeys(eqn.invars):
                self.users.setdefault(a, []).append(k)
        self.before: dict[int, list[Equation]] = {}
        self.again: dict[Atom, Var] = {}
        self.since: dict[Atom, int] = {}

    def add(self, start: int, period: int, times: int) -> None:
        """Compute again what is read after a run of so many times a period."""
        end = start + period * times
        each = [self.eqns[start + t * period:start + (t + 1) * period] for t in range(times)]
        wanted = [(k, n) for k, eqn in enumerate(each[0]) for n in range(len(eqn.outvars))
                  if any(self._is_read(time[k].outvars[n], end) for time in each)
                  and not any(time[k].outvars[n] in self.kept for time in each)]
        if not wanted:
            return
        body = each[times // 2]
        values = [body[k].outvars[n] for k, n in wanted]
        cut = self._cut(body, values)
        repeated = _between(body, cut, values)
        if not repeated or sum(map(self._cost, cut)) > ENOUGH * sum(map(self._cost, values)):
            return
        for time in each:
            self._repeat(time, repeated, end)

    def result(self) -> list[Equation]:
        """All equations in order."""
        found: list[Equation] = []
        for k, eqn in enumerate(self.eqns):
            found += self.before.get(k, ())
            if any(k >= self.since.get(a, k + 1) for a in eqn.invars):
                eqn = eqn.replace(invars=tuple([
                    self.again[a] if k >= self.since.get(a, k + 1) else a for a in eqn.invars]))
            found.append(eqn)
        return found

    def _is_read(self, v: Var, end: int) -> bool:
        return self.users.get(v, (-1,))[-1] >= end

    def _cost(self, v: Var) -> float:
        """The bytes that live on; inputs of the program do anyway."""
        return math.prod(map(int, v.aval.shape)) * v.aval.dtype.itemsize if v in self.made else 0.0

    def _cut(self, body: Sequence[Equation], wanted: Iterable[Var]) -> list[Var]:
        inner = {v for eqn in body for v in eqn.outvars}
        outer = dict.fromkeys(a for eqn in body for a in eqn.invars
                              if isinstance(a, Var) and a not in inner)
        return cut_of_values({v: self._cost(v) for v in outer}, body, wanted, self._cost, _is_light)

    def _repeat(self, time: Sequence[Equation], repeated: Sequence[int], end: int) -> None:
        """Compute some equations of a time again, each before the first that reads it after `end`.
        """
        place: dict[int, int] = {}
        first: dict[Atom, int] = {}
        for k in reversed(repeated):
            at = min([self._first_reader(v, end) for v in time[k].outvars]
                     + [first.get(v, len(self.eqns)) for v in time[k].outvars])
            place[k] = at
            for a in time[k].invars:
                first[a] = min(first.get(a, at), at)
        env: dict[Atom, Var] = {}
        for k in repeated:
            eqn = time[k]
            new = tuple([Var(v.aval) for v in eqn.outvars])
            self.before.setdefault(place[k], []).append(eqn.replace(
                invars=tuple([env.get(a, a) for a in eqn.invars]), outvars=new))
            env.update(zip(eqn.outvars, new, strict=True))
        for v, new_v in env.items():
            self.again[v] = new_v
            self.since[v] = end

    def _first_reader(self, v: Var, end: int) -> int:
        return next((k for k in self.users.get(v, ()) if k >= end), len(self.eqns))


def _is_light(eqn: Equation) -> bool:
    return eqn.primitive in LIGHT or isinstance(eqn.primitive, Comparison)


def _between(body: Sequence[Equation], cut: Iterable[Var], wanted: Iterable[Var]) -> list[int]:
    """The equations that compute some values from a cut."""
    known: set[Atom] = set(cut)
    needed: set[Atom] = {v for v in wanted if v not in known}
    found = []
    for k in range(len(body) - 1, -1, -1):
        if any(v in needed for v in body[k].outvars):
            found.append(k)
            needed |= {a for a in body[k].invars if not isinstance(a, Literal)} - known
    return found[::-1]
