"""What the integers of a kernel can be, in the first form that Triton gives it (TTIR).

Offsets of 32 bits that pass 2^31 wrap around, and read or write elsewhere: no compiler says so. Of
every integer the least and the largest value are followed from the grid, constants and the bounds
of loops; what comes from memory or around a loop is not known, and nothing is claimed of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["KernelRanges", "wrapped_offsets"]

Range = tuple[int, int]
VALUE = re.compile(r"%[\w#]+")
RESULT = re.compile(r"^\s*(%[\w#]+(?::\d+)?) = ([\w.]+)(.*)$")
FUNCTION = re.compile(r"tt\.func (?:public |private )?@([\w.\"<>-]+)\((.*)$")
MOST_ELEMENTS = 1 << 20
"""Of a tensor in Triton."""


def _corners(of: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    def ranged(a: Range, b: Range) -> Range:
        found = [of(x, y) for x in a for y in b]
        return min(found), max(found)
    return ranged


def _quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _divided(a: Range, b: Range) -> Range | None:
    return None if b[0] <= 0 <= b[1] else _corners(_quotient)(a, b)


def _remainder(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    most = b[1] - 1
    if a[0] >= 0:
        return (a[0], a[1]) if a[1] < b[0] else (0, min(a[1], most))
    return max(a[0], -most), min(max(a[1], 0), most)


OPERATIONS: dict[str, Callable[[Range, Range], Range | None]] = {
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": _corners(lambda x, y: x * y),
    "arith.divsi": _divided,
    "arith.remsi": _remainder,
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
PASSED_ON = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans",
             "ttg.convert_layout", "arith.extsi", "arith.extui", "tt.unsplat")


@dataclass
class KernelRanges:
    """Ranges of the values of a kernel over a grid; `wrapped` are the offsets that may wrap."""

    text: str
    grid: tuple[int, int, int]
    wrapped: list[str] = field(default_factory=list)
    largest: int = 0
    """Elements of the largest tensor."""

    def __post_init__(self) -> None:
        self.functions: dict[str, tuple[list[str], list[str]]] = {}
        name, body = "", [""]
        for line in self.text.splitlines():
            line = re.sub(r"\s*loc\((?:[^()]|\([^()]*\))*\)", "", line)
            found = FUNCTION.search(line)
            if found:
                name, body = found[1], []
                self.functions[name] = (re.findall(r"(%\w+):", found[2]), body)
            else:
                body.append(line)
        for dims in re.findall(r"tensor<((?:\d+x)+)", self.text):
            size = 1
            for n in dims.split("x")[:-1]:
                size *= int(n)
            self.largest = max(self.largest, size)
        entry = next(n for n, _ in self.functions.items() if re.search(
            rf"tt\.func public @{re.escape(n)}\(", self.text))
        self._walk(entry, [None] * len(self.functions[entry][0]))

    def _walk(self, name: str, arguments: list[Range | None]) -> None:
        names, lines = self.functions[name]
        known: dict[str, Range | None] = dict(zip(names, arguments, strict=False))
        passed: set[str] = set()  # values that may have wrapped
        for line in lines:
            self._line(line, known, passed)

    def _line(self, line: str, known: dict[str, Range | None], passed: set[str]) -> None:
        loop = re.search(r"scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+)", line)
        if loop:
            low, high = known.get(loop[2]), known.get(loop[3])
            known[loop[1]] = (low[0], max(low[0], high[1] - 1)) if low and high else None
            return
        call = re.search(r"tt\.call @([\w.\"<>-]+)\(([^)]*)\)", line)
        if call and call[1] in self.functions:
            self._walk(call[1], [known.get(v) for v in VALUE.findall(call[2])])
        found = RESULT.match(line)
        if not found:
            return
        result, operation, rest = found.groups()
        operands = VALUE.findall(rest.split(" : ")[0])
        if operation == "tt.addptr":
            if operands[1] in passed:
                self.wrapped.append(line.strip())
            return
        value: Range | None = None
        ranges = [known.get(v) for v in operands]
        if operation == "tt.get_program_id":
            value = 0, self.grid["xyz".index(rest.split()[0])] - 1
        elif operation == "tt.get_num_programs":
            value = (self.grid["xyz".index(rest.split()[0])],) * 2
        elif operation == "arith.constant":
            number = re.search(r"(?:dense<)?(-?\d+|true|false)>? : ", rest)
            if number:
                value = ({"true": 1, "false": 0}.get(number[1]) or int(
                    number[1] if number[1] not in ("true", "false") else number[1] == "true"),) * 2
        elif operation == "tt.make_range":
            end, start = (int(re.search(rf"{w} = (\d+)", rest)[1])  # type: ignore[index]
                          for w in ("end", "start"))
            value = start, end - 1
        elif operation in OPERATIONS and len(ranges) == 2 and ranges[0] and ranges[1]:
            value = OPERATIONS[operation](ranges[0], ranges[1])
        elif operation in PASSED_ON or operation == "arith.trunci":
            value = ranges[0] if ranges else None
        elif operation == "arith.select" and ranges[1] and ranges[2]:
            value = min(ranges[1][0], ranges[2][0]), max(ranges[1][1], ranges[2][1])
        bits = re.search(r"i(1|8|16|32|64)>?\s*$", rest)
        width = int(bits[1]) if bits else 64
        if any(v in passed for v in operands) and operation in (*OPERATIONS, *PASSED_ON,
                                                                "arith.select"):
            passed.add(result)
        if value is not None and width > 1 and not (
                -(1 << width - 1) <= value[0] and value[1] < 1 << width - 1):
            passed.add(result)
            value = None
        known[result] = value


def wrapped_offsets(module: Any, grid: tuple[int, int, int]) -> list[str]:
    """The offsets of a kernel, as Triton's first stage gives it, that may wrap over a grid."""
    return KernelRanges(str(module), grid).wrapped
