"""Collectives of a program of a GPU beside its kernels: their order, and the steps that wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from functrans.core.record import Record
from functrans.distributed.gpus import FEW_PROGRAMS, PROGRAMS_BESIDE
from functrans.lowering.loops.tensor import Call, Tensor, item_size
from functrans.lowering.rules.collectives import REDUCTIONS
from functrans.lowering.schedule.communication import (
    BESIDE,
    CommunicatedStep,
    Overlap,
    beside_computation,
    overlapped_order,
    with_gathered_sums,
)
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.group import Step as ScheduledStep
from functrans.lowering.schedule.show import flops_of
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.joining import changed_by
from functrans.lowering.triton.kernels.kernel_source import KernelSource, Launches
from functrans.lowering.triton.libraries.collectives import CollectiveCall
from functrans.lowering.triton.steps.spec import (
    CollectiveSteps,
    Launch,
    LibraryStep,
    Step,
    WaitStep,
)
from functrans.primitives.collective import all_gather_p

__all__ = ["Communication", "in_overlapped_order", "target_beside_collectives"]

Written = list[KernelSource] | Call


def in_overlapped_order(schedule: Schedule, written: Sequence[Written],
                        accessed: Sequence[Collection[Any]], calls: Mapping[Call, Launches],
                        target: Target) -> tuple[Schedule, list[Written]]:
    """A schedule and its launches, in an order in which collectives run beside the kernels."""
    if not any(isinstance(w, CollectiveCall) for w in written):
        return schedule, list(written)
    order = overlapped_order(_described(schedule, written, accessed, calls, target))
    return (replace(schedule, steps=[schedule.steps[k] for k in order]),
            [written[k] for k in order])


def target_beside_collectives(schedule: Schedule, target: Target) -> Target:
    """The target of kernels that have as many programs as there are places for.

    Collectives beside them take some of these: a program that has none would wait for the others.
    """
    if not any(isinstance(step, CollectiveCall) for step in schedule.steps):
        return target
    return replace(target, multiprocessors=max(1, target.multiprocessors - PROGRAMS_BESIDE))


class Communication(Record, eq=False):
    """Which steps of a program are given to the devices' links together, and who waits for them."""

    overlap: Overlap = field(default_factory=lambda: Overlap([], {}))
    calls: Mapping[int, CollectiveCall] = field(default_factory=dict)

    @staticmethod
    def of(schedule: Schedule, written: Sequence[Written], accessed: Sequence[Collection[Any]],
           calls: Mapping[Call, Launches], target: Target) -> Communication:
        """That of a schedule in its final order."""
        found = {k: w for k, w in enumerate(written) if isinstance(w, CollectiveCall)}
        if not found:
            return Communication()
        return Communication(beside_computation(
            _described(schedule, written, accessed, calls, target)), found)

    def touched_while_waiting(self, count: int) -> dict[int, list[Tensor]]:
        """Of a program of `count` steps, by step the operands and results that are used until then.
        """
        found: dict[int, list[Tensor]] = {}
        begun = 0
        for k, last in sorted({**self.overlap.waits, count - 1: len(self.overlap.groups) - 1
                               }.items()):
            for group in self.overlap.groups[begun:last + 1]:
                for j in group:
                    call = self.calls[j]
                    found.setdefault(max(k, j), []).extend([*call.operands, *call.results])
            begun = max(begun, last + 1)
        return found

    def arranged(self, steps: Sequence[Step], begins: Sequence[int]) -> list[Step]:
        """The steps of a program, of which those of step k of the schedule begin at `begins[k]`."""
        if not self.calls:
            return list(steps)
        found = list(steps[:begins[0]])
        last_of = {group[-1]: number for number, group in enumerate(self.overlap.groups)}
        ends = [*begins[1:], len(steps)]
        for k, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if k in self.overlap.waits:
                found.append(WaitStep(self.overlap.waits[k]))
            if k not in self.calls:
                found += map(_leaving_room, steps[begin:end]) \
                    if k in self.overlap.under_way else steps[begin:end]
            elif k in last_of:
                group = self.overlap.groups[last_of[k]]
                parts = [s for j in group for s in steps[begins[j]:ends[j]]
                         if isinstance(s, LibraryStep)]
                if last_of[k] in self.overlap.beside:
                    parts = list(map(_with_few_programs, parts))
                found.append(CollectiveSteps(last_of[k], tuple(parts)))
        return found

    @property
    def waits_for_all(self) -> list[Step]:
        """What has to come before a step that may read any result."""
        return [WaitStep(len(self.overlap.groups) - 1)] if self.calls else []


def _with_few_programs(step: LibraryStep) -> LibraryStep:
    kind, key, *rest = step.numbers
    return replace(step, numbers=(kind, key + FEW_PROGRAMS, *rest))


def _leaving_room(step: Step) -> Step:
    """A launch without the programs that would wait for the multiprocessors of a collective.

    Programs that walk over tiles are as many as there are places for: one that has none begins when
    another is through, so that the kernel takes twice as long.
    """
    if not isinstance(step, Launch) or not step.walkers:
        return step
    first, second, third = step.grid
    fewer = first - step.walkers * PROGRAMS_BESIDE
    return replace(step, grid=(fewer, second, third)) if fewer > 0 else step


def _described(schedule: Schedule, written: Sequence[Written],
               accessed: Sequence[Collection[Any]], calls: Mapping[Call, Launches],
               target: Target) -> list[CommunicatedStep]:
    return with_gathered_sums([_step(*step, schedule, calls, target)
                               for step in zip(schedule.steps, written, accessed, strict=True)])


def _step(step: ScheduledStep, written: Written, touched: Collection[Any], schedule: Schedule,
          calls: Mapping[Call, Launches], target: Target) -> CommunicatedStep:
    changed = list(changed_by(step))
    if isinstance(written, CollectiveCall):
        (x,), (out,) = written.operands, written.results
        nbytes = _nbytes(x)
        primitive = written.eqn.primitive
        # a sum takes twice what its operand or its result takes, where that is divided
        sent = max(nbytes, _nbytes(out)) // (1 if nbytes == _nbytes(out) else 2)
        return CommunicatedStep([x, out], changed, BESIDE.seconds(sent), nbytes, sent,
                                primitive is all_gather_p, primitive in REDUCTIONS)
    known, rates = target.measured, target.measured.rates
    flops: Any = flops_of(step, schedule.is_stored)
    rate = known.all_rate
    if isinstance(written, Call):
        launches = calls.get(written)
        if launches is not None:
            flops = sum(k.flops or 0 for k in launches.kernels)
            wide = any(getattr(t, "dtype", "") == "f32" for t in written.operands)
            rate = rates["tf32" if wide else "bf16"] * target.multiprocessors
    nbytes = sum(_nbytes(t) for t in touched)
    amount = flops if isinstance(flops, int) else 0
    return CommunicatedStep(touched, changed, 1e-9 * max(
        known.launch, nbytes * known.byte, amount / rate))


def _nbytes(t: Any) -> int:
    nbytes = getattr(t, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    size = getattr(t, "size", 0)
    return size * item_size(t.dtype) if isinstance(size, int) else 0
