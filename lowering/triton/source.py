"""Modules of Triton source, made in memory."""

from __future__ import annotations

import hashlib
import linecache
import re
from types import ModuleType
from typing import Any

from triton.runtime.interpreter import InterpretedFunction

from functrans.lowering.triton.folds import FUNCTIONS

__all__ = ["Module", "interpreted", "module_of"]

HEAD = """\
import triton
import triton.language as tl

from functrans.lowering.triton import {math} as fm
"""


class Module:
    """Triton functions under names of their own; equal functions are one."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The name of the function with this text, in which `NAME` stands for it."""
        return self.functions.setdefault(text, f"k{len(self.functions)}")

    def text(self, math: str = "device_math") -> str:
        """The source of the module."""
        kernels = "\n\n".join(text.replace("NAME", name)
                              for text, name in self.functions.items())
        folds = "".join(f"\n@triton.jit{f}" for f in FUNCTIONS.split("\n@triton.jit")[1:]
                        if re.search(rf"\b{_name_of(f)}\b", kernels))
        return f"{HEAD.format(math=math)}\n{folds}\n\n{kernels}"


def _name_of(function: str) -> str:
    found = re.search(r"def (\w+)", function)
    assert found is not None
    return found[1]


def module_of(text: str) -> ModuleType:
    """The module with this source. Triton reads the text of a function where tracebacks do."""
    name = f"functrans_triton_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = ModuleType(name)
    module.__file__ = filename
    exec(compile(text, filename, "exec"), vars(module))
    return module


def interpreted(module: ModuleType) -> dict[str, Any]:
    """The functions of a module as the interpreter runs them."""
    functions = {name: value.fn for name, value in vars(module).items()
                 if hasattr(value, "fn") and callable(value.fn)}
    found = {name: InterpretedFunction(fn) for name, fn in functions.items()}
    vars(module).update(found)  # kernels call folds by their global names
    return found
