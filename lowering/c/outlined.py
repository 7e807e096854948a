"""Mathematical functions that a long program calls often stand once in it, and not in every call.

A vector sine is 40 instructions, and gcc takes 1.2 ms for each copy of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["outlined"]

LEAST_CALLS = 64
"""Calls in a program from which on a function is called: a chain of 1,000 operations drawn from ten
is compiled in 0.5 s instead of 1.9, and takes 4 % longer to run; loops over one sine each 18 %."""
LEAST_LENGTH = 400
"""The C text of a function, with what it calls, that is worth a call."""

_CALL = re.compile(r"\b(\w+)\(")
_HEAD = re.compile(r"^INL (\w+) (\w+)\(([^()*]*)\) \{", re.M)


def outlined(kernels: Mapping[str, str], functions: Mapping[str, str],
             apart: Iterable[str] = ()) -> tuple[dict[str, str], str]:
    """The texts of kernels by name, with calls of functions, and the text of those.

    `functions` are all that kernels may call, by name, those that they call themselves before
    them. Kernels that stand `apart` stay as they are.
    """
    same = set(apart)
    calls: Counter[str] = Counter()
    for name, text in kernels.items():
        if name not in same:
            calls.update(_CALL.findall(text))
    lengths: dict[str, int] = {}
    heads: dict[str, re.Match[str]] = {}
    for name, text in functions.items():
        if calls[name] >= LEAST_CALLS and (head := _HEAD.search(text)) and head[2] == name:
            heads[name] = head
        lengths[name] = len(text) + sum(lengths.get(f, 0) for f in _CALL.findall(text)
                                        if f != name)
    often = {name: head for name, head in heads.items() if lengths[name] >= LEAST_LENGTH}
    if not often:
        return dict(kernels), ""
    pattern = re.compile(rf"\b({'|'.join(often)})\(")
    return ({name: text if name in same else pattern.sub(r"call_\1(", text)
             for name, text in kernels.items()}, "".join(map(_called, often.values())))


def _called(head: re.Match[str]) -> str:
    result, name, parameters = head.groups()
    arguments = ", ".join(p.split()[-1] for p in parameters.split(","))
    return (f"static __attribute__((noinline)) {result} call_{name}({parameters}) "
            f"{{ return {name}({arguments}); }}\n")
