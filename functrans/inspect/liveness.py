"""Which temporaries a program needs, who reads them, and when they are most, for which line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.inspect.report import Line, Peak, Value, line_of
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.memory import Block
from functrans.lowering.schedule.group import FusionNote
from functrans.lowering.schedule.show import tensor_text

__all__ = ["kept_text", "note_text", "peak_of"]


def peak_of(blocks: Sequence[Block[Any]], names: Sequence[str],
            lines: Sequence[Line | None]) -> Peak | None:
    """The peak of an arena; `names` and `lines` are those of the steps, where they are known.

    None where nothing is needed, or not known before sizes are.
    """
    if not blocks or not all(isinstance(b.nbytes, int) for b in blocks):
        return None
    steps = range(1 + max(b.last for b in blocks))
    live = [sum(int(b.nbytes) for b in blocks if b.first <= k <= b.last)
            for k in steps]
    k = max(steps, key=live.__getitem__)
    values = [Value(_type(b.key), int(b.nbytes), _line(b.key) or _get(lines, b.first))
              for b in blocks if b.first <= k <= b.last]
    values.sort(key=lambda v: -v.nbytes)
    # what the step at the peak makes is what brings the memory there
    made = [_line(b.key) for b in blocks if b.first == k]
    line = next(filter(None, made), None) or _get(lines, k) or values[0].line
    name = names[k] if k < len(names) else ""
    return Peak(name, live[k], line, tuple(values))


def note_text(note: FusionNote) -> str:
    """Why a value is not computed in the kernel of another."""
    line = line_of(note.source)
    place = f"{line}: " if line else ""
    return f"{place}{tensor_text(note.tensor)} is computed apart: {note.reason}"


def kept_text(t: Tensor, readers: Sequence[str]) -> str:
    """That a value goes through memory, since these steps read it."""
    line = line_of(t.source)
    place = f"{line}: " if line else ""
    return (f"{place}{tensor_text(t)} is in memory, where {' and '.join(readers)} "
            f"find{'s' * (len(readers) == 1)} it")


def _type(key: object) -> str:
    return tensor_text(key) if isinstance(key, Tensor) else "room of a kernel"


def _line(key: object) -> Line | None:
    return line_of(key.source) if isinstance(key, Tensor) else None


def _get(lines: Sequence[Line | None], k: int) -> Line | None:
    return lines[k] if k < len(lines) else None
