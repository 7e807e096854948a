"""What the steps of a schedule compute, for who looks at a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.source import Source
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.tensor import (
    Call,
    Conv,
    Gemm,
    Reduce,
    ScatterTensor,
    Tensor,
    item_size,
    tensor_text,
)
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import FusionNote, Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of

__all__ = ["domain_text", "equations_of_steps", "flops_of", "members_of", "moved_bytes",
           "nbytes_of", "show", "show_notes", "tensor_text"]


# --- Which equations the steps of a schedule compute

def equations_of_steps(graph: Graph, schedule: Schedule) -> list[tuple[Equation, ...]]:
    """The equations of each step; some are computed in several, movements often in none."""
    made: set[Tensor] = {*schedule.stored, *graph.inputs}
    for step in schedule.steps:
        if isinstance(step, Call):
            made.update(step.results)
    found = []
    for step in schedule.steps:
        computed: list[Tensor | Call] = [*_calls(step), *_computed(_roots(step), made)]
        origins = [graph.origins.get(x) for x in computed]
        found.append(tuple(dict.fromkeys([e for e in origins if e is not None])))
    return found


def members_of(step: Step) -> list[Tensor]:
    """The values that the kernels of a step compute."""
    if isinstance(step, Kernel):
        return [m.tensor for m in step.members]
    if isinstance(step, Chain):
        return [t for s in step.steps for t in members_of(s)]
    return members_of(step.kernel) if isinstance(step, WithEpilogue) else []


def _calls(step: Step) -> list[Call]:
    if isinstance(step, Chain):
        return [call for s in step.steps for call in _calls(s)]
    return [step] if isinstance(step, Call) else []


def _roots(step: Step) -> list[Tensor]:
    if isinstance(step, Chain):
        return [t for s in step.steps for t in _roots(s)]
    results = list(step.results) if isinstance(step, Call) else []
    product = [step.product] if isinstance(step, WithEpilogue) else []
    return [*product, *results, *members_of(step)]


def _computed(roots: Iterable[Tensor], made: set[Tensor]) -> set[Tensor]:
    """Some tensors, and what is computed on the way to them from what is in memory."""
    seen: set[Tensor] = set()
    waiting = list(roots)
    while waiting:
        t = waiting.pop()
        if t not in seen:
            seen.add(t)
            waiting += [x for x in t.operands if x not in made]
    return seen


# --- What a step of a schedule computes and moves, for who looks at a program

NO_WORK = frozenset({"bitcast", "bits_of_half", "const", "convert", "half_of_bits", "index", "load",
                     "local", "round_to", "select"})


def flops_of(step: Step, is_stored: Callable[[Tensor], bool]) -> Size:
    """The arithmetic of a step: each function of an element counts as one, a fold as one more.

    A multiply-add counts as both; 0 of calls whose work is not known.
    """
    if isinstance(step, Kernel):
        return _of_kernel(step, is_stored)
    if isinstance(step, Chain):
        total: Size = 0
        inner = {*step.inner}
        for s in step.steps:
            total = total + flops_of(s, lambda t: is_stored(t) or t in inner)
        return total
    if isinstance(step, WithEpilogue):
        return _of_call(step) + _of_kernel(step.kernel, is_stored)
    return _of_call(step)


def _of_call(call: Call) -> Size:
    if isinstance(call, Gemm):
        return 2 * call.multiplications
    if not isinstance(call, Conv):
        return 0
    result = call.product if isinstance(call, WithEpilogue) else call.results[0]
    per_output: Any = call.fields["in_features"]
    for n in call.fields["window"]:  # type: ignore[union-attr]
        per_output = per_output * n
    work: Size = 2 * result.size * per_output
    return work


def _of_kernel(kernel: Kernel, is_stored: Callable[[Tensor], bool]) -> Size:
    s = kernel.shared(is_stored)
    d = kernel.domain
    rows = d.rows if d.total is None else -(-d.total // d.row)
    counts = {True: 0, False: 0}
    for e in reachable_expressions([kernel.element(s, m) for m in kernel.members]):
        counts[e.depends_on(kernel.i)] += 0 if e.op in NO_WORK else 1 + (e.op == "fma")
    counts[True] += sum(isinstance(m.tensor, Reduce) for m in kernel.members)
    return counts[True] * d.size + counts[False] * rows


def nbytes_of(t: Tensor) -> Size:
    """The bytes of a tensor in memory."""
    return t.size * item_size(t.dtype)


def moved_bytes(kernels: Iterable[Kernel],
                  is_stored: Callable[[Tensor], bool]) -> dict[Any, int]:
    """At most how many bytes kernels read or update, of each tensor of which it may be a part.

    An expression is computed once for each place of the loops that it depends on, so that it reads
    no more elements than there are places: a column, a slice, what a gather picks.
    """
    elements: dict[Tensor, Size] = {}
    for kernel in kernels:
        s, d = kernel.shared(is_stored), kernel.domain
        rows = d.rows if d.total is None else -(-d.total // d.row)
        for e in reachable_expressions(kernel.all_expressions(s)):
            if e.op == "load":
                times = d.size if e.depends_on(kernel.i) else rows
                elements[e.aux[0]] = elements.get(e.aux[0], 0) + times
        for m in kernel.members:
            if isinstance(m.tensor, ScatterTensor):
                elements[m.tensor] = elements.get(m.tensor, 0) + d.size
    return {t: min(n, t.size) * item_size(t.dtype) for t, n in elements.items()
            if isinstance(n, int) and isinstance(t.size, int)}


# --- A schedule as text: what is computed together, from whose lines, what is stored, why not more
#
# kernel 1: 512 rows of 64, 2 loops reduce_row: max f32[512] model.py:7 y = x - x.max(1,
# keepdims=True) full: f32[512, 64] stored model.py:7 y = x - x.max(1, keepdims=True) reads f32[512,
# 64]

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
        if isinstance(step, WithEpilogue):
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


def _plural(word: str, n: Size) -> str:
    return word if _is_one(n) else f"{word}s"


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1
