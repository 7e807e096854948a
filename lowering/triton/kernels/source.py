"""Modules of Triton source, made in memory."""

from __future__ import annotations

import hashlib
import linecache
import re
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache
from types import ModuleType
from typing import Final

from functrans.core.record import Record
from functrans.lowering.store.cache import digest
from functrans.lowering.triton.kernels.kernel_source import KernelSource
from functrans.lowering.triton.kernels.reductions import FUNCTIONS
from functrans.lowering.triton.steps.spec import GPUProgram, Launch
from functrans.lowering.triton.templates.kernel import TemplateKernel

__all__ = ["NONE_REJECTED", "RejectedKernels", "TritonModule", "alone", "module_of"]


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


@lru_cache(maxsize=16)
def _functions_of(text: str) -> tuple[str, dict[str, tuple[str, frozenset[str]]]]:
    """The head of a module, and its functions with the words in them."""
    head, *functions = re.split(r"\n(?=@triton\.jit\b)", text)
    return head, {_name_of(f): (f, frozenset(re.findall(r"\w+", f))) for f in functions}


@lru_cache(maxsize=1024)  # 30 us: programs of other sizes have the same kernels
def alone(text: str, name: str) -> str:
    """A module with one kernel of a module, and what that calls."""
    head, functions = _functions_of(text)
    needed = [name]
    for found in needed:
        words = functions[found][1]
        needed += [n for n in functions if n in words and n not in needed]
    parts = [head, *[f for n, (f, _) in functions.items() if n in needed]]
    return "\n\n\n".join([part.strip("\n") for part in parts]) + "\n"


# --- Kernels that do not compile for a target, or take more shared memory than it has

Key = tuple[str, int, int]


class RejectedKernels(Record, frozen=False, eq=False):
    """What is known not to compile, by text, warps and stages, and why.

    What keeps many numbers out of registers is known, too: another form is taken where there is one
    that does not.
    """

    reasons: dict[Key, str] = field(default_factory=dict)
    spilling: dict[Key, int] = field(default_factory=dict)

    def add(self, program: GPUProgram, launch: Launch, reason: str) -> bool:
        """Reject the kernel of a launch; False where it was rejected before."""
        key = _key_of_launch(program, launch)
        if key in self.reasons:
            return False
        self.reasons[key] = reason
        return True

    def add_spilling(self, program: GPUProgram, launch: Launch, spills: int) -> bool:
        """Avoid the kernel of a launch; False where it was avoided before."""
        key = _key_of_launch(program, launch)
        if key in self.spilling:
            return False
        self.spilling[key] = spills
        return True

    def spills(self, kernels: Iterable[TemplateKernel | KernelSource]) -> int:
        """The most numbers that a thread of some kernels is known to keep out of registers."""
        return max([self.spilling.get(_key(k), 0) for k in kernels], default=0) \
            if self.spilling else 0

    def of(self, kernels: Iterable[TemplateKernel | KernelSource]) -> str | None:
        """Why one of some kernels was rejected; None where none was."""
        if not self.reasons:
            return None
        return next((self.reasons[key] for k in kernels if (key := _key(k)) in self.reasons), None)


def _key_of_launch(program: GPUProgram, launch: Launch) -> Key:
    text = program.sources[launch.module] if launch.module else launch.kernel
    return text, launch.warps, launch.stages


def _key(kernel: TemplateKernel | KernelSource) -> Key:
    if isinstance(kernel, TemplateKernel):
        return kernel.text, kernel.warps, kernel.stages
    return TritonModule.name_of(kernel.text), kernel.warps, Launch.stages


NONE_REJECTED: Final = RejectedKernels()
"""The one of programs that are not compiled; it stays empty."""
