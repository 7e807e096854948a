"""The text of a loop that is one kernel: places of its values, and the phases of its body.

A program keeps its carry in two places, or where a result collects it. What a loop over rows has
besides rows, each program computes for itself, in memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Any, Protocol

import numpy as np

from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import Call, ScanLoop, Tensor, WhileLoop
from functrans.lowering.passes.separable import SeparableRows
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.loops.iterations import (
    ProgramBody,
    carry_placements,
    save_of,
    stack_of,
)
from functrans.lowering.triton.loops.phases import PhaseOperand, Phases, Source, bytes_of
from functrans.lowering.triton.steps.spec import CopyStep, Launch, Pointer
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.lowering.triton.templates.notes import KernelNotes

__all__ = ["LoopScope", "LoopWriter"]

ALIGNMENT = 256
INT32_LIMIT = 2**31

Written = tuple[ProgramBody, Source]


class LoopScope(Protocol):
    """The program that a loop is part of."""

    @property
    def target(self) -> Target:
        """What it is compiled for."""

    @property
    def is_phase(self) -> bool:
        """Whether it is itself part of a loop in one kernel."""

    def apart(self, jaxpr: Jaxpr) -> Written:
        """The steps of a body that one program runs, and the modules of its launches."""

    def constant(self, index: int) -> Tensor:
        """A constant of the program, by number, as a value."""

    def memory_of(self, call: Call) -> set[Tensor]:
        """What a loop may read of its operands, and of what they are moved from."""

    def with_constant(self, value: np.ndarray[Any, Any]) -> Tensor:
        """A further constant of the program, as a value."""


class LoopWriter(Record, frozen=False, eq=False):
    """Writes the kernel of a loop. What is cut has `count` rows for each program."""

    scope: LoopScope
    rows: SeparableRows | None = None
    count: int = 1
    phases: Phases = field(default_factory=Phases)
    lines: list[str] = field(default_factory=list)
    indent: str = "    "
    bases: dict[tuple[Tensor | None, str], int] = field(default_factory=dict)  # None: workspace
    steps: dict[Tensor, int] = field(default_factory=dict)  # elements of a row, of what is cut
    room: int = 0  # bytes of the workspace of a program

    def emit(self, *lines: str) -> None:
        self.lines += [self.indent + line for line in lines]

    # --------------------------------------------------------------------------- places

    def base(self, t: Tensor | None, nbytes: int = 0) -> PhaseOperand:
        """A place in the part of a program of a tensor, or of its workspace."""
        def at(kind: str) -> str:
            name = f"b{self.bases.setdefault((t, kind), len(self.bases))}"
            return f"{name} + {_whole(nbytes, kind)}" if nbytes else name
        return PhaseOperand(at, None if t is None else MEMORY[t.dtype])

    def outer(self, tensors: Sequence[Tensor], cut: Iterable[bool],
              axis: int = 0) -> list[PhaseOperand]:
        """Operands or results of the loop, whose rows are along an axis where they are cut."""
        for t, is_cut in zip(tensors, cut, strict=True):
            if t.dtype not in MEMORY:
                raise UnsupportedKernel(f"a loop over {t.dtype}")
            step = math.prod(map(int, t.shape[axis + 1:])) if is_cut else 1
            if is_cut and self.steps.setdefault(t, step) != step:
                raise UnsupportedKernel("rows along two axes")
        return [self.base(t) for t in tensors]

    def reserve(self, nbytes: int, kind: str | None = None) -> PhaseOperand:
        """Memory of a program."""
        place = self.base(None, self.room)
        self.room += -(-nbytes // ALIGNMENT) * ALIGNMENT
        return PhaseOperand(place.at, kind)

    def element(self, t: Tensor, at: str) -> PhaseOperand:
        """One of the elements along the first axis."""
        step = math.prod(t.shape[1:])
        base = self.base(t)
        return PhaseOperand(lambda kind: f"{base.at(kind)} + {_wide(at, t)} * {step}", base.kind)

    def place(self, ins: Sequence[PhaseOperand], outs: Sequence[PhaseOperand],
              arena: PhaseOperand) -> Callable[[Pointer], PhaseOperand]:
        """Where the places of a body are."""
        def found(p: Pointer) -> PhaseOperand:
            if p.kind == "constant":
                base = _fixed(self.base(self.scope.constant(p.index)))
            else:
                base = arena if p.kind == "arena" else (ins if p.kind == "input" else outs)[p.index]
            if not p.offset:
                return base
            return PhaseOperand(lambda kind: f"{base.at(kind)} + {_whole(p.offset, kind)}",
                                base.kind,
                                base.is_fixed)
        return found

    def copy(self, target: PhaseOperand, source: PhaseOperand, t: Tensor) -> None:
        """The part of a program of a value moved."""
        size = t.size if t not in self.steps else self.steps[t] * self.count
        assert isinstance(size, int)
        if size:
            kind = MEMORY[t.dtype]
            self.emit(*self.phases.moved(target, source, size * bytes_of(kind)),
                      "tl.debug_barrier()")

    # --------------------------------------------------------------------------- loops

    def operands(self, call: ScanLoop) -> tuple[list[PhaseOperand], ...]:
        """Constants, the carry before and after, and elements of xs and ys `at` an iteration."""
        first, n = call.num_consts, call.num_carry
        rows = self.rows
        ins = [rows is not None and k in rows.split_inputs for k in range(len(call.body.invars))]
        outs = [rows is not None and k in rows.split_outputs for k in range(len(call.body.outvars))]
        xs, ys = call.operands[first + n:], call.results[n:]
        consts = list(map(_fixed, self.outer(call.operands[:first], ins[:first])))
        starts = self.outer(call.operands[first:first + n], ins[first:first + n])
        ends = self.outer(call.results[:n], outs[:n])
        self.outer(xs, ins[first + n:], 1)
        self.outer(ys, outs[n:], 1)
        return (consts, starts, ends, [self.element(t, "at") for t in xs],
                [self.element(t, "at") for t in ys])

    def use(self, launch: Launch) -> None:
        self.phases.use(launch)

    def scan(self, call: ScanLoop, length: int, body: ProgramBody, source: Source) -> None:
        consts, starts, ends, reads, writes = self.operands(call)
        ys = call.results[call.num_carry:]
        arena = self.reserve(body.arena_bytes)
        now, then, before, after = [], [], [], []
        for k, way in enumerate(carry_placements(call, body.updated)):
            t = call.results[k]
            kind = MEMORY[t.dtype]
            here, there = _variable("now", k, kind), _variable("next", k, kind)
            j = stack_of(call, k) if way == "stacked" else save_of(call, k)
            if way == "fixed":
                here = there = _fixed(starts[k])
            elif way == "updated":
                here = there = self.reserve(self._bytes(t), kind)
                self.copy(here, starts[k], t)
            elif way == "stacked":
                self.emit(f"now{k} = {starts[k].at(kind)}")
                before.append(f"next{k} = {writes[j].at(kind)}")
                writes[j] = there
                after.append(f"now{k} = next{k}")
            elif way == "saved":
                self.emit(f"at = {length - 1 if call.reverse else 0}",
                          f"now{k} = {writes[j].at(kind)}")
                self.copy(here, starts[k], t)
                later = self.element(ys[j], "(at - 1)" if call.reverse else "(at + 1)")
                before.append(f"next{k} = tl.where(t < {length - 1}, {later.at(kind)}, "
                              f"{ends[k].at(kind)})")
                writes[j] = here
                after.append(f"now{k} = next{k}")
            else:
                after.append(self._alternate(k, starts[k], t))
            now.append(here)
            then.append(there)
        place = self.place([*consts, *now, *reads], [*then, *writes], arena)
        # what is only copied does not wait for what is computed
        steps = sorted(body.steps, key=lambda s: not (isinstance(s, CopyStep)
                                                      and s.source.kind == "input"))
        phases = self.phases.lines(steps, source, place)
        self.emit(*self.phases.held, f"for t in tl.range(0, {length}, num_stages=1):")
        self.indent = "        "
        self.emit(f"at = {length - 1} - t" if call.reverse else "at = t", *before, *phases, *after)
        self.indent = "    "
        self.emit(*self.phases.released)
        for end, last, t in zip(ends, now, call.results):
            self.copy(end, last, t)

    def map(self, call: ScanLoop, length: int, body: ProgramBody, source: Source,
            most_bytes: int) -> int:
        """Iterations that know nothing of each other: the programs, each of which takes some.

        Their workspaces have at most so many bytes.
        """
        consts, _, _, reads, writes = self.operands(call)
        arena = self.reserve(body.arena_bytes)
        phases = self.phases.lines(body.steps, source,
                                   self.place([*consts, *reads], writes, arena))
        programs = max(1, min(length, most_bytes // max(self.room, 1)))
        self.emit(*self.phases.held)
        if programs == length:
            self.emit("at = row", *phases)
        else:
            self.emit(f"for at in tl.range(row, {length}, {programs}, num_stages=1):",
                      *["    " + line for line in phases])
        self.emit(*self.phases.released)
        return programs

    def while_loop(self, call: WhileLoop, holds: Written, body: Written) -> None:
        first, second = call.predicate_consts, call.predicate_consts + call.body_consts
        inputs = self.outer(call.operands, [False] * len(call.operands))
        ends = self.outer(call.results, [False] * len(call.results))
        arena = self.reserve(max(holds[0].arena_bytes, body[0].arena_bytes))
        going = self.reserve(1, MEMORY["bool"])
        now, then, after = [], [], []
        for k, t in enumerate(call.results):
            kind, is_fixed = MEMORY[t.dtype], call.body.outvars[k] is call.body.invars[
                call.body_consts + k]
            if is_fixed:
                here = there = _fixed(inputs[second + k])
            elif body[0].updated.get(k) == call.body_consts + k:
                here = there = self.reserve(self._bytes(t), kind)
                self.copy(here, inputs[second + k], t)
            else:
                here, there = _variable("now", k, kind), _variable("next", k, kind)
                after.append(self._alternate(k, inputs[second + k], t))
            now.append(here)
            then.append(there)
        ask = [*self.phases.lines(holds[0].steps, holds[1],
                                  self.place([*map(_fixed, inputs[:first]), *now], [going], arena)),
               f"going = tl.load({going.at('u8')})"]
        place = self.place([*map(_fixed, inputs[first:second]), *now], then, arena)
        phases = self.phases.lines(body[0].steps, body[1], place)
        self.emit(*self.phases.held, *ask, "while going != 0:")
        self.indent = "        "
        self.emit(*phases, *after, *ask)
        self.indent = "    "
        self.emit(*self.phases.released)
        for end, last, t in zip(ends, now, call.results, strict=True):
            self.copy(end, last, t)

    def _alternate(self, k: int, start: PhaseOperand, t: Tensor) -> str:
        """Two places of a value of the carry, and the line that exchanges them."""
        kind = MEMORY[t.dtype]
        for name in ("now", "next"):
            self.emit(f"{name}{k} = {self.reserve(self._bytes(t), kind).at(kind)}")
        self.copy(_variable("now", k, kind), start, t)
        return f"now{k}, next{k} = next{k}, now{k}"

    def _bytes(self, t: Tensor) -> int:
        size = t.size if t not in self.steps else self.steps[t] * self.count
        assert isinstance(size, int)
        return size * bytes_of(MEMORY[t.dtype])

    # --------------------------------------------------------------------------- kernel

    def launches(self, programs: int) -> Launches:
        """The launch of the loop that has been written."""
        workspace = PartialResults(programs, -(-self.room // 4), "i32")
        places: dict[str, tuple[KernelOperand, int]] = {}
        head, arguments = [], []
        for (t, kind), number in self.bases.items():
            arguments.append(pointer(f"p{number}", kind))
            places[f"p{number}"] = (workspace if t is None else t, 0)
            step = self.room // bytes_of(kind) if t is None else self.steps.get(t, 0) * self.count
            row = "tl.cast(row, tl.int64)" if programs * step >= INT32_LIMIT else "row"
            head.append(f"    b{number} = p{number}" + (f" + {row} * {step}" if step else ""))
        names = ", ".join(a.name for a in arguments)
        text = "\n".join([f"@triton.jit\ndef loop({names}):", "    row = tl.program_id(0)",
                          *head, *self.lines, ""])
        kernel = TemplateKernel("loop", self.phases.module(text), tuple(arguments),
                                (programs, 1, 1),
                                self.phases.warps, self.phases.stages, fuses=False,
                                notes=KernelNotes(phases=tuple(self.phases.launches)))
        return Launches([kernel], places)


def _variable(name: str, k: int, kind: str) -> PhaseOperand:
    def at(wanted: str) -> str:
        if wanted != kind:
            raise UnsupportedKernel("a value of the carry as one of another type")
        return f"{name}{k}"
    return PhaseOperand(at, kind)


def _fixed(base: PhaseOperand) -> PhaseOperand:
    return replace(base, is_fixed=True)


def _whole(nbytes: int, kind: str) -> int:
    if nbytes % bytes_of(kind):
        raise UnsupportedKernel("a place between elements")
    return nbytes // bytes_of(kind)


def _wide(index: str, t: Tensor) -> str:
    assert isinstance(t.size, int)
    return f"tl.cast({index}, tl.int64)" if t.size >= INT32_LIMIT else index
