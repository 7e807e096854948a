"""detrend: signals less their means or lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index, slice_axis
from functrans.scipy.arguments import inexact, one_of
from functrans.typing import Array, ArrayLike


def detrend(data: ArrayLike, axis: int = -1, type: str = "linear",
            bp: int | Sequence[int] | np.ndarray[Any, Any] = 0, overwrite_data: None = None
            ) -> Array:
    """`data` along an axis less its mean ("constant") or the line of least squares ("linear").

    `bp` are points at which another line begins. Raises ArgumentError for points out of range.

    >>> import functrans as ft
    >>> x = ft.scipy.signal.detrend(ft.numpy.array([1.0, 3.0, 5.0, 6.0]))
    >>> print(x.round(2))
    [-0.2  0.1  0.4 -0.3]
    """
    if overwrite_data is not None:
        raise ArgumentError("functrans.scipy.signal.detrend does not take overwrite_data.",
                            where=user_source(), why="arrays are immutable.")
    one_of("signal.detrend", "type", type, ("linear", "constant", "l", "c"))
    (x,) = inexact(data)
    axis = axis_index(axis, x.ndim, "detrend")
    if type in ("constant", "c"):
        return x - jnp.mean(x, axis=axis, keepdims=True)
    size = x.shape[axis]
    points = sorted({0, size, *(int(b) for b in np.atleast_1d(np.asarray(bp)))})
    if points[0] < 0 or points[-1] > size:
        raise ArgumentError(f"functrans.scipy.signal.detrend: bp is {bp}.", where=user_source(),
                            why=f"there are {size} points.")
    parts = [_straight(slice_axis(x, a, b, axis), axis) for a, b in pairwise(points)]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=axis)


def _straight(x: Array, axis: int) -> Array:
    """x less its line, whose slope is taken about the middle."""
    size = x.shape[axis]
    x = x - jnp.mean(x, axis=axis, keepdims=True)
    if size < 2:
        return x
    places = np.arange(size) - (size - 1) / 2
    t = jnp.asarray(places / np.linalg.norm(places)).astype(x.real.dtype)
    t = t.reshape(*(size if a == axis else 1 for a in range(x.ndim)))
    return x - t * jnp.sum(x * t, axis=axis, keepdims=True)
