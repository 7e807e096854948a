"""What operations and programs cost: the one walk over a program that adds it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functrans.core.dims import Size

if TYPE_CHECKING:
    from functrans.core.jaxpr import Jaxpr

__all__ = ["Cost", "highest_cost", "jaxpr_cost", "total_cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Floating-point operations and bytes moved by one application; may be symbolic."""

    flops: Size
    bytes: Size

    def times(self, count: Size) -> Cost:
        """Of so many applications."""
        return Cost(self.flops * count, self.bytes * count)


def total_cost(costs: Sequence[Cost]) -> Cost:
    """Of all of them, one after another."""
    return Cost(sum((c.flops for c in costs), start=0), sum((c.bytes for c in costs), start=0))


def highest_cost(costs: Sequence[Cost]) -> Cost:
    """An upper bound on the cost of one of them: the maximum, or the sum of symbolic costs."""
    return Cost(_bound([c.flops for c in costs]), _bound([c.bytes for c in costs]))


def _bound(sizes: Sequence[Size]) -> Size:
    if len(set(sizes)) == 1:
        return sizes[0]
    if all(isinstance(n, (int, float)) for n in sizes):
        return max(sizes)
    return sum(sizes, start=0)


def jaxpr_cost(jaxpr: Jaxpr) -> Cost:
    """Of one run of a program, by the cost rules of its primitives."""
    return total_cost([eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
                       for eqn in jaxpr.eqns])
