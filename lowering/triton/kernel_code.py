"""A kernel in Triton, for who looks at it: by line, by loop and as machine code."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.lowering.equation_places import EquationPlaces, with_all_equations
from functrans.lowering.loops.tensor import Call, ScanLoop, Tensor, WhileLoop
from functrans.lowering.report import CodeValue, LoopLine, line_of
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.loop_nest import IN_SEQUENCE, OPEN, LoopNotes, nest_of
from functrans.lowering.schedule.loop_work import LoopWork, work_of_call
from functrans.lowering.schedule.show import domain_text
from functrans.lowering.triton.lines import body_of, values_by_line
from functrans.lowering.triton.steps.spec import LANES, Launch
from functrans.lowering.triton.templates.notes import KernelNotes

__all__ = ["LaunchCode"]

Known = dict[tuple[str, str], tuple[CodeValue, ...]]


class LaunchCode(Record, eq=False):
    """The source of a kernel and its launches, which do the same for several parts of a program.

    `arguments` are the inputs of the program by number.
    """

    source: str
    launches: Sequence[Launch]
    places: EquationPlaces
    equations: tuple[int, ...]
    arguments: Mapping[Tensor, int]

    @property
    def kernel(self) -> str:
        return self.launches[0].kernel

    def _value(self, t: Tensor, origins: Mapping[Tensor | Call, Equation]) -> CodeValue:
        return self.places.value(t, origins, self.arguments)

    @property
    def operands(self) -> dict[str, CodeValue]:
        """The values that pointers are of, in the first launch."""
        notes = self.launches[0].notes
        signature = self.source.partition(f"def {self.kernel}(")[2].partition(")")[0].split(", ")
        return {v.name: self._value(v.values[0], notes.origins) for v in notes.values
                if not v.function and v.name in signature}

    @cached_property
    def _known(self) -> Known:
        found: dict[tuple[str, str], dict[CodeValue, None]] = {}
        for launch in self.launches:
            self._collect(launch.notes, "", ChainMap({}, launch.notes.origins), found)  # type: ignore[arg-type]
        return {key: tuple(values) for key, values in found.items()}

    def _collect(self, notes: KernelNotes, function: str, origins: Mapping[Any, Equation],
                 found: dict[tuple[str, str], dict[CodeValue, None]]) -> None:
        for v in notes.values:
            of = found.setdefault((v.function or function, v.name), {})
            of.update(dict.fromkeys([self._value(t, origins) for t in v.values]))
        for name, launch in notes.phases:
            self._collect(launch.notes, name, launch.notes.origins, found)

    def by_line(self) -> list[tuple[CodeValue, ...]]:
        """For each line of the source the values that it computes or moves."""
        found = values_by_line(self.source, self.kernel, self._known)
        return with_all_equations(found, self.equations, self.places.jaxpr,
                                  body_of(self.source, self.kernel))

    @cached_property
    def work(self) -> LoopWork:
        """The arithmetic of loops in a launch, of which the launch itself does not tell."""
        found = LoopWork()
        for step in self.launches[0].notes.steps:
            if isinstance(step, (ScanLoop, WhileLoop, LaneLoop)) or getattr(
                    step, "over_lanes", False):
                found = found + work_of_call(step)
        return found

    # --- loops

    def loops(self) -> list[LoopLine]:
        """Its loops, and what is computed in each; of kernels side by side one after the other."""
        first = self.launches[0]
        found = []
        for step in first.notes.steps:
            if len(first.notes.steps) > 1 and isinstance(step, Kernel):
                found.append(LoopLine(0, "note", f"programs for {domain_text(step)}"))
            found += self._nest(step, first, first.notes, 0)
        return found

    def _nest(self, step: Any, launch: Launch, notes: KernelNotes, depth: int) -> list[LoopLine]:
        if notes.phases and isinstance(step, (ScanLoop, WhileLoop)):
            return self._phases(step, launch, notes, depth)
        how = self._notes(launch, notes)
        if "lanes" in notes.tiles and isinstance(step, (ScanLoop, WhileLoop)):
            head = how.loop(depth, "lane", notes.tiles["lanes"])
            return [head, *nest_of(step, how, depth + 1)]
        return nest_of(step, how, depth)

    def _phases(self, step: ScanLoop | WhileLoop, launch: Launch, notes: KernelNotes,
                depth: int) -> list[LoopLine]:
        """A loop whose body is launches of its own: the loops of each."""
        programs = launch.grid[0]
        value = self._of_equation(step.eqn) if hasattr(step, "eqn") else None
        found = []
        if programs > 1:
            found.append(LoopLine(depth, "loop", "", "rows, or iterations, a program each",
                                  "program", programs))
            depth += 1
        length = step.length if isinstance(step, ScanLoop) else None
        how = f"{IN_SEQUENCE}, in one kernel" if length is not None else OPEN
        found.append(LoopLine(depth, "loop", "", how, "t", length,
                              () if value is None else (value,)))
        for _, phase in notes.phases:
            inner = replace(phase.notes, origins=ChainMap({}, phase.notes.origins, notes.origins))  # type: ignore[arg-type]
            for part in phase.notes.steps:
                found += self._nest(part, phase, inner, depth + 1)
        return found

    def _notes(self, launch: Launch, notes: KernelNotes) -> LoopNotes:
        return LoopNotes(lambda t: self._value(t, notes.origins), notes.is_stored,
                         _how(launch, notes), self._of_equation)

    def _of_equation(self, eqn: Equation) -> CodeValue:
        path = self.places.path(eqn)
        return CodeValue(str(eqn.outvars[0].aval) if eqn.outvars else "",
                         None if path is None else path[0], line_of(eqn.source),
                         () if path is None else path[1:])


def _how(launch: Launch, notes: KernelNotes) -> dict[str, str]:
    """How the loops of a kernel are done, by their variables."""
    tiles = notes.tiles
    programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
    each = "in one program" if programs == 1 else f"over {programs} programs"
    found = dict.fromkeys(("b", "batch", "head", "query", "image", "group", "at0", "feature"), each)
    if "lane" in tiles:
        threads = launch.kernel == LANES
        found["lane"] = "a lane a thread" if threads else f"tiles of {tiles['lane']}, {each}"
    for variable in ("o", "m"):
        if variable in tiles:
            found[variable] = f"tiles of {tiles[variable]}, {each}"
        else:
            found[variable] = each
    for variable in ("i", "n"):
        if variable in tiles:
            found[variable] = f"tiles of {tiles[variable]}, over the {32 * launch.warps} threads"
    if "k" in tiles:
        found["k"] = f"a reduction, {tiles['k']} at a time"
    return found
