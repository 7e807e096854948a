"""Bounded loops: a `while` that records each iteration becomes a `scan` with a capacity.

The device decides how many iterations there are, and would have to ask the host for memory in each
of them. With a capacity every array has a size. Iterations after the last one leave the carry as it
is and are marked in the record, as finished lanes of a `vmap` are. Results of a capacity that is
too small are discarded: the program also returns the number of iterations that were needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, decided_names, subjaxprs
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.record import Record
from functrans.core.sizes import substitute
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import has_effect
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives.arithmetic import add, max_p
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import bitwise_and, le, select_n
from functrans.primitives.control_flow.bodies import (
    counted,
    ones_like,
    select_lanes,
    stage_body,
)
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_max, reduce_or_p
from functrans.primitives.shape import concatenate

__all__ = ["Capacities", "bounded", "record_bytes"]

BOOL, INT = np.dtype(np.bool_), np.dtype(np.int32)

Capacities = Mapping[str, int]
"""The capacity of each loop, by the name of the size that it decides."""
Rule = Callable[[Equation, list[Any], list[Any]], list[Any]]
"""Of an equation, its guard and its operands: the results, and what was needed."""


def bounded(jaxpr: Jaxpr, capacities: Capacities) -> Jaxpr:
    """The program with such capacities; its last output is how many iterations were needed.

    The counts are in the order of `capacities`; one is larger than the capacity where that was too
    small. Raises UnsupportedKernel for effects in such loops.
    """
    body = _BoundedWriter(jaxpr, capacities).written()
    eqns = list(body.eqns)
    outs, needed = counted(body.outvars, len(jaxpr.outvars))

    def together(*counts: Any) -> list[Any]:
        return [concatenate([broadcast_in_dim(n, (1,), ()) for n in counts], 0)]

    outs += inlined(together, needed, eqns, "needed", None)
    return Jaxpr((), body.invars, tuple(eqns), tuple(outs), name=body.name)


def record_bytes(jaxpr: Jaxpr) -> dict[str, int]:
    """The bytes that an iteration of each recording loop adds, by the name of the size."""
    found: dict[str, int] = {}
    for eqn in jaxpr.eqns:
        record = eqn.params.get("record") if eqn.primitive is while_p else None
        if record is not None:
            rows = [v.aval for v in eqn.outvars if v.aval.shape[:1] == (record,)]
            found[record.name] = sum([math.prod([n for n in a.shape[1:] if isinstance(n, int)])
                                      * a.dtype.itemsize for a in rows])
        for body in subjaxprs(eqn):
            found.update(record_bytes(body))
    return found


class _BoundedWriter(Record, frozen=False, eq=False):
    """Writes a program of bounded loops; its last outputs are the counts that they needed.

    One that `is_guarded` has a predicate as an additional first input: where it is false the
    results are not used, and loops, which might not end on such values, end at once.
    """

    jaxpr: Jaxpr
    capacities: Capacities
    is_guarded: bool = False
    eqns: list[Equation] = field(default_factory=list)
    env: dict[Var, Atom] = field(default_factory=dict)
    needed: dict[str, list[Atom]] = field(default_factory=dict)
    guard: list[Var] = field(default_factory=list)

    def written(self) -> Jaxpr:
        invars = [self.define(v) for v in self.jaxpr.invars]
        if self.is_guarded:
            self.guard.append(Var(ShapedArray((), BOOL)))
        self.equations(self.jaxpr.eqns)
        outs = [self.read(a) for a in self.jaxpr.outvars]
        for name in self.names(self.jaxpr.decided_names):
            outs += inlined(_most, self.needed[name], self.eqns, "needed", None)
        return Jaxpr((), (*self.guard, *invars), tuple(self.eqns), tuple(outs),
                     name=self.jaxpr.name)

    def names(self, decided: frozenset[str]) -> list[str]:
        return [name for name in self.capacities if name in decided]

    def define(self, var: Var) -> Var:
        made = Var(var.aval.substitute(self.capacities))
        self.env[var] = made
        return made

    def read(self, atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else self.env[atom]

    def equations(self, eqns: Sequence[Equation]) -> None:
        for eqn in eqns:
            ins = [self.read(a) for a in eqn.invars]
            if isinstance(eqn.primitive, HigherOrder) and eqn.primitive.called is not None:
                body, operands = eqn.primitive.called(ins, **eqn.params)
                self.env.update(zip(body.invars, operands, strict=True))
                self.equations(body.eqns)
                self.env.update(zip(eqn.outvars, map(self.read, body.outvars), strict=True))
            elif decided_names(eqn) or (self.guard and _may_go_on(eqn)):
                self.threaded(eqn, ins)
            else:
                params = {k: substitute(v, self.capacities) for k, v in eqn.params.items()}
                self.eqns.append(eqn.replace(invars=tuple(ins), params=params, outvars=tuple(
                    [self.define(v) for v in eqn.outvars])))

    # --------------------------------------------------------------------------- loops

    def threaded(self, eqn: Equation, ins: Sequence[Atom]) -> None:
        """A loop or branch that also returns the counts that loops in it needed, and is guarded.

        Rules return the results, and then the counts.
        """
        rules: dict[Primitive, Rule] = {scan_p: self.scan, while_p: self.loop, cond_p: self.branch}
        rule = rules.get(eqn.primitive)
        if rule is None:
            raise UnsupportedKernel(f"a {eqn.primitive.name} that decides sizes")
        if eqn.params.get("record") is not None:
            is_alone = not self.guard and self.running_lanes(eqn) is not None
            rule = self.recording_lanes if is_alone else self.recording

        def function(*args: Any) -> Sequence[Any]:
            return rule(eqn, *counted(args, len(self.guard)))

        outs, needed = counted(inlined(function, [*self.guard, *ins], self.eqns,
                                       eqn.primitive.name, eqn.source), len(eqn.outvars))
        self.env.update(zip(eqn.outvars, outs, strict=True))
        for name, count in zip(self.names(decided_names(eqn)), needed, strict=True):
            self.needed.setdefault(name, []).append(count)

    def inner(self, jaxpr: Jaxpr, is_guarded: bool) -> tuple[Jaxpr, list[str]]:
        """A body, and the names of the loops whose counts it returns."""
        return _BoundedWriter(jaxpr, self.capacities,
                              is_guarded).written(), self.names(jaxpr.decided_names)

    def scan(self, eqn: Equation, guard: list[Any], operands: list[Any]) -> list[Any]:
        p = eqn.params
        consts, carry, xs = counted(operands, p["num_consts"], p["num_carry"])
        body, names = self.inner(p["jaxpr"], bool(guard))
        first = [*guard, *consts]

        def step(*args: Any) -> list[Any]:
            given, before, carried, elements = counted(args, len(first), len(names), len(carry))
            outs = eval_jaxpr(body, (), *given, *carried, *elements)
            after, ys, needed = counted(outs, len(carry), len(outs) - len(carry) - len(names))
            return [*map(max_p.bind, before, needed), *after, *ys]

        init = [*_nothing(names), *carry]
        elements = [a.with_shape(a.shape[1:]) for a in _types(xs)]
        outs = scan_p.bind(
            *first, *init, *xs, num_consts=len(first), num_carry=len(init),
            jaxpr=stage_body(step, [*_types([*first, *init]), *elements], body.name),
            length=substitute(p["length"], self.capacities), reverse=p["reverse"],
            unroll=p["unroll"])
        return [*outs[len(names):], *outs[:len(names)]]

    def loop(self, eqn: Equation, guard: list[Any], operands: list[Any]) -> list[Any]:
        """A `while` that does not record; it ends where a capacity in its body was too small."""
        p = eqn.params
        tests, consts, init = counted(operands, p["cond_nconsts"], p["body_nconsts"])
        predicate = substitute(p["cond_jaxpr"], self.capacities)
        body, names = self.inner(p["body_jaxpr"], bool(guard))

        def holds(*args: Any) -> list[Any]:
            wanted, given, needed, carry = counted(args, len(guard), len(tests), len(names))
            going = [*eval_jaxpr(predicate, (), *given, *carry), *wanted]
            going += [le(n, np.int32(self.capacities[name]))
                      for name, n in zip(names, needed, strict=True)]
            return [_all(going)]

        def step(*args: Any) -> list[Any]:
            given, before, carry = counted(args, len(first), len(names))
            after, needed = counted(eval_jaxpr(body, (), *given, *carry), len(carry))
            return [*map(max_p.bind, before, needed), *after]

        first, carry = [*guard, *consts], [*_nothing(names), *init]
        types = _types(carry)
        outs = while_p.bind(
            *guard, *tests, *first, *carry,
            cond_jaxpr=stage_body(holds, [*_types([*guard, *tests]), *types], predicate.name),
            body_jaxpr=stage_body(step, [*_types(first), *types], body.name),
            cond_nconsts=len(guard) + len(tests), body_nconsts=len(first))
        return [*outs[len(names):], *outs[:len(names)]]

    def recording(self, eqn: Equation, guard: list[Any], operands: list[Any]) -> list[Any]:
        """A `while` that records, as a `scan` of which some last iterations do not take place."""
        p = eqn.params
        tests, consts, init = counted(operands, p["cond_nconsts"], p["body_nconsts"])
        predicate = substitute(p["cond_jaxpr"], self.capacities)
        if has_effect(p["body_jaxpr"]) or has_effect(predicate) or p["num_active"] == 0:
            raise UnsupportedKernel("a loop with effects that records")
        is_guarded = any(map(_may_go_on, p["body_jaxpr"].eqns))
        body, names = self.inner(p["body_jaxpr"], is_guarded)

        def step(*args: Any) -> list[Any]:
            given, fixed, (alive, count), before, carried = counted(
                args, len(tests), len(consts), 2, len(names))
            outs = eval_jaxpr(body, (), *([alive] if is_guarded else []), *fixed, *carried)
            after, records, needed = counted(outs, len(init), len(outs) - len(init) - len(names))
            after = [select_lanes(alive, a, b) for a, b in zip(after, carried, strict=True)]
            needed = [select_n(alive, n, max_p.bind(n, m))
                      for n, m in zip(before, needed, strict=True)]
            (going,) = eval_jaxpr(predicate, (), *given, *after)
            return [bitwise_and(alive, going), add(count, convert_element_type(alive, INT)),
                    *needed, *after, *_recorded(records, alive, p["num_active"])]

        alive = _all([*eval_jaxpr(predicate, (), *tests, *init), *guard])
        first = [*tests, *consts]
        carry = [alive, full((), 0, INT), *_nothing(names), *init]
        outs = scan_p.bind(
            *first, *carry, jaxpr=stage_body(step, _types([*first, *carry]), body.name),
            length=self.capacities[p["record"].name], reverse=False, unroll=1,
            num_consts=len(first),
            num_carry=len(carry))
        (alive, count), needed, results = counted(outs, 2, len(names))
        found = dict(zip(names, needed, strict=True))
        found[p["record"].name] = add(count, convert_element_type(alive, INT))
        return [*results, *[found[name] for name in self.names(decided_names(eqn))]]

    def running_lanes(self, eqn: Equation) -> int | None:
        """Which carry says of each lane whether it goes on, where lanes record it each by itself.

        Such a loop is `masked`: lanes that are done stay as they are, and mask what they record.
        """
        p = eqn.params
        body, test = p["body_jaxpr"], p["cond_jaxpr"]
        if not p.get("masked") or len(test.eqns) != 1 or test.eqns[0].primitive \
                is not reduce_or_p or test.outvars[0] is not test.eqns[0].outvars[0] \
                or body.decided_names or any(map(_may_go_on, body.eqns)) or has_effect(body):
            return None
        asked, carry = test.eqns[0].invars[0], test.invars[p["cond_nconsts"]:]
        if asked not in carry:
            return None
        lanes, n = asked.aval.shape, len(carry)
        records = body.outvars[n:n + p["num_active"]]
        return carry.index(asked) if records and all(
            r.aval.shape[:len(lanes)] == lanes for r in records) else None

    def recording_lanes(self, eqn: Equation, guard: list[Any], operands: list[Any]) -> list[Any]:
        """A `while` of lanes that record: none waits for the others, nor for the last one."""
        p = eqn.params
        _, consts, init = counted(operands, p["cond_nconsts"], p["body_nconsts"])
        body = substitute(p["body_jaxpr"], self.capacities)
        running = self.running_lanes(eqn)
        assert running is not None

        def step(*args: Any) -> list[Any]:
            fixed, (count,), carried = counted(args, len(consts), 1)
            own = add(count, convert_element_type(carried[running], INT))
            return [own, *eval_jaxpr(body, (), *fixed, *carried)]

        lanes = get_aval(init[running]).shape
        carry = [full(lanes, 0, INT), *init]
        outs = scan_p.bind(
            *consts, *carry, jaxpr=stage_body(step, _types([*consts, *carry]), body.name),
            length=self.capacities[p["record"].name], reverse=False, unroll=1,
            num_consts=len(consts), num_carry=len(carry))
        axes = tuple(range(len(lanes)))
        (count,), results = counted(outs, 1)
        more = convert_element_type(results[running], INT)
        return [*results, reduce_max(add(count, more), axes)]

    def branch(self, eqn: Equation, guard: list[Any], operands: list[Any]) -> list[Any]:
        """Branches return the counts of the loops of all of them: 0 where they did not run."""
        which, *rest = operands
        wanted = self.names(decided_names(eqn))
        branches = []
        for branch in eqn.params["branches"]:
            body, names = self.inner(branch, bool(guard))

            def run(*args: Any, body: Jaxpr = body, names: list[str] = names) -> list[Any]:
                outs, needed = counted(eval_jaxpr(body, (), *args), len(eqn.outvars))
                known = dict(zip(names, needed, strict=True))
                return [*outs, *[known.get(name, np.int32(0)) for name in wanted]]

            branches.append(stage_body(run, _types([*guard, *rest]), branch.name))
        return list(cond_p.bind(which, *guard, *rest, branches=tuple(branches)))


def _recorded(records: Sequence[Any], alive: Any, num_active: int) -> list[Any]:
    """What an iteration records: that it did not take place, where it did not."""
    found = []
    for k, record in enumerate(records):
        aval = get_aval(record)
        if k < num_active:
            record = bitwise_and(record, broadcast_in_dim(alive, aval.shape, ()))
        elif dtypes.kind(aval.dtype) in "fc":
            # what such an iteration records is not used, but must not make 0 * inf
            record = select_lanes(alive, record, ones_like(record))
        found.append(record)
    return found


def _may_go_on(eqn: Equation) -> bool:
    """Whether an equation has a loop that may not end on values that nobody wants."""
    return eqn.primitive is while_p or any(
        _may_go_on(inner) for body in subjaxprs(eqn) for inner in body.eqns)


def _nothing(names: Sequence[str]) -> list[Any]:
    return [full((), 0, INT) for _ in names]


def _most(*counts: Any) -> list[Any]:
    most = counts[0]
    for count in counts[1:]:
        most = max_p.bind(most, count)
    return [most]


def _all(conditions: Sequence[Any]) -> Any:
    every = conditions[0]
    for condition in conditions[1:]:
        every = bitwise_and(every, condition)
    return every


def _types(values: Sequence[Any]) -> list[ShapedArray]:
    return [get_aval(x).strong() for x in values]
