"""Long straight code of a kernel as functions of other units, which are compiled side by side.

A kernel of lanes is one function and so one unit, and gcc's time is that of the longest unit. In a
baseline build a run of simple statements is cut where few values live, and each piece is a function
that reads and writes these in a structure. Nothing else changes, so that the bits are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from functrans.core.record import Record

__all__ = ["HIDDEN", "in_pieces"]

HIDDEN: Final = '__attribute__((visibility("hidden")))'
WINDOW: Final = 0.3
"""The part of a piece in which the place of a cut is chosen."""
LEAST: Final = 0.5
"""The least of a piece that is worth a function."""

_CONSTANT = re.compile(r"^( +)const (\w+) (\w+) = (.*);$")
_ASSIGNED = re.compile(r"^( +)(\w+) = [^;{}]*;$")
_STORED = re.compile(r"^( +)(?:store\w*\([^;{}]*\)|for \(i64 l = 0; l < \d+; l\+\+\) \([^;{}]*);$")
_LOCAL = re.compile(r"^( +)\w+ (\w+)\[\d+\];$")
_POINTER = re.compile(r"^ *(?:const )?(\w+) \*(\w+) = ")
_ARRAY = re.compile(r"^ *(\w+) (\w+)\[\d+\];")
_VARIABLE = re.compile(r"^ *(?:for \()?(?:const )?(\w+) (\w+)(?: = .*)?;")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b(?!\()")
_KERNEL = re.compile(r"^(?:static |__attribute__\(\S+\) )*void (k\d+)\(void \*arg, i64 begin, "
                     r"i64 end\) \{\n(.*?)^\}\n", re.M | re.S)
_OF_LANES = re.compile(r"^  volatile i64 \*failed = ", re.M)


class _Variable(Record):
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


class _Piece(Record):
    """Lines of a kernel, what is there instead, and the function with its declaration."""

    begin: int
    end: int
    call: list[str]
    declared: str
    function: str


def _cut(name: str, lines: Sequence[str], most: int,
         work: Callable[[str], int]) -> Iterator[_Piece]:
    reads = [frozenset(_WORD.findall(line)) - ({"l"} if _STORED.match(line) else frozenset())
             for line in lines]
    last: dict[str, int] = {}
    for k, words in enumerate(reads):
        for word in words:
            last[word] = k
    known: dict[str, _Variable] = {}
    number = learned = 0
    for begin, end in _runs(lines):
        works = [work(lines[k]) for k in range(begin, end)]
        if sum(works) < LEAST * most:
            continue
        for k in range(learned, begin):
            _learn(lines[k], reads[k], known)
        learned = end
        ends = [last.get(_name(lines[k]), k) for k in range(begin, end)]
        for a, b in _cuts(begin, end, works, ends, most):
            piece = _piece(f"{name}_piece{number}", lines, reads, a, b, known, last)
            if piece is not None:
                yield piece
                number += 1
            for k in range(a, b):
                _learn(lines[k], reads[k], known)


def _name(line: str) -> str:
    """The variable that a statement of a run makes or changes; the empty text where there is none.
    """
    found = _CONSTANT.match(line)
    if found is not None:
        return found[3]
    found = _LOCAL.match(line) or _ASSIGNED.match(line)
    return "" if found is None else found[2]


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of simple statements of one depth, in loops and branches or around them."""
    begin, depth = 0, -1
    for k, line in enumerate([*lines, ""]):
        found = _CONSTANT.match(line) or _ASSIGNED.match(line) or _STORED.match(line) \
            or _LOCAL.match(line)
        here = len(found[1]) if found and "ft_" not in line and "ft->" not in line else -1
        if here != depth:
            if depth >= 0:
                yield begin, k
            begin, depth = k, here


def _cuts(begin: int, end: int, works: Sequence[int], last: Sequence[int],
          most: int) -> Iterator[tuple[int, int]]:
    """Where to cut a run: near equal parts, where few of its values are read later."""
    count = max(round(sum(works) / most), 1)
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
    if _STORED.match(line):  # that of the loop is its own
        return
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


def _piece(name_of: str, lines: Sequence[str], reads: Sequence[frozenset[str]], begin: int,
           end: int, known: dict[str, _Variable], last: dict[str, int]) -> _Piece | None:
    made: dict[str, str] = {}
    changed: dict[str, str] = {}
    local: set[str] = set()
    read: dict[str, _Variable] = {}
    stores = False
    for k in range(begin, end):
        for word in sorted(reads[k]):
            if word in known and word not in made and word not in local:
                read.setdefault(word, known[word])
        found = _CONSTANT.match(lines[k])
        name = _name(lines[k])
        if found is not None:
            made[name] = found[2]
        elif _LOCAL.match(lines[k]):
            if last[name] >= end:
                return None
            local.add(name)
        elif not name:
            stores = True
        elif name in read:
            changed[name] = read[name].type
        else:
            return None
    results = {v: kind for v, kind in made.items() if last[v] >= end}
    if not results and not changed and not stores:
        return None
    given = {v: of for v, of in read.items() if not of.line}
    written = {**results, **changed}
    kinds = {**{v: of.type for v, of in given.items()}, **written}
    fields = "".join(f" {kind} {v};" for v, kind in kinds.items())
    declared = f"struct {name_of} {{{fields} }};\n{HIDDEN} void {name_of}(struct {name_of} *);\n"
    indent = lines[begin][:len(lines[begin]) - len(lines[begin].lstrip())]
    call = [f"{indent}struct {name_of} {name_of}_;",
            *(f"{indent}{name_of}_.{v} = {v};" for v in given),
            f"{indent}{name_of}(&{name_of}_);",
            *(f"{indent}const {kind} {v} = {name_of}_.{v};" for v, kind in results.items()),
            *(f"{indent}{v} = {name_of}_.{v};" for v in changed)]
    function = "".join([
        declared, f"void {name_of}(struct {name_of} *s) {{\n",
        *(f"  {of.line}\n" for of in read.values() if of.line),
        *(f"  {of.type} {v} = s->{v};\n" for v, of in given.items()),
        *(f"{line}\n" for line in lines[begin:end]),
        *(f"  s->{v} = {v};\n" for v in written), "}\n"])
    return _Piece(begin, end, call, declared, function)
