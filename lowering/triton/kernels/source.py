"""Modules of Triton source, made in memory."""

from __future__ import annotations

import hashlib
import linecache
import re
from functools import lru_cache
from types import ModuleType
from typing import Final

from functrans.lowering.store.cache import digest
from functrans.lowering.triton.kernels.reductions import FUNCTIONS

__all__ = ["TritonModule", "alone", "module_of"]

HEAD = """\
import triton
import triton.language as tl

from functrans.lowering.triton.kernels import {math} as fm
"""


def _name_of(function: str) -> str:
    found = re.search(r"def (\w+)", function)
    assert found is not None
    return found[1]


COMBINE_FUNCTIONS: Final = {_name_of(f): f"\n@triton.jit{f}"
                            for f in FUNCTIONS.split("\n@triton.jit")[1:]}


@lru_cache(maxsize=1024)
def _called(text: str) -> frozenset[str]:
    """The functions of `COMBINE_FUNCTIONS` that a kernel calls."""
    return frozenset(COMBINE_FUNCTIONS.keys() & set(re.findall(r"\w+", text)))


class TritonModule:
    """Triton functions under names of their own; equal functions are one."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The name of the function with this text, in which `NAME` stands for it."""
        return self.functions.setdefault(text, self.name_of(text))

    @staticmethod
    def name_of(text: str) -> str:
        """The same in all programs, so that a compiled one is found on disk by its text."""
        return f"k_{digest(text)[:8]}"

    def text(self, math: str = "device_math") -> str:
        """The source of the module."""
        kernels = "\n\n".join(text.replace("NAME", name)
                              for text, name in self.functions.items())
        called = frozenset().union(*map(_called, self.functions))
        folds = "".join(text for name, text in COMBINE_FUNCTIONS.items() if name in called)
        return f"{HEAD.format(math=math)}\n{folds}\n\n{kernels}"


def module_of(text: str) -> ModuleType:
    """The module with this source. Triton reads the text of a function where tracebacks do."""
    name = f"functrans_triton_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = ModuleType(name)
    module.__file__ = filename
    exec(compile(text, filename, "exec"), vars(module))
    return module


@lru_cache(maxsize=1024)  # 30 us: programs of other sizes have the same kernels
def alone(text: str, name: str) -> str:
    """A module with one kernel of a module, and what that calls."""
    head, *functions = re.split(r"\n(?=@triton\.jit\b)", text)
    named = {_name_of(f): f for f in functions}
    needed = [name]
    for found in needed:
        needed += [n for n in named if n not in needed
                   and re.search(rf"\b{n}\b", named[found])]
    parts = [head, *[f for n, f in named.items() if n in needed]]
    return "\n\n\n".join([part.strip("\n") for part in parts]) + "\n"
