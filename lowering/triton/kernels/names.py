"""Names of element types in Triton, and numbers as its source text."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["MEMORY", "REGISTER", "literal"]

MEMORY = {"f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "bf16", "i8": "i8", "i16": "i16",
          "i32": "i32", "i64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
          "bool": "u8", "f8e4": "u8", "f8e5": "u8"}
"""The types of elements in memory, as in signatures."""

REGISTER = {"f32": "tl.float32", "f64": "tl.float64", "f16": "tl.float16", "bf16": "tl.bfloat16",
            "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64",
            "u8": "tl.uint8", "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64",
            "bool": "tl.int1", "f8e4": "tl.uint8", "f8e5": "tl.uint8"}


def literal(value: Any, dtype: str) -> str:
    """A number of a dtype; the text has that dtype wherever it stands."""
    if dtype == "bool":
        return f"tl.full((), {int(bool(value))}, tl.int1)"
    if dtype[0] == "f":
        number = float(value)
        if math.isnan(number):
            text = "float('nan')"
        elif math.isinf(number):
            text = "float('inf')" if number > 0 else "float('-inf')"
        else:
            text = repr(number)
        return f"tl.full((), {text}, {REGISTER[dtype]})"
    return f"tl.full((), {int(value)}, {REGISTER[dtype]})"
