"""Running sums, products and extrema of a few elements as operations on one after another.

Where a lane computes them in each step of its loop, a call would keep the loop from being one
kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.avals import get_aval
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.primitives.arithmetic import add, max, min, mul
from functrans.primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.shape import concatenate, slice_in_dim

__all__ = ["write_out_scans"]

MOST: Final = 32
"""Elements along the axis."""
OPERATIONS: Final[dict[Primitive, Callable[[Any, Any], Any]]] = {
    cumsum_p: add, cumprod_p: mul, cummax_p: max, cummin_p: min}


def write_out_scans(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its small running sums written out, in bodies too."""
    return with_functions(with_bodies(jaxpr, write_out_scans), _function_of)


def _function_of(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    operation = OPERATIONS.get(eqn.primitive)
    n = eqn.invars[0].aval.shape[eqn.params["axis"]] if operation is not None else None
    if operation is None or not isinstance(n, int) or n > MOST \
            or eqn.invars[0].aval.dtype.kind not in "iuf":
        return None
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]

    def run(x: Any) -> Sequence[Any]:
        size = get_aval(x).shape[axis]
        parts = [slice_in_dim(x, k, k + 1, axis=axis) for k in range(size)]
        if reverse:
            parts.reverse()
        for k in range(1, size):
            parts[k] = operation(parts[k - 1], parts[k])
        return [concatenate(parts[::-1] if reverse else parts, axis)]

    return run
