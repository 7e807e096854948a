"""scatter_apply: a function of what is at every index vector, in place of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core.dims import Size, is_static
from functrans.lax.loops import while_loop
from functrans.primitives.arithmetic import add
from functrans.primitives.base import full
from functrans.primitives.compare import gt, lt, where
from functrans.primitives.index import scatter_add
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.reduce import reduce_max
from functrans.primitives.scatter import is_single
from functrans.typing import Array, ArrayLike

__all__ = ["scatter_apply"]


def scatter_apply(operand: Array, scatter_indices: ArrayLike, func: Callable[[Array], ArrayLike],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[Size] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with `func` applied at every index vector, as often as the vector is there.

    `func` is elementwise; `update_shape` is the shape that updates of these indices would have.
    Raises ShapeError when the numbers do not fit.

    >>> import functrans as ft
    >>> numbers = ft.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> i = ft.numpy.array([[1], [1]])
    >>> ft.lax.scatter_apply(ft.numpy.ones(2), i, lambda x: x + 1, numbers, update_shape=(2,))
    Array([1., 3.], dtype=float32)
    """
    counts = scatter_add(
        full(operand.shape, 0, np.int32), scatter_indices, full(tuple(update_shape), 1, np.int32),
        dimension_numbers, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
        mode=mode)

    def applied(times: Any, x: Array) -> Array:
        """func where a place is named more than so many times; elsewhere it may meet no x."""
        here = gt(counts, times)
        return where(here, func(where(here, x, 0)), x)

    x = applied(np.int32(0), operand)
    if unique_indices or is_single(scatter_indices):
        return x
    if isinstance(counts, ArrayBase):
        most = int(np.max(counts, initial=0))
    elif isinstance(scatter_indices, np.ndarray):
        vectors = scatter_indices.reshape(-1, scatter_indices.shape[-1])
        most = int(np.unique(vectors, axis=0, return_counts=True)[1].max(initial=0))
    else:
        return _until_counted(x, counts, applied)
    for times in range(1, most):
        x = applied(np.int32(times), x)
    return x


def _until_counted(x: Array, counts: Any, applied: Callable[[Any, Array], Array]) -> Array:
    """Applied again until every place has had its number, which is known when the program runs."""
    if is_static(counts.shape) and counts.size == 0:
        return x
    most = reduce_max(counts, tuple(range(counts.ndim)))
    first: tuple[Any, Array] = (np.int32(1), x)
    return while_loop(lambda c: lt(c[0], most), lambda c: (add(c[0], 1), applied(*c)), first)[1]
