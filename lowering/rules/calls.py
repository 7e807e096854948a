"""Primitives that are calls: of library functions, and of bodies of control flow."""

from __future__ import annotations

from collections.abc import Callable

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Tensor

__all__ = ["RULES"]

CallRule = Callable[[Equation, list[Tensor]], "Call | Tensor | None"]

RULES: dict[str, CallRule] = {}
