"""Several kernels as one: its programs are divided among the members."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.store.cache import digest
from functrans.lowering.triton.kernels.kernel_source import KernelOperand, KernelSource
from functrans.lowering.triton.templates.notes import KernelNotes, NamedValue

__all__ = ["joined", "kernel_key"]

WAIT = "fm.grid_dependency_wait()"
PROGRAM, PROGRAMS = "tl.program_id(0)", "tl.num_programs(0)"


def kernel_key(kernel: KernelSource) -> tuple[str, int, int, tuple[str, ...]]:
    """What tells a kernel that has no numbers as arguments from others, over its grid."""
    return kernel.text, kernel.grid, kernel.warps, tuple(kernel.types)


def joined(members: Sequence[KernelSource]) -> tuple[KernelSource, dict[str, str]]:
    """The kernel of several that do not depend on each other, and its functions: names by text.

    Each member is a function of its program. Members of one text are one call, on pointers that the
    program chooses, so that Triton compiles them once. Where a member waits for the launches before
    in its own time, the others do so when they begin.
    """
    members = sorted(members, key=kernel_key)
    waits = any(WAIT in w.text for w in members)
    operands: list[KernelOperand] = [t for w in members for t in w.operands]
    functions: dict[str, str] = {}
    lines = [f"pid = {PROGRAM}"]
    values: list[NamedValue] = []
    begin = first = 0
    for (text, grid, *_), found in groupby(members, key=kernel_key):
        same = list(found)
        function = _function(text)
        name = functions.setdefault(function, f"member_{digest(function)[:8]}")
        values += [v._replace(function=name) for w in same for v in w.notes.values]
        values += [NamedValue(name, f"p{k}", (t,)) for w in same for k, t in enumerate(w.operands)
                   if isinstance(t, Tensor)]
        width = len(same[0].operands)
        end = begin + grid * len(same)
        lines.append(f"if (pid >= {begin}) & (pid < {end}):")
        if waits and WAIT not in text:
            lines.append(f"    {WAIT}")
        program = f"pid - {begin}" if begin else "pid"
        pointers = [f"p{first + k}" for k in range(width)]
        if len(same) > 1:
            lines.append(f"    which = ({program}) // {grid}")
            program = f"({program}) % {grid}"
            for k in range(width):
                chosen = pointers[k]
                for j in range(1, len(same)):
                    chosen = f"tl.where(which == {j}, p{first + j * width + k}, {chosen})"
                lines.append(f"    q{k} = {chosen}")
            pointers = [f"q{k}" for k in range(width)]
        lines.append(f"    {name}({', '.join([program, str(grid), *pointers])})")
        begin, first = end, first + width * len(same)
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
    return KernelSource(text, operands, begin, max(w.warps for w in members),
                        notes=KernelNotes(values)), functions


def _function(text: str) -> str:
    """A kernel as a function of its program and the number of programs."""
    text = text.replace(PROGRAM, "program").replace(PROGRAMS, "programs")
    return re.sub(r"def NAME\(", "def NAME(program, programs, ", text, count=1)
