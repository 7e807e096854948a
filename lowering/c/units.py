"""The text of a program as several units, which are compiled side by side."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["in_units"]

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
_OTHERS = re.compile(r"^ .*\bk\d+\(", re.M)
_CLOCK = re.compile(r"^i64 ft_ticks\[", re.M)
_HIDDEN = '__attribute__((visibility("hidden")))'


def in_units(head: str, first: str, kernels: Sequence[str], rest: str,
             divided: bool = False) -> list[str]:
    """The units of a program: of what begins each, functions that kernels share, kernels, the rest.

    There are as many as the cores can take at once. The rest is in the first unit. There are none
    of a program that is one unit. Long kernels may be `divided` later.
    """
    functions = _functions(first)
    alone = [*functions, *(text for text in kernels if _is_alone(text))]
    others = [text for text in kernels if not _is_alone(text)]
    stays = len(rest) * REST + sum(map(len, others))
    # no unit is done before the longest
    least = max([UNIT, stays, *(() if divided else map(_work, alone))])
    work = sum(map(_work, alone)) + stays
    count = min(round(work / least), MOST_UNITS, len(os.sched_getaffinity(0)))
    if count < 2:
        return []
    groups: list[list[str]] = [[] for _ in range(count)]
    sizes = [stays, *[0.0] * (count - 1)]
    for text in sorted(alone, key=_work, reverse=True):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(text)
        sizes[smallest] += _work(text)
    known = head.replace("const i64 ft_abi = 2;\n", "").replace(
        "static const ft_api *ft;", f"extern {_HIDDEN} const ft_api *ft;")
    known = _CLOCK.sub(r"extern \g<0>", known)
    begin = head.replace("static const ft_api *ft;", f"{_HIDDEN} const ft_api *ft;")
    declared = "".join(map(_declared, alone))
    return ["".join([begin, declared, *map(_shared, groups[0]), *others, rest]),
            *("".join([known, declared, *map(_shared, group)]) for group in groups[1:] if group)]


def _work(text: str) -> int:
    """What a function takes, in characters; one that is called has its text in another one."""
    return max(len(text), CALLED) if _CALLED.search(text) else len(text)


def _functions(first: str) -> list[str]:
    """The texts of the functions that kernels share."""
    begins = [0, *(m.start() for m in _FUNCTION.finditer(first)), len(first)]
    return [text for a, b in pairwise(begins) if (text := first[a:b])]


def _is_alone(text: str) -> bool:
    """Whether a text is functions that call no kernel and keep no state."""
    return len(_FUNCTION.findall(text)) == len(re.findall(r"^[^\s}]", text, re.M)) \
        and _OTHERS.search(text) is None


def _declared(text: str) -> str:
    return "".join(f"{_HIDDEN} {function};\n" for function in _FUNCTION.findall(text))


def _shared(text: str) -> str:
    return _FUNCTION.sub(rf"{_HIDDEN} \1 {{", text)
