"""How the steps of a program in C came about: its schedule made again, with a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from functrans.lowering.c.program import FunctionWriter, ProgramText
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.report import ScheduleRun
from functrans.lowering.schedule.schedule_log import ScheduleLog

__all__ = ["schedule_runs"]

_PLACE: Final = re.compile(r"([bwg])\[(\d+)\]|\(arena \+ (\w+)\)")
_KINDS: Final = {"b": "input", "w": "result", "g": "constant"}


def schedule_runs(program: ProgramText) -> list[ScheduleRun]:
    """The steps from the graph of a program to its kernels and their memory."""
    main, log = program.main, ScheduleLog()
    log.knows(main.graph)
    main.module.forms.schedule_again(main.key, log)
    steps = {b.key: f", steps {b.first}-{b.last}" for b in main.blocks
             if isinstance(b.key, Tensor)}
    places = {t: f"{_place(main.where[t])}{steps.get(t, '')}"
              for t in _made(main) if t in main.where}
    log.placed(main.schedule, places, _told(program, main))
    return log.runs


def _made(main: FunctionWriter) -> list[Tensor]:
    """What steps put into memory."""
    given = {*main.graph.inputs, *[t for t, _ in main.graph.constants]}
    return [t for t in main.where if t not in given]


def _told(program: ProgramText, main: FunctionWriter) -> Iterator[tuple[Tensor, str]]:
    for t in main.aliases.in_place:
        yield t, "it is updated in place"
    for k, alias in enumerate(program.aliases):
        if alias >= 0:
            yield main.graph.outputs[k], f"it is in the memory of input {alias}, which was donated"
    for t, reason in program.copied:
        yield t, f"what it updates is copied before: {reason}"


def _place(text: str) -> str:
    found = _PLACE.fullmatch(text)
    if found is None:
        return "memory of its own"
    return f"arena + {found[3]}" if found[3] else f"{_KINDS[found[1]]} {found[2]}"
