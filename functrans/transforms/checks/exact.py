"""Running a program one equation after the other to find the first one that goes wrong, and why."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import CheckError, NotFiniteError
from functrans.core.evaluate import resolve
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, equation_text
from functrans.core.primitive import HigherOrder
from functrans.core.prune import prune_jaxpr
from functrans.core.sizes import known_sizes, learn_sizes
from functrans.core.source import Source, describe_source, user_source
from functrans.primitives.arithmetic import div_p
from functrans.primitives.callback import Callback
from functrans.primitives.check import check_p, is_region, range_text
from functrans.primitives.control_flow.bodies import counted
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.transforms.checks.messages import advice
from functrans.transforms.checks.nonfinite_propagation import (
    INFINITE,
    NAN,
    bits_of,
    constant_bits,
    is_barrier,
    keeps_nan,
    literal_bits,
    moves,
)
from functrans.transforms.checks.plan import searched

__all__ = ["EagerReplay", "Replayed", "located", "not_finite"]

Reported = TypeVar("Reported", bound=CheckError)
Replayed = Mapping[int, deque[Any]]
"""What the callbacks of a program with side effects returned, by their identity."""


class _Flagged(NamedTuple):
    """An operand, and whether what it holds was meant."""

    value: Any
    flag: bool

    @property
    def aval(self) -> ShapedArray:
        return get_aval(self.value)


class EagerReplay:
    """One run of a program; raises the CheckError of the first equation that goes wrong.

    Callbacks with side effects are `replayed`, or called where that is None.

    A NaN that the program writes down itself, as a constant or to fill with, is none to report, nor
    what is computed of it; an infinity is one to report where no operand has one.
    """

    def __init__(self, replayed: Replayed | None) -> None:
        self.replayed = replayed
        self.rounds: list[str] = []

    def run(self, origin: Jaxpr, args: Sequence[Any], intended: Sequence[bool],
            bits: int) -> tuple[list[Any], list[bool]]:
        """The results, and which of them have a NaN that is intended."""
        jaxpr = prune_jaxpr(origin)
        env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        meant: dict[Any, bool] = dict(zip(jaxpr.invars, intended, strict=True))
        sizes = known_sizes(jaxpr.in_avals, [np.shape(x) for x in args]) \
            if jaxpr.size_names else None

        def read(atom: Atom) -> Any:
            return np.asarray(atom.value) if isinstance(atom, Literal) else env[atom]

        def is_meant(atom: Atom) -> bool:
            return bool(literal_bits(atom) & NAN) if isinstance(atom, Literal) else \
                meant.get(atom, False)

        for eqn in jaxpr.eqns:
            now = eqn if sizes is None else eqn.replace(
                params={k: resolve(v, sizes) for k, v in eqn.params.items()})
            values = [read(a) for a in eqn.invars]
            flags = [is_meant(a) for a in eqn.invars]
            if eqn.primitive.higher_order:
                outs, out_flags = self._higher_order(now, values, flags, bits)
            else:
                outs, out_flags = self._apply(origin, eqn, now, values, flags, bits)
            for var, x, flag in zip(eqn.outvars, outs, out_flags, strict=True):
                env[var], meant[var] = x, flag
                if sizes is not None:
                    learn_sizes(sizes, var.aval.shape, np.shape(x))
        return [read(a) for a in jaxpr.outvars], [is_meant(a) for a in jaxpr.outvars]

    def _apply(self, origin: Jaxpr, eqn: Equation, now: Equation, values: Sequence[Any],
               flags: Sequence[bool], bits: int) -> tuple[list[Any], list[bool]]:
        primitive = eqn.primitive
        if primitive is check_p:
            failure = check_p.failure(values[0], values[1:], eqn.source, **now.params)
            if failure is not None:
                raise located(failure, eqn.source, self.rounds)
            return [], []
        if isinstance(primitive, Callback) and primitive.has_effect and self.replayed is not None:
            outs: Any = self.replayed[id(eqn.params["callback"])].popleft()
        else:
            outs = primitive.run(*values, **now.params)
        outs = [np.asarray(o) for o in (outs if primitive.multiple_results else [outs])]
        if not outs:
            return [], []
        meant = []
        for k, out in enumerate(outs):
            has = bits_of(out)
            if not has:
                meant.append(False)
                continue
            given = [bits_of(v) for v in values]
            among = flags[k:k + 1] if is_barrier(eqn) else flags
            if moves(eqn):
                made = bool(constant_bits(eqn) & NAN) or not any(b & NAN for b in given)
                meant.append(bool(has & NAN) and (any(among) or made))
                continue
            meant.append(bool(has & NAN) and any(among))
            wrong = is_wrong(eqn, has & bits, given, any(among))
            if wrong:
                raise not_finite(origin, eqn, values, out, wrong, self.rounds)
        return outs, meant

    def _higher_order(self, eqn: Equation, values: Sequence[Any], flags: Sequence[bool],
                      bits: int) -> tuple[list[Any], list[bool]]:
        primitive, params = eqn.primitive, eqn.params
        assert isinstance(primitive, HigherOrder)
        if primitive is cond_p:
            branch = params["branches"][int(values[0])]
            return self.run(branch, values[1:], flags[1:], bits)
        if primitive is scan_p:
            return self._scan(eqn, values, flags, bits)
        if primitive is while_p:
            return self._while(eqn, values, flags, bits)
        if primitive.called is not None:
            jaxpr, operands = primitive.called(list(map(_Flagged, values, flags)), **params)
            inner = searched(params["checks"]) if is_region(eqn) else bits
            return self.run(jaxpr, [v for v, _ in operands], [f for _, f in operands], inner)
        outs = primitive.run(*values, **params)
        return outs, [any(flags)] * len(outs)

    def _scan(self, eqn: Equation, values: Sequence[Any], flags: Sequence[bool],
              bits: int) -> tuple[list[Any], list[bool]]:
        p = eqn.params
        length, n = p["length"], p["num_carry"]
        consts, carry, xs = counted(values, p["num_consts"], n)
        f_consts, f_carry, f_xs = counted(flags, p["num_consts"], n)
        rows: list[list[Any]] = []
        f_ys = [False] * (len(eqn.outvars) - n)
        for i in range(length - 1, -1, -1) if p["reverse"] else range(length):
            with self._round(f"iteration {i} of the scan", eqn.source):
                outs, out_flags = self.run(p["jaxpr"], [*consts, *carry, *[x[i] for x in xs]],
                                           [*f_consts, *f_carry, *f_xs], bits)
            carry, f_carry = outs[:n], out_flags[:n]
            f_ys = [a or b for a, b in zip(f_ys, out_flags[n:], strict=True)]
            rows.append(outs[n:])
        if not rows:
            return scan_p.evaluate(*values, **p), [*f_carry, *f_ys]
        rows = rows[::-1] if p["reverse"] else rows
        return [*carry, *map(np.stack, zip(*rows, strict=True))], [*f_carry, *f_ys]

    def _while(self, eqn: Equation, values: Sequence[Any], flags: Sequence[bool],
               bits: int) -> tuple[list[Any], list[bool]]:
        p = eqn.params
        tests, consts, carry = counted(values, p["cond_nconsts"], p["body_nconsts"])
        f_tests, f_consts, f_carry = counted(flags, p["cond_nconsts"], p["body_nconsts"])
        n = len(carry)
        rows: list[list[Any]] = []
        f_ys = [False] * (len(eqn.outvars) - n)
        while True:
            with self._round(f"iteration {len(rows)} of the while loop", eqn.source):
                (holds,), _ = self.run(p["cond_jaxpr"], [*tests, *carry], [*f_tests, *f_carry],
                                       bits)
                if not holds:
                    break
                outs, out_flags = self.run(p["body_jaxpr"], [*consts, *carry],
                                           [*f_consts, *f_carry], bits)
            carry, f_carry = outs[:n], out_flags[:n]
            f_ys = [a or b for a, b in zip(f_ys, out_flags[n:], strict=True)]
            rows.append(outs[n:])
        if p.get("record") is None:
            return carry, f_carry
        if not rows:
            return while_p.evaluate(*values, **p), [*f_carry, *f_ys]
        return [*carry, *map(np.stack, zip(*rows, strict=True))], [*f_carry, *f_ys]

    @contextmanager
    def _round(self, text: str, source: Source | None) -> Iterator[None]:
        """Errors inside say in which iteration they were."""
        where = describe_source(source)
        self.rounds.append(f"{text}{where and ' '}{where}")
        yield  # an error leaves the text for those who report it
        self.rounds.pop()


def is_wrong(eqn: Equation, has: int, given: Sequence[int], intended: bool) -> int:
    """The bits of a result that are to be reported, by those of the operands."""
    kept = keeps_nan(eqn) and any(b & NAN for b in given)
    wrong = 0 if intended or kept else has & NAN
    if has & INFINITE and not any(b & INFINITE for b in given):
        wrong |= has & INFINITE
    return wrong


def not_finite(jaxpr: Jaxpr, eqn: Equation, values: Sequence[Any], out: Any, wrong: int,
               rounds: Sequence[str]) -> NotFiniteError:
    """The error of an equation that gave a NaN or an infinity."""
    text, names = equation_text(jaxpr, eqn)
    wide = np.abs(out) if dtypes.kind(out.dtype) == "c" else out.astype(np.float64)
    count = int((np.isnan(wide) if wrong & NAN else np.isinf(wide)).sum())
    what = "NaN" if wrong & NAN else "an infinity" if count == 1 else "infinities"
    of = f" in {count} of {out.size} elements" if out.ndim else ""
    operands = {name: f"{name.split(':')[0]} is {range_text(v)}"
                for name, v, a in zip(names, values, eqn.invars, strict=True)
                if not isinstance(a, Literal)}
    by_zero = eqn.primitive is div_p and bool(np.any(np.asarray(values[1]) == 0))
    result = f"the result is {range_text(out)}" + (": division by zero" if by_zero else "")
    error = NotFiniteError(
        f"{eqn.primitive.name} gave {what}{of}: {' '.join(text.split())}.", where=eqn.source,
        why=f"{'; '.join([*operands.values(), result])}.",
        fix=advice(eqn, wrong, any(bits_of(v) & NAN for v in values)))
    located(error, eqn.source, rounds)
    return error


def located(error: Reported, source: Source | None, rounds: Sequence[str]) -> Reported:
    """The error with what is known of where it was: the pass, the iterations, the call."""
    facts = []
    if source is not None and source.backward:
        facts.append("This is the backward pass: the line is that of the operation whose "
                     "derivative it is.")
    facts += [f"In {r}." for r in reversed(rounds)]
    called = user_source()
    if source is not None and called is not None and (called.code, called.line) != (
            source.code, source.line):
        facts.append(f"Called {describe_source(called)}.")
    error.why = "\n".join([*filter(None, [error.why]), *facts])
    return error
