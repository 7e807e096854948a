"""Loops record the least from which what later loops read of them can be computed again.

Reverse mode of a loop is a pair: one that records values of each iteration, and one that reads them
backwards. What it reads are factors of products, all functions of the few numbers that the first
loop carries: a step of a Lorenz system by RK4 has twelve, of three. Where they are elementwise
functions of less, that is recorded, and the second loop computes them again. What to record is a
minimum cut of the body, with bytes as capacities, as for the residuals of programs (He and Yu,
"Transcending runtime-memory tradeoffs in checkpointing by being fusion aware", 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.minimum_cut import cut_of_values
from functrans.lowering.passes.rewrite import (
    Change,
    equation_text,
    inlined_jaxpr,
    with_bodies,
)
from functrans.lowering.passes.scans import ScanParts, stack_of
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.shape import iota_p

__all__ = ["record_less"]

ENOUGH: Final = 0.7
"""Of the bytes that a loop recorded those that are worth a change, at most."""
MOST_OPERATIONS: Final = 4
"""Of an iteration that are repeated, for each byte that is recorded no longer."""
FREE: Final = frozenset({broadcast_in_dim_p, iota_p, full_p})
REPEATED: Final = FREE | {select_n_p, convert_element_type_p, add_any_p}
"""Besides elementwise operations. What moves elements would be a launch of its own in a loop that
is launched step by step: a controller took 4.1 ms, and 3.6 with its records."""


def record_less(jaxpr: Jaxpr, log: list[Change] | None = None) -> Jaxpr:
    """The program whose loops record the least; each change is appended to `log`."""
    jaxpr = with_bodies(jaxpr, lambda body: record_less(body, log))
    for eqn in jaxpr.calls:
        if eqn.primitive is scan_p and eqn.params["num_carry"] and _is_sized(eqn):
            for reader in _readers(jaxpr, eqn):
                changed = _changed(jaxpr, eqn, reader)
                if changed is not None:
                    if log is not None:
                        log.append(Change("records", "a loop records what others follow from",
                                          eqn.source, equation_text(eqn), ""))
                    return record_less(changed, log)
    return jaxpr


def _is_sized(eqn: Equation) -> bool:
    values = [*eqn.invars, *eqn.outvars, *[v for e in eqn.params["jaxpr"].eqns for v in e.outvars]]
    return isinstance(eqn.params["length"], int) and all(v.aval.is_static for v in values)


class _Reader(Record):
    """A loop that alone reads some records of another one: by their number which it walks over."""

    eqn: Equation
    records: Mapping[int, int]


def _readers(jaxpr: Jaxpr, loop: Equation) -> list[_Reader]:
    nk = loop.params["num_carry"]
    number = {v: k for k, v in enumerate(loop.outvars[nk:])}
    users: dict[Atom, list[Equation | None]] = {}
    for eqn in jaxpr.eqns:
        for a in eqn.invars:
            if a in number:
                users.setdefault(a, []).append(eqn)
    for a in jaxpr.outvars:
        users.setdefault(a, []).append(None)
    found: dict[Equation, dict[int, int]] = {}
    for v, k in number.items():
        (user, *others) = users.get(v) or [None]
        if user is None or others or user.primitive is not scan_p \
                or user.params["length"] != loop.params["length"] or not user.params["num_carry"]:
            continue
        first = user.params["num_consts"] + user.params["num_carry"]
        at = [i - first for i, a in enumerate(user.invars) if a is v]
        if len(at) == 1 and at[0] >= 0:
            found.setdefault(user, {})[k] = at[0]
    return [_Reader(eqn, records) for eqn, records in found.items()]


def _changed(jaxpr: Jaxpr, loop: Equation, reader: _Reader) -> Jaxpr | None:
    """The program in which a loop records less for a reader."""
    parts = ScanParts.of(loop)
    wanted = [v for k in reader.records if isinstance(v := parts.out_ys[k], Var)]
    before = sum(map(_bytes, dict.fromkeys(wanted)))
    cut = _cut(loop, parts, wanted)
    there = {*parts.v_consts, *parts.v_xs}
    kept = [v for v in cut if v not in there]
    again = _between(loop.params["jaxpr"], cut, wanted)
    saved = before - sum(map(_bytes, kept))
    if not again or sum(map(_bytes, cut)) > ENOUGH * before \
            or sum(map(_operations, again)) > MOST_OPERATIONS * saved:
        return None
    stacks = {v: stack_of(loop, v) for v in kept}
    first = _recording(loop, parts, reader, stacks)
    second = _computing(loop, parts, reader, cut, again, stacks)
    new = {loop: first, reader.eqn: second}
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple([new.get(e, e) for e in jaxpr.eqns]),
                 jaxpr.outvars, name=jaxpr.name)


# --- what is recorded


def _cut(loop: Equation, parts: ScanParts, wanted: Iterable[Var]) -> list[Var]:
    """The least values of an iteration, in bytes, of which others are functions; the last ones."""
    jaxpr = loop.params["jaxpr"]
    # an element of xs is in memory anyway, and is read once more
    costs = {**dict.fromkeys(parts.v_consts, 0.0), **{v: _bytes(v) / 2 for v in parts.v_xs},
             **{v: float(_bytes(v)) for v in parts.v_carry}}
    given = {v: costs[v] for v in jaxpr.invars}
    return cut_of_values(given, jaxpr.eqns, wanted, _bytes, _is_repeatable)


def _is_repeatable(eqn: Equation) -> bool:
    return isinstance(eqn.primitive, Elementwise) or eqn.primitive in REPEATED


def _between(body: Jaxpr, cut: Iterable[Var], wanted: Iterable[Var]) -> list[Equation]:
    """The equations that compute some values from a cut."""
    known, needed = set(cut), set(wanted) - set(cut)
    found = []
    for eqn in reversed(body.eqns):
        if any(v in needed for v in eqn.outvars):
            found.append(eqn)
            needed |= {a for a in eqn.invars if isinstance(a, Var)} - known
    return found[::-1]


def _operations(eqn: Equation) -> float:
    """Additions that an equation costs, about."""
    if eqn.primitive in FREE:
        return 0
    cost = eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
    return float(cost.flops)


def _bytes(v: Var) -> float:
    return math.prod(v.aval.shape) * v.aval.dtype.itemsize


# --- the loops


def _recording(loop: Equation, parts: ScanParts, reader: _Reader,
               stacks: Mapping[Var, Var]) -> Equation:
    """The loop with other records."""
    nk = loop.params["num_carry"]
    kept = [k for k in range(len(parts.out_ys)) if k not in reader.records]
    body = loop.params["jaxpr"]
    inner = Jaxpr((), body.invars, body.eqns,
                  (*parts.out_carry, *[parts.out_ys[k] for k in kept], *stacks), name=body.name)
    return loop.replace(params={**loop.params, "jaxpr": prune_jaxpr(inner)}, outvars=(
        *loop.outvars[:nk], *[loop.outvars[nk + k] for k in kept], *stacks.values()))


def _computing(loop: Equation, parts: ScanParts, reader: _Reader, cut: Sequence[Var],
               again: Sequence[Equation], stacks: Mapping[Var, Var]) -> Equation:
    """The reader, which computes what it read before."""
    own = ScanParts.of(reader.eqn)
    body: Jaxpr = reader.eqn.params["jaxpr"]
    wanted: list[Atom] = [parts.out_ys[k] for k in reader.records]
    consts = [v for v in cut if v in parts.v_consts]
    walked = [v for v in cut if v not in parts.v_consts]
    given = [Var(v.aval.strong()) for v in (*consts, *walked)]
    eqns: list[Equation] = []
    values = inlined_jaxpr(Jaxpr((), (*consts, *walked), tuple(again), tuple(wanted)), given, eqns)
    env: dict[Atom, Atom] = dict(zip([own.v_xs[i] for i in reader.records.values()], values,
                                     strict=True))

    def read(a: Atom) -> Atom:
        return env.get(a, a)

    for eqn in body.eqns:
        eqns.append(eqn.replace(invars=tuple(map(read, eqn.invars)))
                    if any(a in env for a in eqn.invars) else eqn)
    left = [i for i in range(len(own.xs)) if i not in reader.records.values()]
    inner = Jaxpr((), (*own.v_consts, *given[:len(consts)], *own.v_carry,
                       *[own.v_xs[i] for i in left], *given[len(consts):]),
                  tuple(eqns), tuple(map(read, body.outvars)), name=body.name)
    outer = {**dict(zip(parts.v_consts, parts.consts, strict=True)),
             **dict(zip(parts.v_xs, parts.xs, strict=True)), **stacks}
    return reader.eqn.replace(
        invars=(*own.consts, *[outer[v] for v in consts], *own.carry, *[own.xs[i] for i in left],
                *[outer[v] for v in walked]),
        params={**reader.eqn.params, "jaxpr": inner,
                "num_consts": len(own.consts) + len(consts)})
