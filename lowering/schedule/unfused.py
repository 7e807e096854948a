"""Plain schedules: values that are not computed together with others, where that has failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Stored, Tensor

__all__ = ["ALL_FUSED", "UnfusedValues"]


@dataclass(frozen=True)
class UnfusedValues:
    """The values of a graph that have kernels, or calls, of their own: those that are `apart`.

    What the kernels of `bare` values read is in memory, too; the others compute some of it inside.
    With `whole` no pass after the first one changes the schedule.
    """

    apart: frozenset[Tensor] = frozenset()
    bare: frozenset[Tensor] = frozenset()
    whole: bool = False

    def has(self, tensors: Iterable[Tensor]) -> bool:
        """Whether some of the tensors are to be apart."""
        return bool(self.apart) and not self.apart.isdisjoint(tensors)

    def roots(self, items: Sequence[Tensor | Call]) -> set[Tensor]:
        """What is in memory so that bare values find all they read there."""
        live = {t for t in items if isinstance(t, Tensor)}
        read = {x for t in self.bare if t in live for x in t.operands}
        return {t for t in read | (self.apart & live) if t in live and not isinstance(t, Stored)
                and (t.shape or t.operands)}  # numbers stay in the text


ALL_FUSED = UnfusedValues()
