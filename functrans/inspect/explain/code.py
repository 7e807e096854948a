"""Sources and machine code of kernels, line by line, each with what it computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from typing import Final

from functrans.lowering.report import CodeValue, KernelReport

__all__ = ["Instruction", "code_html", "instructions_html", "lines_of_variable",
           "values_by_line"]

Instruction = tuple[str, int]
"""A line of machine code, and that of the source which it is for, by number; -1 for none."""

LOOP: Final = r"\s*(?:for \(i64 {v}\b|for {v}_? in\b|{v} = |const i64 {v}\d* = )"
"""The line of a source, in C or Triton, in which a loop gives a variable its value."""
FIRST: Final = "@triton.jit"
NAMES: Final = {"m": r"(?:m|r|row|at_m|rows)", "n": r"(?:n|i|col|at_n|cols)", "k": r"(?:k|step)",
                "t": r"(?:t\d*|v\d+|at)", "b": r"(?:b|outer)", "lane": r"(?:lane|b)",
                "o": r"(?:o|o\d)", "i": r"(?:i)"}


def values_by_line(kernel: KernelReport) -> Sequence[tuple[CodeValue, ...]]:
    """For each line of the source of a kernel the values that it computes or moves."""
    if kernel.values_by_line is None:
        return [()] * (kernel.source.count("\n") + 1)
    return kernel.values_by_line()


def lines_of_variable(kernel: KernelReport, variable: str) -> list[int]:
    """The lines of the source that begin a loop over a variable."""
    pattern = re.compile(LOOP.format(v=NAMES.get(variable, re.escape(variable))))
    return [k for k, text in enumerate(kernel.source.split("\n")) if pattern.match(text)]


def code_html(kernel: KernelReport, number: int, tokens: Callable[[CodeValue], str],
              name: Callable[[CodeValue], str], loops: Sequence[Sequence[str]] = ()) -> str:
    """The source of a kernel; `tokens` are those of a value, `loops` those of each line."""
    rows = []
    lines = kernel.source.split("\n")
    head = lines.index(FIRST) if FIRST in lines else 0  # what is imported says nothing
    for k, (text, values) in enumerate(zip(lines, values_by_line(kernel), strict=True)):
        if k < head:
            continue
        of = [*" ".join(map(tokens, values)).split(), *(loops[k] if loops else ())]
        mine = f' data-t="{" ".join(dict.fromkeys(of))}"' if of else ""
        rows.append(f'<span data-own="k{number}c{k}"{mine}>{escape(text) or " "}</span>')
    memory = "; ".join(f"{pointer}: {name(value)}" for pointer, value in kernel.operands.items())
    note = f'<div class="dim">{escape(memory)}</div>' if memory else ""
    return f'{note}<div class="m src">{"".join(rows)}</div>'


def instructions_html(code: Sequence[Instruction], number: int) -> str:
    """Machine code, lit with the lines of the source; what one line is for is one element."""
    rows = []
    for line, same in groupby(code, key=lambda instruction: instruction[1]):
        mine = f' data-t="k{number}c{line}"' if line >= 0 else ""
        text = "\n".join([text.replace("\t", "  ") for text, _ in same])
        rows.append(f"<span{mine}>{escape(text) or ' '}</span>")
    return f'<div class="m src asm">{"".join(rows)}</div>'
