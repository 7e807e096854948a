"""Calls: the steps of a program that are not expressions of the loop language."""

from __future__ import annotations

from collections.abc import Sequence

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.source import Source
from functrans.lowering.loops.tensor import Stored, Tensor

__all__ = ["Call", "HostCall"]


class Call:
    """Reads its operands from memory, writes its results to memory."""

    name = "call"
    has_effect = False
    scratch: Sequence[Size] = ()
    """Bytes of memory that it needs besides operands and results."""

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Stored],
                 source: Source | None) -> None:
        self.operands = tuple(operands)
        self.results = tuple(results)
        self.source = source

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.operands))})"


class HostCall(Call):
    """An equation that Python evaluates: callbacks, and primitives without a rule."""

    name = "host call"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(operands, results, eqn.source)
        self.eqn = eqn
        self.has_effect = eqn.primitive.has_effect
