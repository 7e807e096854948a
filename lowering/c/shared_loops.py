"""Loops that are the same but for memory and constants are one C function, in long programs.

A kernel of a long chain of operations is a row of loops, one for each costly function, and there
are few kinds of them. gcc takes 1 to 2 ms for each sine in a loop, and 0.03 for a call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from functrans.core.record import Record

__all__ = ["share_loops"]

LEAST_TEXT = 1 << 16
"""Characters of kernels from which on loops are shared."""
SHORTEST = 128
"""Elements of a row for which a call costs little: of 128 sines 5 %."""

_LOOP = re.compile(r"^( +)for \(i64 i = ([^;]*; i < [^;]*); i \+= \d+\) \{\n", re.M)
_TYPED = re.compile(r"^ +(?:const (\w+) |(\w+ \*))(v\d+|[pq]\d+|row\d+) = ", re.M)
_WORD = re.compile(r"\b([A-Za-z_]\w*)\b")
_NAMED = re.compile(r"[vpq]\d+|row\d+")
# besides functions and the variables of a loop: its counters, and the names of types
_KNOWN = re.compile(r"for|if|const|void|char|float|double|i|n|[iu]\d+|[fiu]\d+x\d+u?|maskx\d+")
_NUMBER = re.compile(r"\b\d+\b")


class _Loop(Record):
    """A loop whose variables are numbered in its `text`; `arguments` are those from outside."""

    text: str
    arguments: tuple[str, ...]
    parameters: tuple[str, ...]


class _LoopSpan(Record):
    """Where a loop is in a text, and how far it is indented."""

    start: int
    end: int
    indent: str


def share_loops(kernels: Mapping[str, str], apart: Iterable[str] = ()) -> tuple[
        dict[str, str], str]:
    """The texts of kernels by name, with calls of loops, and the text of the functions of those.

    Kernels that stand `apart` stay as they are.
    """
    same = set(apart)
    if sum(len(text) for name, text in kernels.items() if name not in same) < LEAST_TEXT:
        return dict(kernels), ""
    found = {name: [] if name in same else list(_loops(text)) for name, text in kernels.items()}
    times = Counter(loop.text for loops in found.values() for _, loop in loops)
    functions: dict[str, str] = {}
    texts = {}
    for name, text in kernels.items():
        parts, end = [], 0
        for place, loop in found[name]:
            if times[loop.text] > 1:
                function = functions.get(loop.text)
                if function is None:
                    function = functions[loop.text] = f"loop{len(functions)}"
                parts += [text[end:place.start], place.indent, function,
                          f"({', '.join(loop.arguments)});\n"]
                end = place.end
        texts[name] = "".join([*parts, text[end:]])
    heads = {loop.text: ", ".join(loop.parameters) for loops in found.values() for _, loop in loops}
    return texts, "".join(
        f"static __attribute__((noinline)) void {name}({heads[text]}) {{\n{text}}}\n"
        for text, name in functions.items())


def _loops(kernel: str) -> Iterator[tuple[_LoopSpan, _Loop]]:
    """The loops over a long row that assign no variable from outside."""
    types = {name: kind or pointer for kind, pointer, name in _TYPED.findall(kernel)}
    for match in _LOOP.finditer(kernel):
        if max(map(int, _NUMBER.findall(match[2])), default=0) >= SHORTEST:
            last = f"\n{match[1]}}}\n"
            end = kernel.find(last, match.end() - 1)
            loop = _renamed(kernel[match.start():end + len(last)], types) if end >= 0 else None
            if loop is not None:
                yield _LoopSpan(match.start(), end + len(last), match[1]), loop


def _renamed(text: str, types: Mapping[str, str]) -> _Loop | None:
    inner = {name for _, _, name in _TYPED.findall(text)}
    names: dict[str, str] = {}
    others: set[str] = set()
    arguments, parameters = [], []
    parts = _WORD.split(text)  # words are those of odd numbers
    for k in range(1, len(parts), 2):
        word = parts[k]
        name = names.get(word)
        if name is not None:
            parts[k] = name
            continue
        if word in others or parts[k + 1].startswith("("):
            continue
        if not _NAMED.fullmatch(word):
            if not _KNOWN.fullmatch(word):
                return None
            others.add(word)
            continue
        parts[k] = name = names[word] = f"x{len(names)}"
        if word not in inner:
            kind = types.get(word)
            if kind is None:
                return None
            arguments.append(word)
            parameters.append(f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}")
    return _Loop("".join(parts), tuple(arguments), tuple(parameters))
