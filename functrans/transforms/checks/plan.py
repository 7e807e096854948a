"""Where a program must look for NaN and infinities so that it misses none, planned on its jaxpr.

Backwards from the results: a value whose bits (`spread`) reach a value that is checked, whatever
happens in between, is not checked itself. An operation that only ever makes finite numbers of
finite ones is not either. What is left are the results of a program, what loops and branches hand
out, and what is hidden afterwards: by a maximum, a selection, a comparison, exp of -infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import HigherOrder
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.primitives.check import check_p, is_region
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.transforms.checks.nonfinite_propagation import (
    ALL,
    INFINITE,
    NAN,
    NOTHING,
    constant_bits,
    is_barrier,
    is_floating,
    keeps_nan,
    literal_bits,
    propagation_of,
)

__all__ = ["CheckPlan", "Site", "bodies_of", "called_by", "plan_of", "searched"]


class Site(NamedTuple):
    """A place where a program looks: a result of an equation, or the condition of a check."""

    eqn: Equation
    jaxpr: Jaxpr
    out: int = 0
    bits: int = NOTHING
    expected: int = NOTHING  # bits that are no errors there


class CheckPlan(Record, frozen=False):
    """The sites of a jaxpr by equation, as numbers, and the plans of its bodies.

    `jaxpr` is without dead code, `origin` as it was written.
    """

    jaxpr: Jaxpr
    origin: Jaxpr
    sites: dict[int, list[int]] = field(default_factory=dict)
    inner: dict[int, list[CheckPlan]] = field(default_factory=dict)

    @property
    def looks(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.sites) or any(p.looks for plans in self.inner.values() for p in plans)


def searched(checks: frozenset[str]) -> int:
    """The bits that are looked for."""
    return (NAN if "nan" in checks else NOTHING) | (INFINITE if "inf" in checks else NOTHING)


def called_by(eqn: Equation) -> tuple[Jaxpr, Sequence[Atom]] | None:
    """The jaxpr that an equation calls, and its operands, where it is a call and nothing else."""
    primitive = eqn.primitive
    if not isinstance(primitive, HigherOrder) or primitive.called is None:
        return None
    found: tuple[Jaxpr, Sequence[Atom]] | None = primitive.called(eqn.invars, **eqn.params)
    return found


def bodies_of(eqn: Equation) -> list[Jaxpr]:
    """The bodies of a loop or branch: the predicate of a while loop is the first."""
    if eqn.primitive is scan_p:
        return [eqn.params["jaxpr"]]
    if eqn.primitive is while_p:
        return [eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]]
    return list(eqn.params["branches"]) if eqn.primitive is cond_p else []


def plan_of(jaxpr: Jaxpr, checks: frozenset[str], expected: Sequence[int],
            sites: list[Site]) -> CheckPlan:
    """The plan of a program; `expected` are the bits that its inputs may have.

    Sites are appended to `sites`: their numbers follow the order of the program.
    """
    plan, _ = _Planner(sites).plan(jaxpr, searched(checks), expected,
                                   [NOTHING] * len(jaxpr.outvars))
    return plan


class _Planner:
    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites

    def plan(self, origin: Jaxpr, bits: int, expected: Sequence[int],
             cover: Sequence[int]) -> tuple[CheckPlan, list[int]]:
        """The plan of a jaxpr, and which bits of its inputs its sites see.

        `cover` are the bits of the outputs that are seen elsewhere.
        """
        jaxpr = prune_jaxpr(origin)
        plan = CheckPlan(jaxpr, origin)
        may = expected_bits(jaxpr, expected)
        seen: dict[Atom, int] = {}
        for atom, c in zip(jaxpr.outvars, cover, strict=True):
            seen[atom] = seen.get(atom, NOTHING) | c
        found: dict[int, list[Site]] = {}
        for i in range(len(jaxpr.eqns) - 1, -1, -1):
            eqn = jaxpr.eqns[i]
            if eqn.primitive is check_p:
                found[i] = [Site(eqn, origin)]
            elif eqn.primitive.higher_order:
                self._higher_order(plan, i, eqn, bits, may, seen)
            elif bits:
                found[i] = self._look(eqn, origin, bits, may, seen)
        for i in range(len(jaxpr.eqns)):  # numbers in the order of the program
            if found.get(i):
                plan.sites[i] = [self._number(site) for site in found[i]]
        return plan, [seen.get(v, NOTHING) for v in jaxpr.invars]

    def _number(self, site: Site) -> int:
        self.sites.append(site)
        return len(self.sites) - 1

    def _look(self, eqn: Equation, origin: Jaxpr, bits: int, may: dict[Atom, int],
              seen: dict[Atom, int]) -> list[Site]:
        spread = propagation_of(eqn)
        makes = spread.makes
        if not keeps_nan(eqn) and any(map(is_floating, eqn.invars)):
            makes |= NAN  # of a NaN that the arguments bring
        sites = []
        for k, out in enumerate(eqn.outvars):
            if not is_floating(out):
                continue
            expected = may.get(out, NOTHING)
            hidden = makes & bits & ~seen.get(out, NOTHING) & ~expected
            if hidden:
                sites.append(Site(eqn, origin, k, hidden, expected | (ALL & ~bits)))
                seen[out] = seen.get(out, NOTHING) | (bits & ~expected)
        for k, x in enumerate(eqn.invars):
            if isinstance(x, Var) and is_floating(x):
                outs = eqn.outvars[k:k + 1] if is_barrier(eqn) else eqn.outvars
                for out in outs:
                    covered = spread.operand(k).covered(seen.get(out, NOTHING))
                    seen[x] = seen.get(x, NOTHING) | covered
        return sites

    def _higher_order(self, plan: CheckPlan, i: int, eqn: Equation, bits: int, may: dict[Atom, int],
                      seen: dict[Atom, int]) -> None:
        call = called_by(eqn)
        if call is not None:
            jaxpr, operands = call
            bits = searched(eqn.params["checks"]) if is_region(eqn) else bits
            inner, cover = self.plan(jaxpr, bits, [_may(may, x) for x in operands],
                                     [seen.get(v, NOTHING) for v in eqn.outvars])
            plan.inner[i] = [inner]
            for x, c in zip(operands, cover, strict=True):
                seen[x] = seen.get(x, NOTHING) | c
            return
        given = [_may(may, x) for x in eqn.invars]
        plan.inner[i] = [self.plan(b, bits, e, [NOTHING] * len(b.outvars))[0]
                         for b, e in zip(bodies_of(eqn), _body_inputs(eqn, given), strict=True)]


def _may(may: dict[Atom, int], x: Atom) -> int:
    return literal_bits(x) if isinstance(x, Literal) else may.get(x, NOTHING)


def expected_bits(jaxpr: Jaxpr, inputs: Sequence[int]) -> dict[Atom, int]:
    """The bits that values may have because the inputs do, or constants: they are no errors."""
    may: dict[Atom, int] = {v: b for v, b in zip(jaxpr.invars, inputs, strict=True) if b}
    for eqn in jaxpr.eqns:
        given = [_may(may, x) for x in eqn.invars]
        outs = _expected_results(eqn, given, may)
        may.update({v: b for v, b in zip(eqn.outvars, outs, strict=True) if b and is_floating(v)})
    return may


def _expected_results(eqn: Equation, given: Sequence[int], may: dict[Atom, int]) -> list[int]:
    count = len(eqn.outvars)
    if eqn.primitive.higher_order:
        call = called_by(eqn)
        if call is not None:
            return _outputs(call[0], [_may(may, x) for x in call[1]])
        return _loop_results(eqn, given)
    made = constant_bits(eqn)
    if not made and not any(given):
        return [NOTHING] * count
    spread = propagation_of(eqn)
    if is_barrier(eqn):
        return list(given)
    bits = made
    for k, b in enumerate(given):
        bits |= spread.operand(k).may_become(b)
    if NAN & bits and not any(b & NAN for b in given) and not made & NAN:
        bits &= ~NAN  # a NaN made of infinities is one that nobody asked for
    return [bits] * count


def _outputs(jaxpr: Jaxpr, inputs: Sequence[int]) -> list[int]:
    may = expected_bits(prune_jaxpr(jaxpr), inputs)
    return [_may(may, x) for x in jaxpr.outvars]


def _body_inputs(eqn: Equation, given: Sequence[int]) -> list[list[int]]:
    """The bits that the inputs of each body may have: those of a loop's carry from all rounds."""
    if eqn.primitive is cond_p:
        return [list(given[1:])] * len(eqn.params["branches"])
    if eqn.primitive is scan_p:
        first, n = eqn.params["num_consts"], eqn.params["num_carry"]
        return [_rounds(eqn.params["jaxpr"], list(given), first, n)]
    if eqn.primitive is while_p:
        tests, first = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        inputs = _rounds(eqn.params["body_jaxpr"], list(given[tests:]), first,
                         len(given) - tests - first)
        return [[*given[:tests], *inputs[first:]], inputs]
    return []


def _rounds(body: Jaxpr, inputs: list[int], first: int, count: int) -> list[int]:
    while True:
        outs = _outputs(body, inputs)[:count]
        after = [a | b for a, b in zip(inputs[first:first + count], outs, strict=True)]
        if after == inputs[first:first + count]:
            return inputs
        inputs = [*inputs[:first], *after, *inputs[first + count:]]


def _loop_results(eqn: Equation, given: Sequence[int]) -> list[int]:
    bodies, inputs = bodies_of(eqn), _body_inputs(eqn, given)
    if not bodies:
        return [ALL if any(given) else NOTHING] * len(eqn.outvars)
    results = [_outputs(b, i) for b, i in zip(bodies, inputs, strict=True)]
    if eqn.primitive is cond_p:
        return [_union(bits) for bits in zip(*results, strict=True)]
    if eqn.primitive is scan_p:
        first, count = eqn.params["num_consts"], eqn.params["num_carry"]
    else:
        first = eqn.params["cond_nconsts"] + eqn.params["body_nconsts"]
        count = len(given) - first
    initial = given[first:first + count]
    return [b | initial[k] if k < count else b for k, b in enumerate(results[-1])]


def _union(bits: Sequence[Any]) -> int:
    total = NOTHING
    for b in bits:
        total |= b
    return total
