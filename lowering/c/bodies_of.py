"""The functions of a program in C besides its main one: of which steps they are, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from functrans.core.record import Record
from functrans.lowering.c.program import FunctionWriter
from functrans.lowering.loops.tensor import Branch, Call, FunctionCall, ScanLoop, WhileLoop

__all__ = ["BodyOf", "bodies_of", "called_by"]


class BodyOf(Record, frozen=False, eq=False):
    """The body of a loop or a branch, or a function; `place` is the name of what calls it.

    It runs `runs` times in a run of the program, as far as lengths of loops are known; `per` says
    of what these are where they are not: an `iteration`, or a `call` of a branch.
    """

    place: str
    writer: FunctionWriter
    runs: int = 0
    per: str = ""
    callers: list[tuple[FunctionWriter, int]] = field(default_factory=list)
    """The steps that call it, by the function that they are of and their numbers."""


def bodies_of(main: FunctionWriter) -> list[BodyOf]:
    """All of them, each once, those of a loop after the loop."""
    found: dict[FunctionWriter, BodyOf] = {}
    _visit(main, 1, "", found)
    return list(found.values())


def _visit(writer: FunctionWriter, runs: int, per: str,
           found: dict[FunctionWriter, BodyOf]) -> None:
    for number, step in enumerate(writer.schedule.steps):
        if not isinstance(step, Call):
            continue
        times, unit = _times(step)
        for body in called_by(writer, step):
            one = found.setdefault(body, BodyOf(step.name, body))
            if (writer, number) not in one.callers:
                one.callers.append((writer, number))
            one.runs += runs * times
            one.per = one.per or unit or per
            _visit(body, runs * times, unit or per, found)


def _times(step: Call) -> tuple[int, str]:
    if isinstance(step, ScanLoop):
        return (step.length, "") if isinstance(step.length, int) else (1, "iteration")
    if isinstance(step, WhileLoop):
        return 1, "iteration"
    return 1, "call" if isinstance(step, Branch) else ""


def called_by(writer: FunctionWriter, step: Call) -> Iterator[FunctionWriter]:
    """The functions of a step."""
    if isinstance(step, FunctionCall):
        yield writer.module.body(step.body)
    else:
        yield from writer.bodies.get(step, ())
