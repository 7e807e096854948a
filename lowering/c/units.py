"""The text of a program as several units, which are compiled side by side."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from itertools import compress, pairwise
from operator import not_

from functrans.core.record import Record

__all__ = ["Parts", "called_names", "in_small_units", "in_units", "with_prefix"]

UNIT = 12_000
"""Characters of functions in a unit: gcc takes 50 ms for them, and 10 for each unit.

A language model's 47 kernels take 0.6 s in one unit; a unit of its first 12,000 characters 0.07.
"""
MOST_UNITS = 16
CALLED = 4_000
REST = 0.35
"""What gcc takes for a character of a program's steps, beside one of a kernel."""

_FUNCTION = re.compile(r"^static ((?:__attribute__\(\(noinline\)\) )?\w[^;{}=]*\)) \{", re.M)
_CALLED = re.compile(r"^static __attribute__\(\(noinline\)\) \w+ call_", re.M)
_KERNEL = re.compile(r"k\d+\(")
_CLOCK = re.compile(r"^i64 ft_ticks\[", re.M)
_NAME = re.compile(r"^static [^\n;{}=]*?\b(\w+)(?:\(|\[)", re.M)
_LAST = re.compile(r"[A-Za-z_]\w*$")
_HIDDEN = '__attribute__((visibility("hidden")))'


class Parts(Record, eq=False, repr=False):
    """The parts of the text of a program: what begins each unit, functions that kernels share,
    kernels, functions that run steps and tables of them, and the function of the program."""

    head: str
    first: str
    kernels: Sequence[str]
    bodies: Sequence[str]
    program: str

    @property
    def rest(self) -> str:
        return f"\n{''.join(self.bodies)}\n{self.program}"

    @property
    def text(self) -> str:
        return "".join([self.head, self.first, "\n".join(self.kernels), self.rest])


def in_units(parts: Parts, divided: bool = False) -> list[str]:
    """The units of a program, of which each begins with the head.

    There are as many as the cores can take at once. What runs the steps is in the first unit.
    There are none of a program that is one unit. Long kernels may be `divided` later.
    """
    are_alone = list(map(_is_alone, parts.kernels))
    alone = [*_functions(parts.first), *compress(parts.kernels, are_alone)]
    others = list(compress(parts.kernels, map(not_, are_alone)))
    stays = len(parts.rest) * REST + sum(map(len, others))
    # no unit is done before the longest
    least = max([UNIT, stays, *(() if divided else map(_work, alone))])
    work = sum(map(_work, alone)) + stays
    count = min(round(work / least), MOST_UNITS, len(os.sched_getaffinity(0)))
    if count < 2:
        return []
    groups = _grouped(alone, _work, count, stays)
    return _written(parts.head, alone, groups, "".join([*others, parts.rest]))


def in_small_units(parts: Parts, work: Callable[[str], float], least: float,
                   most: int) -> list[str]:
    """The units of a program, the longest first: at `most` so many, of the `least` work or more,
    by the work of each function.

    Functions that run steps are apart, too, and nothing is inlined into another: that is for cores
    that have nothing else to do.
    """
    alone = [*_functions(parts.first), *(text for text in parts.kernels if _is_whole(text)),
             *(text for text in parts.bodies if _is_whole(text) and "_table" not in text)]
    known = set(alone)
    others = [text for text in (*parts.kernels, *parts.bodies) if text not in known]
    names = {name for text in others for name in _NAME.findall(text)}
    if names:  # who calls those stays with them
        uses = re.compile(rf"\b(?:{'|'.join(names)})\b")
        others += [text for text in alone if uses.search(text)]
        alone = [text for text in alone if not uses.search(text)]
        order = {text: k for k, text in enumerate((*parts.kernels, *parts.bodies))}
        others.sort(key=lambda text: order.get(text, -1))
    stays = sum(map(work, others))
    count = min(round((sum(map(work, alone)) + stays) / least), MOST_UNITS, most)
    groups = _grouped(alone, work, max(count, 1), stays)
    return _written(parts.head, alone, groups, "".join([*others, parts.program]))


def called_names(text: str) -> list[str]:
    """The names before parentheses in a text of C."""
    return [name for name in map(_last_name, text.split("(")[:-1]) if name]


def with_prefix(text: str, names: Collection[str], prefix: str) -> str:
    """A text of C with a prefix to some of the names before parentheses."""
    parts = text.split("(")
    for k, part in enumerate(parts[:-1]):
        name = _last_name(part)
        if name in names:
            parts[k] = f"{part[:len(part) - len(name)]}{prefix}{name}"
    return "(".join(parts)


def _last_name(text: str) -> str:
    """The name at the end of a text; empty without one.

    Most names follow a space: a fiftieth of the time of a regular expression.
    """
    name = text.rpartition(" ")[2]
    if name.isidentifier():
        return name
    found = _LAST.search(name)
    return found[0] if found else ""


def _grouped(texts: Sequence[str], work: Callable[[str], float], count: int,
             first: float) -> list[list[str]]:
    """Groups of about the same work, of which the first has some already."""
    groups: list[list[str]] = [[] for _ in range(count)]
    sizes = [first, *[0.0] * (count - 1)]
    works = {text: work(text) for text in texts}
    for text in sorted(texts, key=works.__getitem__, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(text)
        sizes[smallest] += works[text]
    return groups


def _written(head: str, alone: Sequence[str], groups: Sequence[Sequence[str]],
             rest: str) -> list[str]:
    known = head.replace("const i64 ft_abi = 2;\n", "").replace(
        "static const ft_api *ft;", f"extern {_HIDDEN} const ft_api *ft;")
    known = _CLOCK.sub(r"extern \g<0>", known)
    begin = head.replace("static const ft_api *ft;", f"{_HIDDEN} const ft_api *ft;")
    declared = "".join(map(_declared, alone))
    return ["".join([begin, declared, *map(_shared, groups[0]), rest]),
            *("".join([known, declared, *map(_shared, group)]) for group in groups[1:] if group)]


def _work(text: str) -> int:
    """What a function takes, in characters; one that is called has its text in another one."""
    is_called = "(noinline)" in text and _CALLED.search(text)
    return max(len(text), CALLED) if is_called else len(text)


def _functions(first: str) -> list[str]:
    """The texts of the functions that kernels share."""
    begins = [0, *(m.start() for m in _FUNCTION.finditer(first)), len(first)]
    return [text for a, b in pairwise(begins) if (text := first[a:b])]


def _is_alone(text: str) -> bool:
    """Whether a text is functions that call no kernel and keep no state."""
    return not _calls_kernels(text) \
        and len(_FUNCTION.findall(text)) == len(re.findall(r"^[^\s}]", text, re.M))


def _calls_kernels(text: str) -> bool:
    """Whether a line within a function has the name of a kernel and a parenthesis."""
    for match in _KERNEL.finditer(text):
        begin = match.start()
        line = text.rfind("\n", 0, begin) + 1
        if text[line] == " " and not (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            return True
    return False


def _is_whole(text: str) -> bool:
    """Whether a text is functions, with declarations for them, that keep no state."""
    return len(_FUNCTION.findall(text)) == len(re.findall(
        rf"^(?!struct |{re.escape(_HIDDEN)})[^\s}}]", text, re.M))


def _declared(text: str) -> str:
    return "".join(f"{_HIDDEN} {function};\n" for function in _FUNCTION.findall(text))


def _shared(text: str) -> str:
    return _FUNCTION.sub(rf"{_HIDDEN} \1 {{", text)
