"""Fallback forms: how the steps of a program are computed that do not compile as planned, and why.

An attempt to write a program collects the steps that are not supported, or whose kernels Triton
does not compile. Each takes its next form, and the program is written again: the epilogue of a
product becomes a kernel of its own, the values of a kernel get kernels of their own, then their
operands are materialised; attention becomes its products, and a product a sum of products. The last
form is the host, which evaluates the equations of the step and always works. Other steps do not
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.core.source import Source
from functrans.lowering.defects import UnsupportedKernel, warn_of_fallback
from functrans.lowering.loops.call import Call, Conv, Gemm
from functrans.lowering.loops.tensor import Map, Stored, Tensor
from functrans.lowering.rules.calls import CallRule
from functrans.lowering.rules.plain_products import RULES as PLAIN
from functrans.lowering.schedule.domains import preferred_loop_nest
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Domain, Kernel, Member
from functrans.lowering.triton.attention.calls import Attend, AttendGradient

__all__ = ["FallbackForms", "UnsupportedSteps"]


ON_HOST: Final = "runs on the host, between copies"
MOST_STORED = 1 << 28
"""Elements of a value that is stored so that the kernel which reads it is plainer."""


class UnsupportedSteps(UnsupportedKernel):
    """Steps of a schedule that cannot be written as they are, and why."""

    def __init__(self, steps: Sequence[tuple[Step, str]]) -> None:
        super().__init__("; ".join(dict.fromkeys(why for _, why in steps)))
        self.steps = steps


@dataclass(eq=False)
class FallbackForms:
    """The plainer forms of a program's parts.

    Of a graph: products `with_kernel`, whose epilogues are kernels of their own; values `alone`, in
    kernels of their own, and those that are `stored` for them. Of its equations: `sums` of products
    that no template computes, and what is `hosted`.
    """

    attention: bool = True
    stores_literals: bool = False
    is_new: bool = True  # the graph of the equations has to be made
    apart: dict[Tensor, str] = field(default_factory=dict)
    alone: dict[Tensor, str] = field(default_factory=dict)
    stored: dict[Tensor, str] = field(default_factory=dict)
    tried: set[Tensor] = field(default_factory=set)
    sums: dict[Equation, str] = field(default_factory=dict)
    hosted: dict[Equation, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    # --------------------------------------------------------------------------- plainer ones

    def fall_back(self, step: Step, why: str, schedule: Schedule, equations: Sequence[Equation],
                  in_graph: bool = False) -> bool:
        """Give a step that failed another form; False where none is left, `in_graph` as it is."""
        if isinstance(step, FusedGemm):
            self.apart[step.product] = why
        elif isinstance(step, Kernel) and any(m.tensor not in self.alone for m in step.members):
            self.alone.update(dict.fromkeys((m.tensor for m in step.members), why))
        elif isinstance(step, Kernel) and (found := self._inlined(step, schedule)):
            self.stored.update(dict.fromkeys(found, why))
        elif in_graph:
            return False
        elif isinstance(step, (Attend, AttendGradient)) and self.attention:
            self.attention = False
            self._note(step.source, f"attention is computed as products: {why}")
            self._reset()
        else:
            return self._move_to_host(step, equations, why)
        return True

    def _inlined(self, step: Kernel, schedule: Schedule) -> list[Tensor]:
        """What a kernel of one value computes on the way to it, where storing that is possible."""
        found: list[Tensor] = []
        waiting = [t for m in step.members for t in m.tensor.operands]
        while waiting:
            t = waiting.pop()
            if self.is_stored(t, schedule) or t in found or t in self.tried:
                continue
            self.tried.add(t)
            if isinstance(t, Map) and t.operands and isinstance(t.size, int) \
                    and 0 < t.size <= MOST_STORED:
                found.append(t)
            waiting += t.operands
        return found

    def _move_to_host(self, step: Step, equations: Sequence[Equation], why: str) -> bool:
        """No form of this graph is left: its equations become others."""
        rest = [e for e in equations if e not in self.hosted]
        if isinstance(step, (Gemm, Conv)) and (plain := [e for e in rest if e not in self.sums]):
            self.sums.update(dict.fromkeys(plain, why))
        elif rest:
            self.hosted.update(dict.fromkeys(rest, why))
            for eqn in rest:
                self._note(eqn.source, f"{eqn.primitive.name} {ON_HOST}: {why}")
                warn_of_fallback(eqn.primitive.name, f"it {ON_HOST}", UnsupportedKernel(why),
                                 eqn.source)
        elif not self.stores_literals:
            self.stores_literals = True
        else:
            return False
        self._reset()
        return True

    def _reset(self) -> None:
        """Another graph has other tensors."""
        self.is_new = True
        for known in (self.apart, self.alone, self.stored, self.tried):
            known.clear()

    def _note(self, source: Source | None, said: str) -> None:
        self.notes.append(f"{source or 'somewhere'}: {said}")

    def rules(self, rules: Mapping[Primitive, CallRule]) -> dict[Primitive, CallRule]:
        """The rules of calls, with those of sums for products that no template computes."""
        def plain(primitive: Primitive) -> CallRule:
            return lambda eqn, xs: (PLAIN if eqn in self.sums else rules)[primitive](eqn, xs)

        return {**rules, **{p: plain(p) for p in PLAIN if self.sums}}

    # --------------------------------------------------------------------------- schedules

    def is_stored(self, t: Tensor, schedule: Schedule) -> bool:
        return schedule.is_stored(t) or t in self.stored

    def slower(self, fused: FusedGemm, is_stored: Callable[[Tensor], bool]) -> str | None:
        """Why a product has no epilogue here; None where it may have one."""
        if fused.product in self.apart:
            return self.apart[fused.product]
        return next((self.alone[m.tensor] for m in fused.kernel.members
                     if m.tensor in self.alone), None)

    def applied(self, schedule: Schedule, items: Sequence[Tensor | Call]) -> Schedule:
        """The schedule with values in kernels of their own, and stored; `items` are in order."""
        if not self.alone and not self.stored:
            return schedule
        notes = list(schedule.notes)
        stored = {*schedule.stored, *self.stored}
        split = [s for s in schedule.steps if isinstance(s, Kernel)
                 and any(m.tensor in self.alone for m in s.members)]
        for step in split:
            stored |= {m.tensor for m in step.members}
            notes += [FusionNote(m.tensor, m.tensor.source, f"its kernel cannot be had: {why}")
                      for m in step.members if (why := self.alone.get(m.tensor))]

        def is_stored(t: Tensor) -> bool:
            return isinstance(t, Stored) or t in stored

        steps: list[Step] = []
        for step in schedule.steps:
            if not isinstance(step, Kernel):
                steps.append(step)
            elif step in split:
                steps += [_alone(m.tensor, is_stored) for m in step.members]
            else:  # what is known of its expressions may no longer be true
                steps.append(Kernel(step.domain, step.members))
        for t in [x for x in reversed(items) if isinstance(x, Tensor) and x in self.stored]:
            readers = [k for k, s in enumerate(steps) if t in _reads(s, is_stored)]
            if readers:
                why = f"a kernel that computes it cannot be had: {self.stored[t]}"
                notes.append(FusionNote(t, t.source, why))
                steps.insert(readers[0], _alone(t, is_stored))
        return replace(schedule, steps=steps, stored=stored, notes=notes)


def _alone(t: Tensor, is_stored: Callable[[Tensor], bool]) -> Kernel:
    """A kernel of one value, over the matrix that suits it; a long line is not in pieces."""
    nature = preferred_loop_nest(t, is_stored)
    domain, role = nature.domain, nature.role
    if domain.total is not None and role in ("full", "any_flag"):
        domain = Domain(1, domain.total)
    return Kernel(domain, [Member(t, role)])


def _reads(step: Step, is_stored: Callable[[Tensor], bool]) -> Iterable[Tensor]:
    if isinstance(step, Call):
        return step.operands
    return step.loads(step.builder(is_stored))
