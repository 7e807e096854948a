"""The functions of a step in C, for who looks at it: by line, by loop and as machine code."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.lowering.c.assembly import assembly_lines
from functrans.lowering.c.expressions import KernelText
from functrans.lowering.c.lines import body_of, values_by_line
from functrans.lowering.c.program import FunctionWriter
from functrans.lowering.equation_places import EquationPlaces, with_all_equations
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.report import CodeValue, LoopLine, line_of
from functrans.lowering.rules.lanes import LaneLoop
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.group import Step
from functrans.lowering.schedule.loop_nest import LoopNotes, nest_of

__all__ = ["StepCode", "code_of_step"]


class StepCode(Record, eq=False):
    """The text of a step: its own function, then those of a chain, each with its values by name."""

    writer: FunctionWriter
    step: Step
    functions: Sequence[tuple[str, Mapping[str, tuple[Tensor, ...]]]]
    program: str
    places: EquationPlaces
    equations: tuple[int, ...]
    text: KernelText | None = None
    origins: Mapping[Tensor | Call, Equation] = field(default_factory=dict)

    @property
    def function(self) -> str:
        """The name of its own function; the empty text where it has none."""
        return self.functions[0][0] if self.functions else ""

    @cached_property
    def definitions(self) -> list[str]:
        return [_definition(self.program, name) for name, _ in self.functions]

    @property
    def source(self) -> str:
        return "\n\n".join(self.definitions)

    def value(self, t: Tensor) -> CodeValue:
        """A value as one of the program."""
        jaxpr = self.writer.graph.jaxpr
        if self.writer.key is not None and jaxpr is not None and t in self._body_inputs:
            found = self.places.input_of_body(t, jaxpr.invars[self._body_inputs[t]])
            if found is not None:
                return found
        return self.places.value(t, self.origins, self._arguments)

    @cached_property
    def _body_inputs(self) -> dict[Tensor, int]:
        return {x: k for k, x in enumerate(self.writer.graph.inputs)}

    @cached_property
    def _arguments(self) -> dict[Tensor, int]:
        """The inputs of the program by number; a body has others."""
        return self._body_inputs if self.writer.key is None else {}

    @property
    def operands(self) -> dict[str, CodeValue]:
        """The values that pointers are of."""
        known = self.functions[0][1] if self.functions else {}
        return {name: self.value(values[0]) for name, values in known.items() if name[0] == "p"}

    def by_line(self) -> list[tuple[CodeValue, ...]]:
        """For each line of the source the values that it computes or moves."""
        found: list[tuple[CodeValue, ...]] = []
        for text, (_, known) in zip(self.definitions, self.functions, strict=True):
            if found:
                found.append(())
            found += values_by_line(text, {name: tuple(map(self.value, values))
                                           for name, values in known.items()})
        return with_all_equations(found, self.equations, self.places.jaxpr, body_of(self.source))

    def instructions(self) -> list[tuple[str, int]]:
        """The machine code, each instruction with the line of the source that it is for."""
        found: list[tuple[str, int]] = []
        begin = 0
        for k, ((name, _), text) in enumerate(zip(self.functions, self.definitions, strict=True)):
            lines = assembly_lines(self.program, name, text)
            found += [(f"{name}:", -1)] if k else []
            found += [(code, line + begin if line >= 0 else -1) for code, line in lines]
            begin += text.count("\n") + 2
        return found

    def loops(self) -> list[LoopLine]:
        """Its loops, and what is computed in each."""
        schedule = self.writer.schedule
        notes = LoopNotes(self.value, schedule.is_stored, self._how(), self._of_equation)
        return nest_of(self.step, notes)

    def _of_equation(self, eqn: Equation) -> CodeValue:
        path = self.places.path(eqn)
        return CodeValue(str(eqn.outvars[0].aval) if eqn.outvars else "",
                         None if path is None else path[0], line_of(eqn.source),
                         () if path is None else path[1:])

    def _how(self) -> dict[str, str]:
        text, isa = self.text, self.writer.module.isa
        threads = "over threads"
        found = {"b": threads, "m": f"in blocks, {threads}", "n": "in blocks, in vectors",
                 "image": threads, "batch": threads, "block": f"blocks of rows, {threads}"}
        if isinstance(self.step, LaneLoop):
            found["lane"] = f"{self.writer.lanes[self.step].about} ({isa.name})"
        if text is not None:
            wide = f"{text.lanes} at once, in vectors" if text.lanes > 1 else "one at a time"
            found |= {"o": "in one thread" if text.serial else threads, "i": wide}
        return found


def code_of_step(w: FunctionWriter, number: int, program: str, places: EquationPlaces,
                 equations: tuple[int, ...]) -> StepCode:
    """The code of a step of a function."""
    step, names = w.schedule.steps[number], w.module.functions
    places.learn(w.graph.origins)
    if isinstance(step, Chain):
        own = w.chains[step]
        functions: list[tuple[str, dict[str, tuple[Tensor, ...]]]] = [
            (own.name, {f"p{k}": (t,) for k, t in enumerate(own.operands)})]
        functions += [(names[t.text], t.values) for t in own.texts
                      if t is not None and t.text in names]
        return StepCode(w, step, list({f[0]: f for f in functions}.values()), program, places,
                        equations, origins=w.graph.origins)
    if isinstance(step, LaneLoop):
        lanes = w.lanes[step]
        known = [(names[lanes.text], lanes.values)] if lanes.text in names else []
        return StepCode(w, step, known, program, places, equations,
                        origins=ChainMap({}, lanes.origins, w.graph.origins))
    text = w.epilogues.get(step) if isinstance(step, Call) else w.texts[number]
    known = [(names[text.text], text.values)] if text is not None and text.text in names else []
    return StepCode(w, step, known, program, places, equations, text, w.graph.origins)


def _definition(program: str, function: str) -> str:
    """The text of a function of a program."""
    found = re.search(rf"^static [^\n]*\b{function}\(.*?^}}$", program, re.DOTALL | re.MULTILINE)
    return found.group() if found else ""
