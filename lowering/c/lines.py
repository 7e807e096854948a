"""What each line of a kernel in C is for: the values that it computes or moves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from functrans.lowering.report import CodeValue

__all__ = ["body_of", "values_by_line"]

_NAME: Final = re.compile(r"\b(?:v\d+|f\d+_\d+|[pq]\d+)")
_PART: Final = re.compile(r" +const \w+ v\d+(?:_\d+)? = ")
_WORD: Final = re.compile(r"\b[a-z]+\d+\w*")
_SUM: Final = re.compile(r" +(?:\w+ )?((?:acc|top|sum|best|at|tot)\w*\d+\w*) = ")
ROUNDS, MOST_SHARED = 3, 4
"""A sum is added to others, then stored; values of a line."""
_POINTER: Final = re.compile(r" +\w+ \*(q\d+) = (p\d+)")


def values_by_line(source: str, known: Mapping[str, Sequence[CodeValue]]
                   ) -> list[tuple[CodeValue, ...]]:
    """For each line of a source the values of its variables that are `known`.

    A line that computes a part of a value belongs to the next line that computes one.
    """
    found: list[tuple[CodeValue, ...]] = []
    lines = source.split("\n")
    values = dict(known)
    for text in lines:
        pointer = _POINTER.match(text)
        if pointer and pointer[2] in values:
            values[pointer[1]] = values[pointer[2]]
        target = text.partition(" = ")[0] if " = " in text else text
        names = _NAME.findall(target) or _NAME.findall(text)
        found.append(tuple(dict.fromkeys([v for n in names for v in values.get(n, ())])))
    following: tuple[CodeValue, ...] = ()
    for k in reversed(range(len(lines))):
        if found[k]:
            following = found[k]
        elif _PART.match(lines[k]):
            found[k] = following
    _inherit(lines, found)
    return found


def _inherit(lines: Sequence[str], found: list[tuple[CodeValue, ...]]) -> None:
    """Give lines of sums and of counts the values of the lines that read them."""
    words = [_WORD.findall(text) for text in lines]
    readers: dict[str, list[int]] = {}
    for k, names in enumerate(words):
        for name in dict.fromkeys(names):
            readers.setdefault(name, []).append(k)
    for _ in range(ROUNDS):
        for k in reversed(range(len(lines))):
            target = _SUM.match(lines[k])
            if target and not found[k]:
                of = [v for r in readers[target[1]] for v in found[r]]
                found[k] = tuple(dict.fromkeys(of))[:MOST_SHARED]


def body_of(source: str) -> range:
    """The lines of a function between its head and its end."""
    return range(1, max(source.count("\n"), 2))
