"""Collectives of programs of GPUs: functions of NCCL as steps."""

from __future__ import annotations

from typing import Any, Final

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import HostCall, Tensor
from functrans.lowering.rules.collectives import KINDS, Numbers, numbers_of
from functrans.lowering.rules.graph import CallRule
from functrans.lowering.rules.memory import memory
from functrans.lowering.triton.libraries.functions import CudaLibraryCall

__all__ = ["COLLECTIVE", "RULES", "CollectiveCall"]

COLLECTIVE: Final = "collective"
"""The name of the function of steps."""


class CollectiveCall(CudaLibraryCall):
    """A collective; the interpreter leaves it to the host, which calls the group of the rank."""

    name = "collective"

    def __init__(self, eqn: Equation, operands: list[Tensor], numbers: Numbers) -> None:
        HostCall.__init__(self, eqn, operands, [memory(eqn.outvars[0].aval, eqn.source)])
        *first, ends = numbers
        self.function = COLLECTIVE
        self.numbers = (*first, *ends)


def _rule(eqn: Equation, xs: list[Tensor]) -> Any:
    numbers = numbers_of(eqn)
    return None if numbers is None else CollectiveCall(eqn, xs, numbers)


RULES: Final[dict[Primitive, CallRule]] = dict.fromkeys(KINDS, _rule)
