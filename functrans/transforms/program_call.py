"""What primitives that do nothing but run a program have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder
from functrans.transforms.batching import front

__all__ = ["ProgramCall"]


class ProgramCall(HigherOrder, abstract=True):
    """A program on operands, pushed forward and mapped as a program of the same kind."""

    def type(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(jaxpr.out_avals)

    def called(self, operands: Sequence[Any], *, jaxpr: Jaxpr,
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        return jaxpr, operands

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        pushed, nonzero = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
        outs = self.bind(*primals, *[t for t in tangents if t is not None], jaxpr=pushed, **params)
        n = len(jaxpr.outvars)
        rest = iter(outs[n:])
        return outs[:n], [next(rest) if nz else None for nz in nonzero]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[int | None]]:
        mapped, out_batched = batch_jaxpr(jaxpr, axis, [a is not None for a in axes])
        outs = self.bind(*front(operands, axes), jaxpr=mapped, **params)
        return outs, [0 if b else None for b in out_batched]
