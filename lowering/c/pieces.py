"""Long straight code of a kernel as functions of other units, which are compiled side by side.

A kernel of lanes is one function and so one unit, and gcc's time is that of the longest unit. In a
baseline build a run of declarations is cut where few values live, and each piece is a function that
reads and writes these in a structure. Nothing else changes, so that the bits are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["HIDDEN", "in_pieces"]

HIDDEN: Final = '__attribute__((visibility("hidden")))'
WINDOW: Final = 0.3
"""The part of a piece in which the place of a cut is chosen."""

_CONSTANT = re.compile(r"^( +)const (\w+) (\w+) = (.*);$")
_POINTER = re.compile(r"^ *(?:const )?(\w+) \*(\w+) = ")
_ARRAY = re.compile(r"^ *(\w+) (\w+)\[\d+\];")
_VARIABLE = re.compile(r"^ *(?:for \()?(?:const )?(\w+) (\w+)(?: = .*)?;")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b(?!\()")
_KERNEL = re.compile(r"^(?:static |__attribute__\(\S+\) )*void (k\d+)\(void \*arg, i64 begin, "
                     r"i64 end\) \{\n(.*?)^\}\n", re.M | re.S)
_OF_LANES = re.compile(r"^  volatile i64 \*failed = ", re.M)


@dataclass(frozen=True)
class _Variable:
    """A variable of a kernel: its type, and its text where that has constants alone."""

    type: str
    line: str = ""


def in_pieces(text: str, most: int, work: Callable[[str], int]) -> tuple[str, list[str]]:
    """The text with calls of pieces of its kernels of lanes, and the texts of these functions.

    `work` is what gcc takes for a line; a piece has about `most` of it. The declarations of pieces
    are before the kernel in the text, and in each of the others.
    """
    pieces: list[str] = []

    def cut(kernel: re.Match[str]) -> str:
        if _OF_LANES.search(kernel[2]) is None:
            return kernel[0]
        lines = kernel[0].split("\n")
        found = list(_cut(kernel[1], lines, most, work))
        if not found:
            return kernel[0]
        pieces.extend(piece.function for piece in found)
        for piece in reversed(found):
            lines[piece.begin:piece.end] = piece.call
        return "".join(piece.declared for piece in found) + "\n".join(lines)

    return _KERNEL.sub(cut, text), pieces


@dataclass(frozen=True)
class _Piece:
    """Lines of a kernel, what is there instead, and the function with its declaration."""

    begin: int
    end: int
    call: list[str]
    declared: str
    function: str


def _cut(name: str, lines: Sequence[str], most: int,
         work: Callable[[str], int]) -> Iterator[_Piece]:
    reads = [frozenset(_WORD.findall(line)) for line in lines]
    last: dict[str, int] = {}
    for k, words in enumerate(reads):
        for word in words:
            last[word] = k
    known: dict[str, _Variable] = {}
    number = learned = 0
    for begin, end in _runs(lines):
        works = [work(lines[k]) for k in range(begin, end)]
        if sum(works) < 1.5 * most:
            continue
        for k in range(learned, begin):
            _learn(lines[k], reads[k], known)
        learned = end
        for a, b in _cuts(begin, end, works, [last[_name(line)] for line in lines[begin:end]],
                          most):
            piece = _piece(f"{name}_piece{number}", lines, reads, a, b, known, last)
            if piece is not None:
                yield piece
                number += 1
            for k in range(a, b):
                _learn(lines[k], reads[k], known)


def _name(line: str) -> str:
    found = _CONSTANT.match(line)
    assert found is not None
    return found[3]


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of declarations of constants of one depth, in loops and branches or around them."""
    begin, depth = 0, -1
    for k, line in enumerate([*lines, ""]):
        found = _CONSTANT.match(line)
        here = len(found[1]) if found and "ft_" not in line and "ft->" not in line else -1
        if here != depth:
            if depth >= 0:
                yield begin, k
            begin, depth = k, here


def _cuts(begin: int, end: int, works: Sequence[int], last: Sequence[int],
          most: int) -> Iterator[tuple[int, int]]:
    """Where to cut a run: near equal parts, where few of its values are read later."""
    count = -(-sum(works) // most)
    ends = Counter(last)
    lives = [0]  # of the first k values, those that are read at the k-th line or later
    for k in range(1, len(works) + 1):
        lives.append(lives[-1] + 1 - ends[begin + k - 1])
    total, cuts = sum(works), [0]
    goals = [total * p / count for p in range(1, count)]
    slack = WINDOW * total / count
    sums = [0]
    for w in works:
        sums.append(sums[-1] + w)
    for goal in goals:
        near = [k for k in range(cuts[-1] + 1, len(works)) if abs(sums[k] - goal) <= slack]
        if near:
            cuts.append(min(near, key=lambda k: (lives[k], abs(sums[k] - goal))))
    for a, b in zip(cuts, [*cuts[1:], len(works)], strict=True):
        yield begin + a, begin + b


def _learn(line: str, words: frozenset[str], known: dict[str, _Variable]) -> None:
    """Note the variable that a line declares."""
    found = _CONSTANT.match(line)
    if found is not None:
        alone = len(words & known.keys()) == 0 and not _depends(found[4])
        known.setdefault(found[3], _Variable(found[2], line.strip() if alone else ""))
        return
    for pattern, suffix in ((_POINTER, " *"), (_ARRAY, " *"), (_VARIABLE, "")):
        found = pattern.match(line)
        if found is not None:
            known.setdefault(found[2], _Variable(found[1] + suffix))
            return


def _depends(expression: str) -> bool:
    return any(True for _ in _WORD.finditer(expression))


def _piece(name: str, lines: Sequence[str], reads: Sequence[frozenset[str]], begin: int, end: int,
           known: dict[str, _Variable], last: dict[str, int]) -> _Piece | None:
    made: dict[str, str] = {}
    read: dict[str, _Variable] = {}
    for k in range(begin, end):
        found = _CONSTANT.match(lines[k])
        assert found is not None
        for word in sorted(reads[k]):
            if word in known and word not in made:
                read.setdefault(word, known[word])
        made[found[3]] = found[2]
    results = {v: kind for v, kind in made.items() if last[v] >= end}
    if not results:
        return None
    given = {v: of for v, of in read.items() if not of.line}
    fields = "".join(f" {of.type} {v};" for v, of in given.items()) \
        + "".join(f" {kind} {v};" for v, kind in results.items())
    declared = f"struct {name} {{{fields} }};\n{HIDDEN} void {name}(struct {name} *);\n"
    indent = lines[begin][:len(lines[begin]) - len(lines[begin].lstrip())]
    call = [f"{indent}struct {name} {name}_;",
            *(f"{indent}{name}_.{v} = {v};" for v in given),
            f"{indent}{name}(&{name}_);",
            *(f"{indent}const {kind} {v} = {name}_.{v};" for v, kind in results.items())]
    function = "".join([
        declared, f"void {name}(struct {name} *s) {{\n",
        *(f"  {of.line}\n" for of in read.values() if of.line),
        *(f"  {of.type} {v} = s->{v};\n" for v, of in given.items()),
        *(f"{line}\n" for line in lines[begin:end]),
        *(f"  s->{v} = {v};\n" for v in results), "}\n"])
    return _Piece(begin, end, call, declared, function)
