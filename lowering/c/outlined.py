"""Mathematical functions that a long program calls often stand once in it, and not in every call.

A vector sine is 40 instructions, and gcc takes 1.2 ms for each copy of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from functrans.lowering.c.units import called_names, with_prefix

__all__ = ["outlined"]

LEAST_CALLS = 64
"""Calls in a program from which on a function is called: a chain of 1,000 operations drawn from ten
is compiled in 0.5 s instead of 1.9, and takes 4 % longer to run; loops over one sine each 18 %."""
LEAST_LENGTH = 400
"""The C text of a function, with what it calls, that is worth a call."""
LONG = 50_000
"""The text of a function that takes so long that a call, with what lives across it, is nothing.

A power is 30,000: a loop over lanes with eight of them takes 11 % longer with calls.
"""
MOST_INLINED = 200_000
"""The text of all copies of a long function: 16 logarithms of the gamma function are 2 MB, and gcc
takes 3 s."""

_HEAD = re.compile(r"^INL (\w+) (\w+)\(([^()*]*)\) \{", re.M)


def outlined(kernels: Mapping[str, str], functions: Mapping[str, str],
             apart: Iterable[str] = ()) -> tuple[dict[str, str], str]:
    """The texts of kernels by name, with calls of functions, and the text of those.

    `functions` are all that kernels may call, by name, those that they call themselves before
    them. Kernels that stand `apart` call long functions only.
    """
    same = set(apart)
    calls: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for name, text in kernels.items():
        found = called_names(text)
        everywhere.update(found)
        if name not in same:
            calls.update(found)
    lengths: dict[str, int] = {}
    heads: dict[str, re.Match[str]] = {}
    for name, text in functions.items():
        if everywhere[name] > 1 and (head := _HEAD.search(text)) and head[2] == name:
            heads[name] = head
        lengths[name] = len(text) + sum(lengths.get(f, 0) for f in called_names(text)
                                        if f != name)
    long = {name for name in heads if lengths[name] >= LONG
            and everywhere[name] * lengths[name] >= MOST_INLINED}
    often = long | {name for name in heads if lengths[name] >= LEAST_LENGTH
                    and calls[name] >= LEAST_CALLS}
    texts = {name: with_prefix(text, chosen, "call_") if (chosen := long if name in same else often)
             else text for name, text in kernels.items()}
    return texts, "".join([_called(head) for name, head in heads.items() if name in often])


def _called(head: re.Match[str]) -> str:
    result, name, parameters = head.groups()
    arguments = ", ".join(p.split()[-1] for p in parameters.split(","))
    return (f"static __attribute__((noinline)) {result} call_{name}({parameters}) "
            f"{{ return {name}({arguments}); }}\n")
