"""The text of a long program as several units, which are compiled side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["in_units"]

UNIT = 100_000
"""Characters of kernels in a unit: gcc takes 0.3 s for them, and 0.03 for each unit.

The kernels of a transformer's gradient in two, side by side on two cores that others use too, took
20 ms more processor time and no less time (medians 355 and 335 ms).
"""
MOST_UNITS = 8

_FUNCTION = re.compile(r"^static ((?:__attribute__\(\(noinline\)\) )?\w[^;{}=]*\)) \{", re.M)
_OTHERS = re.compile(r"^ .*\b(?:k\d+|ft_stops)\(", re.M)
_HIDDEN = '__attribute__((visibility("hidden")))'


def in_units(head: str, first: str, kernels: Sequence[str], rest: str) -> list[str]:
    """The units of a program: of what begins each, functions that kernels share, kernels, the rest.

    The last two are in the first unit. There are none of a program that is one unit.
    """
    alone = [text for text in kernels if _is_alone(text)]
    count = min(sum(map(len, alone)) // UNIT, MOST_UNITS)
    if count < 2:
        return []
    groups: list[list[str]] = [[] for _ in range(count)]
    for text in sorted(alone, key=len, reverse=True):
        min(groups, key=lambda group: sum(map(len, group))).append(text)
    known = head.replace("const i64 ft_abi = 2;\n", "").replace(
        "static const ft_api *ft;", f"extern {_HIDDEN} const ft_api *ft;")
    begin = head.replace("static const ft_api *ft;", f"{_HIDDEN} const ft_api *ft;")
    others = [text for text in kernels if not _is_alone(text)]
    return ["".join([begin, _shared(first), *map(_declared, alone), *others, rest]),
            *("".join([known, _declared(first), *map(_shared, group)]) for group in groups)]


def _is_alone(text: str) -> bool:
    """Whether the text of a kernel is functions that call no other kernel and keep no state."""
    return len(_FUNCTION.findall(text)) == len(re.findall(r"^[^\s}]", text, re.M)) \
        and _OTHERS.search(text) is None


def _declared(text: str) -> str:
    return "".join(f"{_HIDDEN} {function};\n" for function in _FUNCTION.findall(text))


def _shared(text: str) -> str:
    return _FUNCTION.sub(rf"{_HIDDEN} \1 {{", text)
