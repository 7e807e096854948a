"""Axes of signals: neighbourhoods, continuation beyond the ends, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import slice_axis
from functrans.typing import Array


def neighbours(x: Array, footprint: np.ndarray[Any, Any]) -> Array:
    """The elements within a footprint, stacked along a new first axis, at all places inside x."""
    rows = []
    for offset in np.argwhere(footprint):
        index = tuple(slice(int(o), int(o) + n - k + 1)
                      for o, n, k in zip(offset, x.shape, footprint.shape))
        rows.append(x[index])
    return jnp.stack(rows)


def odd_ext(name: str, x: Array, count: int) -> Array:
    """x along its last axis, continued by `count` points mirrored at its first and last ones."""
    _long_enough(name, x, count)
    left = 2 * x[..., :1] - x[..., count:0:-1]
    right = 2 * x[..., -1:] - slice_axis(x, x.shape[-1] - 1 - count, x.shape[-1] - 1)[..., ::-1]
    return jnp.concatenate([left, x, right], axis=-1)


def even_ext(name: str, x: Array, count: int) -> Array:
    """x along its last axis, continued by `count` points in reverse."""
    _long_enough(name, x, count)
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], mode="reflect")


def const_ext(name: str, x: Array, count: int) -> Array:
    """x along its last axis, continued by its first and last points."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], mode="edge")


def zero_ext(name: str, x: Array, count: int) -> Array:
    """x along its last axis, continued by zeros."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)])


EXTENSIONS = {"odd": odd_ext, "even": even_ext, "constant": const_ext, "zeros": zero_ext}


def _long_enough(name: str, x: Array, count: int) -> None:
    if x.shape[-1] <= count:
        raise ShapeError(f"functrans.scipy.{name}: the signal has {x.shape[-1]} points.",
                         where=user_source(), why=f"it is continued by {count} of its points, and "
                         "needs one more than that.", fix="padlen=0, or another padtype")


def frames(x: Array, size: int, step: int) -> Array:
    """Frames of `size` points, `step` apart, along a new axis before the last one."""
    count = (x.shape[-1] - size) // step + 1
    lead = x.shape[:-1]
    if count < 1:
        raise ArgumentError(f"a signal of {x.shape[-1]} points has no frame of {size}.",
                            where=user_source())
    if size % step == 0:
        # shifted views of one array of blocks, which are index arithmetic to a compiler
        shifts = size // step
        blocks = slice_axis(x, 0, (count + shifts - 1) * step).reshape(
            *lead, count + shifts - 1, step)
        return jnp.concatenate([blocks[..., i:i + count, :] for i in range(shifts)], axis=-1)
    return jnp.take(x, np.arange(count)[:, None] * step + np.arange(size), axis=-1)


def overlap_add(x: Array, step: int) -> Array:
    """The sum of frames that are `step` points apart: the transpose of `frames`."""
    count, size = x.shape[-2:]
    lead, length = x.shape[:-2], (count - 1) * step + size
    if size % step == 0:
        shifts = size // step
        total = None
        for i in range(shifts):
            width = [(0, 0)] * len(lead) + [(i, shifts - 1 - i), (0, 0)]
            part = jnp.pad(x[..., i * step:(i + 1) * step], width)
            total = part if total is None else total + part
        assert total is not None
        return total.reshape(*lead, length)
    places = np.arange(count)[:, None] * step + np.arange(size)
    return jnp.zeros((*lead, length), x.dtype).at[..., places].add(x)


def along_last(x: Array, axis: int) -> Array:
    """x with an axis moved to the end."""
    return jnp.moveaxis(x, axis, -1)


def per_axis(name: str, argument: str, value: Any, axes: Sequence[int]) -> list[Any]:
    """A value for each axis, where one was given for all or a sequence."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        if len(value) != len(axes):
            raise ArgumentError(f"functrans.scipy.{name}: {argument} has {len(value)} values for "
                                f"{len(axes)} axes.", where=user_source())
        return list(value)
    return [value] * len(axes)
