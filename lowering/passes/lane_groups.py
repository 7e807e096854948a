"""Loops over the same lanes, of which one reads what another writes in each iteration, as one.

Reverse mode is such a pair: a loop that records, and one that reads the records backwards. As one
loop over lanes the records of a lane are of the thread that walks it, and never leave its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.prune import has_effects
from functrans.lowering.passes.lane_regions import as_one_loop
from functrans.lowering.passes.lanes import is_read_in_place
from functrans.primitives.control_flow.scan import scan_p

__all__ = ["group_loops"]


def group_loops(jaxpr: Jaxpr, is_kernel: Callable[[Equation], bool]) -> Jaxpr:
    """The program with pairs of such loops as maps of one iteration, which hold both.

    `is_kernel` tells whether such a map is written as a kernel of lanes.
    """
    if any(map(has_effects, jaxpr.eqns)):
        return jaxpr
    for pair in _pairs(jaxpr):
        grouped = _grouped(jaxpr, *pair, is_kernel)
        if grouped is not None:
            return group_loops(grouped, is_kernel)
    return jaxpr


def _pairs(jaxpr: Jaxpr) -> Iterator[tuple[Equation, Equation]]:
    """Loops of which the second reads what the first stacks."""
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        if eqn.primitive is scan_p and eqn.params["num_carry"] and not has_effects(eqn):
            first = eqn.params["num_consts"] + eqn.params["num_carry"]
            for made in _stacked_by(eqn.invars[first:], makers):
                if made.params["num_carry"] and _is_long(made.params["length"]):
                    yield made, eqn


def _stacked_by(values: Iterable[Atom], makers: Mapping[Atom, Equation]) -> list[Equation]:
    """The loops whose results, or parts of them, some values are."""
    found: dict[Equation, None] = {}
    waiting, seen = list(values), set()
    while waiting:
        made = makers.get(waiting.pop())
        if made is None or made in seen:
            continue
        seen.add(made)
        if made.primitive is scan_p:
            found[made] = None
        elif is_read_in_place(made):
            waiting += made.invars
    return list(found)


def _is_long(length: Any) -> bool:
    return isinstance(length, int) and length > 1


def _grouped(jaxpr: Jaxpr, first: Equation, second: Equation,
             is_kernel: Callable[[Equation], bool]) -> Jaxpr | None:
    """The program with two loops, and what is between them, in one; None where lanes mix."""
    after = _dependent(jaxpr.eqns, first)
    before = _needed(jaxpr.eqns, second)
    grouped, group = as_one_loop(jaxpr, [e for e in jaxpr.eqns if e in after and e in before])
    return grouped if is_kernel(group) else None


def _dependent(eqns: Iterable[Equation], first: Equation) -> set[Equation]:
    """An equation and those that read of it, directly or not."""
    made: set[Atom] = set()
    found: set[Equation] = set()
    for eqn in eqns:
        if eqn is first or any(a in made for a in eqn.invars if isinstance(a, Var)):
            found.add(eqn)
            made.update(eqn.outvars)
    return found


def _needed(eqns: Sequence[Equation], last: Equation) -> set[Equation]:
    """An equation and those that it reads of, directly or not."""
    read: set[Atom] = set()
    found: set[Equation] = set()
    for eqn in reversed(eqns):
        if eqn is last or any(v in read for v in eqn.outvars):
            found.add(eqn)
            read.update(a for a in eqn.invars if isinstance(a, Var))
    return found
