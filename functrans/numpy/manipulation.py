"""Changing the shape of arrays: reshape, reorder axes, flip, roll, and broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

from functrans import lax
from functrans.core.dims import Dim, Size
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    cast,
    index_dtype,
    is_traced,
    operand,
    operands,
    shape_tuple,
    size_of,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.common import broadcast_shapes as _broadcast_shapes
from functrans.numpy.creation import asarray
from functrans.numpy.ufuncs import remainder
from functrans.typing import Array, ArrayLike, ShapeLike


def reshape(a: ArrayLike, shape: ShapeLike, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements of a in another shape, one size of which may be -1.

    >>> import functrans.numpy as jnp
    >>> jnp.reshape(jnp.arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    del copy
    x = operand("reshape", a)
    sizes = _resolve(x, shape)
    if sizes == x.shape:
        return x
    if order == "F":
        back = tuple(reversed(range(len(sizes))))
        turned = lax.reshape(transpose(x), tuple(reversed(sizes)))
        return lax.transpose(turned, back)
    if order not in ("C", "K", "A"):
        raise ArgumentError(f"functrans.numpy.reshape: order is 'C' or 'F', and not {order!r}.",
                            where=user_source())
    return lax.reshape(x, sizes)


def _resolve(x: Array, shape: Any) -> tuple[Any, ...]:
    """The new shape with -1 replaced; checks that the sizes agree."""
    if isinstance(shape, int):
        sizes: tuple[Any, ...] = (shape,)
    elif isinstance(shape, (tuple, list)):
        sizes = tuple(s if not isinstance(s, ARRAYS) else static_int("reshape", s, "shape")
                      for s in shape)
    else:
        sizes = shape_tuple(shape, "reshape")
    unknown = [i for i, s in enumerate(sizes) if isinstance(s, int) and s == -1]
    if len(unknown) == 1:
        known = math.prod(s for i, s in enumerate(sizes) if i != unknown[0])
        if not (isinstance(known, int) and known == 0):
            missing = x.size // known
            sizes = tuple(missing if i == unknown[0] else s for i, s in enumerate(sizes))
        elif x.size == 0:
            sizes = tuple(0 if i == unknown[0] else s for i, s in enumerate(sizes))
    if len(unknown) > 1 or math.prod(sizes) != x.size:
        raise ShapeError(
            f"functrans.numpy.reshape: an array of shape {x.shape} and {x.size} elements does "
            f"not fit shape {tuple(shape) if isinstance(shape, (tuple, list)) else shape}.",
            where=user_source(),
            why=f"{len(unknown)} sizes are -1; only one can be found." if len(unknown) > 1 else
            "the number of elements stays.",
            fix="x.reshape(-1) for a vector; one size may be -1")
    return sizes


def ravel(a: ArrayLike, order: str = "C") -> Array:
    """The elements of a as a vector.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    return reshape(a, (-1,) if size_of(operand("ravel", a)) != 0 else (0,), order)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """a with its axes in the given order, reversed by default.

    >>> import functrans.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3))).shape
    (3, 2)
    """
    x = operand("transpose", a)
    if axes is None:
        order = tuple(range(x.ndim))[::-1]
    else:
        order = axis_tuple(axes, x.ndim, "transpose")
        if len(order) != x.ndim:
            raise ArgumentError(f"functrans.numpy.transpose: axes {tuple(axes)} are not all axes "
                                f"of shape {x.shape}.", where=user_source())
    return lax.transpose(x, order) if x.ndim > 1 else x


permute_dims = transpose


def matrix_transpose(x: ArrayLike, /) -> Array:
    """x with its last two axes exchanged.

    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = operand("matrix_transpose", x)
    if x.ndim < 2:
        raise ShapeError(f"functrans.numpy.matrix_transpose takes matrices, and got shape "
                         f"{x.shape}.", where=user_source())
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """a with two axes exchanged.

    >>> jnp.swapaxes(jnp.array([[1, 2, 3]]), 0, 1)
    Array([[1],
           [2],
           [3]], dtype=int32)
    """
    x = operand("swapaxes", a)
    i, j = axis_index(axis1, x.ndim, "swapaxes"), axis_index(axis2, x.ndim, "swapaxes")
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return lax.transpose(x, tuple(order)) if i != j else x


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """a with axes moved from source to destination, the others in their order.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = operand("moveaxis", a)
    sources = axis_tuple(source, x.ndim, "moveaxis")
    destinations = axis_tuple(destination, x.ndim, "moveaxis")
    if len(sources) != len(destinations):
        raise ArgumentError(f"functrans.numpy.moveaxis: {len(sources)} source axes for "
                            f"{len(destinations)} destinations.", where=user_source())
    order = [i for i in range(x.ndim) if i not in sources]
    for to, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, axis)
    return lax.transpose(x, tuple(order)) if order != list(range(x.ndim)) else x


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """a with axis moved to stand before the axis start.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = operand("rollaxis", a)
    axis = axis_index(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise ArgumentError(f"functrans.numpy.rollaxis: start is out of bounds for {x.ndim} "
                            "dimensions.", where=user_source())
    return moveaxis(x, axis, start - 1 if axis < start else start)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """a without the given axes of size 1, or without all such axes.

    >>> jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = operand("squeeze", a)
    if axis is None:
        axes = tuple(i for i, s in enumerate(x.shape) if isinstance(s, int) and s == 1)
    else:
        axes = axis_tuple(axis, x.ndim, "squeeze")
        for i in axes:
            if x.shape[i] != 1:
                raise ShapeError(f"functrans.numpy.squeeze: axis {i} of shape {x.shape} is not of "
                                 "size 1.", where=user_source())
    return lax.squeeze(x, axes) if axes else x


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """a with new axes of size 1 at the given places of the result.

    >>> jnp.expand_dims(jnp.array([1, 2]), axis=1)
    Array([[1],
           [2]], dtype=int32)
    """
    x = operand("expand_dims", a)
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = axis_tuple(axis, x.ndim + count, "expand_dims")
    return lax.expand_dims(x, axes) if axes else x


def broadcast_to(array: ArrayLike, shape: ShapeLike) -> Array:
    """array repeated along new or size-1 axes to fill shape.

    >>> import functrans.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    x = operand("broadcast_to", array)
    sizes = shape_tuple(shape, "broadcast_to")
    if len(sizes) < x.ndim or _broadcast_shapes(x.shape, sizes, name="broadcast_to") != sizes:
        raise ShapeError(f"functrans.numpy.broadcast_to: shape {x.shape} does not broadcast to "
                         f"{sizes}.", where=user_source())
    return broadcast(x, sizes)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays broadcast to one shape.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    xs = operands("broadcast_arrays", *args)
    shape = _broadcast_shapes(*(x.shape for x in xs), name="broadcast_arrays")
    return [broadcast(x, shape) for x in xs]


def broadcast_shapes(*shapes: ShapeLike) -> tuple[Size, ...]:
    """The shape that arrays of the given shapes broadcast to.

    >>> jnp.broadcast_shapes((2, 1), (3,), (4, 1, 1))
    (4, 2, 3)
    """
    return _broadcast_shapes(*(shape_tuple(s) for s in shapes))


def _at_least(n: int, name: str, arys: tuple[ArrayLike, ...]) -> Array | list[Array]:
    result = []
    for a in arys:
        x = asarray(a)
        if n == 1:
            new: tuple[int, ...] = (0,) if x.ndim == 0 else ()
        elif n == 2:
            new = {0: (0, 1), 1: (0,)}.get(x.ndim, ())
        else:
            new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(x.ndim, ())
        result.append(lax.expand_dims(x, new) if new else x)
    return result[0] if len(result) == 1 else result


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...


def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Scalars as vectors of size 1, other arrays as they are.

    >>> jnp.atleast_1d(5, jnp.array([1, 2]))
    [Array([5], dtype=int32, weak_type=True), Array([1, 2], dtype=int32)]
    """
    return _at_least(1, "atleast_1d", arys)


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...


def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Scalars and vectors as matrices of one row, other arrays as they are.

    >>> jnp.atleast_2d(jnp.array([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    return _at_least(2, "atleast_2d", arys)


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...


@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...


def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of fewer than three dimensions with axes of size 1 added.

    >>> jnp.atleast_3d(jnp.array([[1, 2], [3, 4]])).shape
    (2, 2, 1)
    """
    return _at_least(3, "atleast_3d", arys)


# order along axes ----------------------------------------------------------------------------


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """m in reversed order along axes, all by default.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = operand("flip", m)
    return lax.rev(x, axis_tuple(axis, x.ndim, "flip"))


def flipud(m: ArrayLike) -> Array:
    """m with its first axis reversed.

    >>> jnp.flipud(jnp.array([[1], [2], [3]]))
    Array([[3],
           [2],
           [1]], dtype=int32)
    """
    return flip(m, 0)


def fliplr(m: ArrayLike) -> Array:
    """m with its second axis reversed.

    >>> jnp.fliplr(jnp.array([[1, 2, 3]]))
    Array([[3, 2, 1]], dtype=int32)
    """
    return flip(m, 1)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """m turned by k quarter turns in the plane of two axes, from the first towards the second.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = operand("rot90", m)
    i, j = axis_tuple(axes, x.ndim, "rot90")
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (i, j))
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None
         ) -> Array:
    """a shifted along axes, what leaves at one end entering at the other; shift may be traced.

    >>> import functrans.numpy as jnp
    >>> jnp.roll(jnp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    x = operand("roll", a)
    given: Any = asarray(shift) if isinstance(shift, Dim) else shift
    if axis is None:
        return reshape(roll(ravel(x), given, 0), x.shape)
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if getattr(given, "ndim", 0) > 1:
        raise ArgumentError(f"functrans.numpy.roll: shift is a number or a vector of one for each "
                            f"axis, and has shape {given.shape}.", where=user_source())
    if is_traced(given):
        steps: list[Any] = [given] if not given.ndim else [given[i] for i in range(given.shape[0])]
    else:
        steps = [static_int("roll", s, "shift")
                 for s in (given if isinstance(given, (list, tuple)) else _flat(given))]
    if len(steps) == 1:
        steps = steps * len(axes)
    if len(axes) == 1:
        axes = axes * len(steps)
    if len(steps) != len(axes):
        raise ArgumentError(f"functrans.numpy.roll: {len(steps)} shifts for {len(axes)} axes.",
                            where=user_source())
    for step, ax in zip(steps, axes, strict=True):
        x = _roll_axis(x, step, axis_index(ax, x.ndim, "roll"))
    return x


def _flat(shift: Any) -> list[Any]:
    if isinstance(shift, int):
        return [shift]
    x = operand("roll", shift)
    return [int(s) for s in ravel(x).tolist()]


def _roll_axis(x: Array, step: Any, axis: int) -> Array:
    size = x.shape[axis]
    if isinstance(size, int) and size == 0:
        return x
    if isinstance(step, int):
        step = step % size
        if isinstance(step, int) and step == 0:
            return x
        return lax.concatenate([slice_axis(x, size - step, size, axis),
                                slice_axis(x, 0, size - step, axis)], axis)
    start = cast(remainder(-step, size), index_dtype(size + size))
    zero = wrap(start.dtype.type(0))
    doubled = lax.concatenate([x, x], axis)
    starts = [start if i == axis else zero for i in range(x.ndim)]
    return lax.dynamic_slice(doubled, starts, x.shape)
