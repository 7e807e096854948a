"""Programs folded: equations by the lines that asked for them, and layers that repeat once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.report import Line, line_of

__all__ = ["LineGroup", "Region", "Repeat", "line_groups", "regions_of", "repeats_in"]

LEAST_PERIOD: Final = 4
"""Equations of a layer: shorter repetitions are the elements of one expression."""
CANDIDATES: Final = 8
"""Periods that are tried at a place: the next so many places of an equal equation."""


@dataclass(frozen=True)
class Repeat:
    """Tokens `start` to `start + period * count`, `count` times the same; once is no repetition."""

    start: int
    period: int
    count: int = 1

    def at(self, time: int) -> range:
        """The places of one of them."""
        begin = self.start + time * self.period
        return range(begin, begin + self.period)


@dataclass(frozen=True)
class LineGroup:
    """Equations one after another that one line asked for, by number."""

    line: Line | None
    scope: str
    equations: tuple[int, ...]


@dataclass(frozen=True)
class Region:
    """A part of a program: a layer that is there `count` times, or what is there once.

    `groups` are of the first time; those of the others do the same with `period` higher numbers.
    """

    repeat: Repeat
    groups: tuple[LineGroup, ...]

    @property
    def count(self) -> int:
        return self.repeat.count

    @property
    def scope(self) -> str:
        """The scope that most equations are in."""
        found = Counter(g.scope for g in self.groups for _ in g.equations)
        return found.most_common(1)[0][0] if found else ""


def repeats_in(tokens: Sequence[Hashable], least: int = LEAST_PERIOD,
               alone_repeats: Callable[[int], bool] = lambda k: False) -> list[Repeat]:
    """The sequence as repetitions one after another; what does not repeat is one with `count` 1.

    From left to right, the repetition that covers most is taken at each place. Periods are of
    `least` tokens, or shorter from places that `alone_repeats` takes.
    """
    places: dict[Hashable, list[int]] = {}
    for k, token in enumerate(tokens):
        places.setdefault(token, []).append(k)
    rank = {k: n for found in places.values() for n, k in enumerate(found)}
    found, at, alone = list[Repeat](), 0, 0
    while at < len(tokens):
        best = Repeat(at, 1)
        same = places[tokens[at]]
        for other in same[rank[at] + 1:rank[at] + 1 + CANDIDATES]:
            period = other - at
            if period < least and not alone_repeats(at):
                continue
            end = other
            while end < len(tokens) and tokens[end] == tokens[end - period]:
                end += 1
            count = (end - at) // period
            if count > 1 and count * period > best.count * best.period:
                best = Repeat(at, period, count)
        if best.count > 1:
            if at > alone:
                found.append(Repeat(alone, at - alone))
            found.append(best)
            at = alone = best.start + best.period * best.count
        else:
            at += 1
    if len(tokens) > alone:
        found.append(Repeat(alone, len(tokens) - alone))
    return found


def token_of(eqn: Equation) -> Hashable:
    """Equal for equations of one line that do the same with values of the same types."""
    source = eqn.source
    place = None if source is None else (source.filename, source.line, source.backward)
    return (eqn.primitive.name, tuple([str(a.aval) for a in eqn.invars]),
            tuple([str(v.aval) for v in eqn.outvars]), place)


def regions_of(jaxpr: Jaxpr) -> list[Region]:
    """The parts of a program: what repeats is one part."""
    found = repeats_in(list(map(token_of, jaxpr.eqns)),
                       alone_repeats=lambda k: jaxpr.eqns[k].primitive.higher_order)
    return [Region(r, tuple(line_groups(jaxpr, r.at(0)))) for r in found]


def line_groups(jaxpr: Jaxpr, numbers: Sequence[int]) -> list[LineGroup]:
    """Some equations in order, those of one line together."""
    lines = {k: line_of(jaxpr.eqns[k].source) for k in numbers}
    scopes = {k: s.scope if (s := jaxpr.eqns[k].source) is not None else "" for k in numbers}
    return [LineGroup(line, scope, tuple(members))
            for (line, scope), members in groupby(numbers, lambda k: (lines[k], scopes[k]))]
