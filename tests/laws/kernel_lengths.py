"""How long the text of a kernel becomes for LLVM and ptxas: instructions of a thread, roughly."""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = ["instructions"]

FREE = ("}", "#", "^bb", "arith.constant", "scf.", "tt.addptr", "tt.broadcast", "tt.expand_dims",
        "tt.make_range", "tt.reshape", "tt.return", "tt.splat", "tt.trans")
SHAPE = re.compile(r"tensor<((?:\d+x)+)")
FUNCTION = re.compile(r'tt\.func .*?@"?([^"(]+)"?\(')
CALL = re.compile(r'tt\.call @"?([^"(]+)"?\(')
SHARES = {"ieee": 1.0, "tf32x3": 0.4, "f64": 0.2, "": 0.05}
"""What a multiply-add takes of an instruction, with those that move operands."""


def instructions(module: Any, warps: int) -> float:
    """Those of the longest function of a module of Triton's first stage, with what it calls.

    Loops are counted once: unless Triton unrolls them, their text is there once.
    """
    found: dict[str, tuple[float, list[str]]] = {}
    name = ""
    for line in str(module).split("\n"):
        text = line.strip()
        if (function := FUNCTION.match(text)):
            name = function[1]
            found[name] = 0.0, []
        elif name:
            count, calls = found[name]
            found[name] = count + _of_line(text) / (32 * warps), calls
            if (call := CALL.search(text)):
                calls.append(call[1])

    def total(function: str) -> float:
        count, calls = found[function]
        return count + sum(total(c) for c in calls if c in found)

    return max(map(total, found))


def _of_line(text: str) -> float:
    """The instructions of all threads; a number of one is computed by all of them."""
    operation = re.sub(r"^%\S+ = ", "", text).lstrip('"')
    shapes = [[int(n) for n in found[1][:-1].split("x")] for found in SHAPE.finditer(text)]
    if not shapes or operation.startswith(FREE):
        return 0.0
    if not operation.startswith("tt.dot"):
        return max(map(math.prod, shapes))
    return math.prod(shapes[0]) * shapes[1][-1] * SHARES[_kind(operation, text)]


def _kind(operation: str, text: str) -> str:
    """The words for precision that a product of Triton has; without one it is exact."""
    types = text.rpartition(" : ")[2]
    if "f64" in types:
        return "f64"
    if "f32" not in types.partition("->")[0].rpartition("*")[0]:
        return ""
    return "tf32x3" if "tf32x3" in operation else "" if "tf32" in operation else "ieee"
