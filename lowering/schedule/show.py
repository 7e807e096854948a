"""A schedule as text: what is computed together, from whose lines, what is stored, why not more.

    kernel 1: 512 rows of 64, 2 loops
      reduce_row: max f32[512]  model.py:7  y = x - x.max(1, keepdims=True)
      full: f32[512, 64] stored  model.py:7  y = x - x.max(1, keepdims=True)
      reads f32[512, 64]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from functrans.core.dims import Size
from functrans.core.source import Source
from functrans.lowering.loops.tensor import Reduce, ScatterTensor, Tensor
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of

__all__ = ["domain_text", "show", "show_notes", "tensor_text"]


def show(schedule: Schedule, lines: bool = True) -> str:
    """The steps in order, then the reasons for what is not computed together.

    With `lines`, what every value is for: the line of the user's code that asked for it.
    """
    shown = _Shown(schedule, lines)
    return "\n".join([*shown.steps(schedule.steps, ""), *show_notes(schedule.notes, lines)])


def show_notes(notes: Iterable[FusionNote], lines: bool = True) -> list[str]:
    """One line a reason; equal ones once."""
    return list(dict.fromkeys(f"apart: {tensor_text(n.tensor)}: {n.reason}"
                              f"{_place(n.source) if lines else ''}" for n in notes))


class _Shown:
    def __init__(self, schedule: Schedule, lines: bool) -> None:
        self.schedule = schedule
        self.lines = lines

    def steps(self, steps: Sequence[Step], indent: str) -> list[str]:
        return [indent + line for number, step in enumerate(steps, 1)
                for line in self.step(number, step)]

    def step(self, number: int, step: Step) -> list[str]:
        if isinstance(step, Kernel):
            return self.kernel(number, step)
        results = ", ".join(map(tensor_text, step.results)) or "no results"
        head = f"{step.name} {number}: {results}{self.place(step.source)}"
        if isinstance(step, FusedGemm):
            return [head, *(f"  {self.member(m)}" for m in step.kernel.members)]
        return [head, *(self.steps(step.steps, "  ") if isinstance(step, Chain) else [])]

    def kernel(self, number: int, kernel: Kernel) -> list[str]:
        s = kernel.builder(self.schedule.is_stored)
        stages = stages_of(kernel, {m.tensor: kernel.element(s, m) for m in kernel.members})
        loops = len({stages[m.tensor] for m in kernel.members if m.role != "row"})
        reads = sorted({tensor_text(t) for t in kernel.loads(s)})
        return [f"kernel {number}: {domain_text(kernel)}, {loops} {_plural('loop', loops)}",
                *(f"  {self.member(m)}" for m in kernel.members),
                *([f"  reads {', '.join(reads)}"] if reads else [])]

    def member(self, m: Member) -> str:
        kept = " stored" if m.tensor in self.schedule.stored else ""
        return f"{m.role}: {tensor_text(m.tensor)}{kept}{self.place(m.tensor.source)}"

    def place(self, source: Source | None) -> str:
        return _place(source) if self.lines else ""


def _place(source: Source | None) -> str:
    """The user's line: `  model.py:7  y = x + 1`; nothing where it is not known."""
    if source is None:
        return ""
    first = source.text.splitlines()[:1]
    return "  " + "  ".join([f"{Path(source.filename).name}:{source.line}", *first])


def domain_text(kernel: Kernel) -> str:
    d = kernel.domain
    if d.total is not None:
        return f"{d.total} {_plural('element', d.total)} in pieces of {d.row}"
    parts = "" if _is_one(d.parts) else f" in {d.parts} {_plural('part', d.parts)}"
    return f"{d.rows} {_plural('row', d.rows)} of {d.row}{parts}"


def tensor_text(t: Tensor) -> str:
    """`sum f32[3, 4]`: what folds or scatters, the dtype and the shape."""
    op = f"{t.op} " if isinstance(t, Reduce) else ""
    op = f"scatter_{t.op} " if isinstance(t, ScatterTensor) else op
    return f"{op}{t.dtype}[{', '.join(map(str, t.shape))}]"


def _plural(word: str, n: Size) -> str:
    return word if _is_one(n) else f"{word}s"


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1
