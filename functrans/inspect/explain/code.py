"""Sources and machine code of kernels, line by line, each with what it computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from functrans.lowering.report import CodeValue, KernelReport

__all__ = ["Instruction", "code_html", "instructions_html", "values_by_line"]

Instruction = tuple[str, int]
"""A line of machine code, and that of the source which it is for, by number; -1 for none."""

_NAME: Final = re.compile(r"\b(?:v\d+|f\d+_\d+|p\d+)")


def values_by_line(kernel: KernelReport) -> list[tuple[CodeValue, ...]]:
    """For each line of the source of a kernel the values that it computes or moves.

    A line that computes a part of a value belongs to the next line that computes one.
    """
    found: list[tuple[CodeValue, ...]] = []
    lines = kernel.source.split("\n")
    for text in lines:
        target = text.partition(" = ")[0] if " = " in text else text
        names = _NAME.findall(target) or _NAME.findall(text)
        found.append(tuple(dict.fromkeys(kernel.values[n] for n in names if n in kernel.values)))
    following: tuple[CodeValue, ...] = ()
    for k in reversed(range(len(lines))):
        if found[k]:
            following = found[k]
        elif re.match(r" +const \w+ v\d+ = ", lines[k]):
            found[k] = following
    return found


def code_html(kernel: KernelReport, number: int, tokens: Callable[[CodeValue], str]) -> str:
    """The source of a kernel; `tokens` are those of a value."""
    rows = []
    for k, (text, values) in enumerate(zip(kernel.source.split("\n"), values_by_line(kernel),
                                           strict=True)):
        of = " ".join(dict.fromkeys(" ".join(map(tokens, values)).split()))
        mine = f' data-t="{of}"' if of else ""
        rows.append(f'<span data-own="k{number}c{k}"{mine}>{escape(text) or " "}</span>')
    memory = "; ".join(f"{name}: {value.type}" for name, value in kernel.values.items()
                       if name.startswith("p"))
    note = f'<div class="dim">{escape(memory)}</div>' if memory else ""
    return f'{note}<div class="m src">{"".join(rows)}</div>'


def instructions_html(code: Sequence[Instruction], number: int) -> str:
    """Machine code, lit with the lines of the source."""
    return '<div class="m src">' + "".join(
        f'<span{f" data-t={chr(34)}k{number}c{line}{chr(34)}" if line >= 0 else ""}>'
        f"{escape(text.expandtabs(4)) or ' '}</span>" for text, line in code) + "</div>"
