"""Sorts of a few elements as comparisons and exchanges of neighbours.

Where a lane sorts in each step of its loop, a call would keep the loop from being one kernel.
Neighbours alone are exchanged, and only where they are out of order: equal ones keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.avals import get_aval
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.primitives.compare import bitwise_and, bitwise_or, eq, gt, ne, select_n
from functrans.primitives.shape import concatenate, slice
from functrans.primitives.sort import sort_p

__all__ = ["write_out_sorts"]

MOST: Final = 16
"""Elements of a sort that is written out: 120 exchanges."""


def write_out_sorts(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its small sorts written out, in bodies too."""
    return with_functions(with_bodies(jaxpr, write_out_sorts), _function_of)


def _function_of(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    if eqn.primitive is not sort_p:
        return None
    axis, num_keys = eqn.params["dimension"], eqn.params["num_keys"]
    n = eqn.invars[0].aval.shape[axis]
    if not isinstance(n, int) or n > MOST \
            or any(x.aval.dtype.kind not in "iuf" for x in eqn.invars[:num_keys]):
        return None

    def run(*operands: Any) -> Sequence[Any]:
        rows = [_elements(operands, axis, k) for k in range(n)]
        for end in range(n - 1, 0, -1):
            for k in range(end):
                a, b = rows[k], rows[k + 1]
                turned = _is_greater(a[:num_keys], b[:num_keys])
                rows[k] = [select_n(turned, x, y) for x, y in zip(a, b, strict=True)]
                rows[k + 1] = [select_n(turned, y, x) for x, y in zip(a, b, strict=True)]
        return [concatenate(parts, axis) for parts in zip(*rows, strict=True)]

    return run


def _elements(operands: Sequence[Any], axis: int, k: int) -> list[Any]:
    """The elements of all operands at a place along an axis, which stays with a size of 1."""
    found = []
    for x in operands:
        shape = get_aval(x).shape
        low, high = [0] * len(shape), list(shape)
        low[axis], high[axis] = k, k + 1
        found.append(slice(x, low, high))
    return found


def _is_greater(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Whether keys come after others: the first decides that differs, and NaN is the last."""
    x, y = a[0], b[0]
    greater = gt(x, y)
    is_float = get_aval(x).dtype.kind == "f"
    if is_float:
        greater = bitwise_or(greater, bitwise_and(ne(x, x), eq(y, y)))
    if len(a) == 1:
        return greater
    same = eq(x, y)
    if is_float:
        same = bitwise_or(same, bitwise_and(ne(x, x), ne(y, y)))
    return bitwise_or(greater, bitwise_and(same, _is_greater(a[1:], b[1:])))
