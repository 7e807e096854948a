"""broadcast_in_dim and reduce_sum, which transpose into each other, and transpose.

Every batching rule moves and repeats axes with these three.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans._runtime import wrap
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval, operand_avals
from functrans.core.dims import Shape, Size
from functrans.core.errors import ShapeError
from functrans.core.primitive import Cost, Sample
from functrans.core.source import user_source
from functrans.primitives.base import LinearPrimitive, full, sample_array

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["align_batch", "broadcast_batch", "broadcast_in_dim", "broadcast_in_dim_p",
           "canonical_axes", "move_axis", "reduce_sum", "reduce_sum_p", "size_array", "transpose",
           "transpose_p"]


class BroadcastInDim(LinearPrimitive):
    """An array of `shape` whose dimension `broadcast_dimensions[i]` is dimension i of x.

    Dimensions of size 1 are stretched; the order of the dimensions is kept.
    """

    widens_halves = False
    is_quiet = True

    def type(self, x: ShapedArray, *, shape: Shape,
             broadcast_dimensions: tuple[int, ...]) -> ShapedArray:
        if len(broadcast_dimensions) != x.ndim:
            raise ShapeError(f"broadcast_in_dim: {x} needs {x.ndim} broadcast_dimensions, got "
                             f"{broadcast_dimensions}.", where=user_source())
        if (list(broadcast_dimensions) != sorted(set(broadcast_dimensions))
                or any(not 0 <= d < len(shape) for d in broadcast_dimensions)):
            raise ShapeError(f"broadcast_in_dim: the dimensions {broadcast_dimensions} are not "
                             f"increasing dimensions of the result shape {shape}.",
                             where=user_source())
        for size, d in zip(x.shape, broadcast_dimensions, strict=True):
            if size != 1 and size != shape[d]:
                raise ShapeError(f"broadcast_in_dim: {x} does not broadcast to {shape} along "
                                 f"{broadcast_dimensions}.", where=user_source(),
                                 why=f"dimension {d} has size {shape[d]}, the operand's {size}.",
                                 fix="only dimensions of size 1 can be repeated")
        return ShapedArray(shape, x.dtype, x.weak_type)

    def evaluate(self, x: Any, *, shape: tuple[int, ...],
                 broadcast_dimensions: tuple[int, ...]) -> np.ndarray[Any, Any]:
        x = np.asarray(x)
        expanded = [1] * len(shape)
        for size, d in zip(x.shape, broadcast_dimensions, strict=True):
            expanded[d] = size
        return np.broadcast_to(x.reshape(expanded), shape)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        result = _runtime.broadcast_view(args[0], params["shape"], params["broadcast_dimensions"])
        return super().evaluate_eagerly(args, params) if result is NotImplemented else result

    def transpose(self, ct: Any, x: Any, *, shape: Shape,
                  broadcast_dimensions: tuple[int, ...]) -> tuple[Any]:
        kept = [d for size, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
                if size == shape[d]]
        ct = reduce_sum(ct, tuple(d for d in range(len(shape)) if d not in kept))
        if len(kept) < x.aval.ndim:
            at = tuple(i for i, d in enumerate(broadcast_dimensions) if d in kept)
            ct = broadcast_in_dim(ct, x.aval.shape, at)
        return (ct,)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, shape: Shape,
              broadcast_dimensions: tuple[int, ...]) -> tuple[Any, int]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        x = move_axis(x, axis, 0)
        dims = (0, *(d + 1 for d in broadcast_dimensions))
        return broadcast_in_dim(x, (x.shape[0], *shape), dims), 0

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(0, x.nbytes + self.type(x, **params).nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3),), {"shape": (2, 3), "broadcast_dimensions": (1,)})
        yield Sample((sample_array(2, 1),), {"shape": (2, 4, 3), "broadcast_dimensions": (0, 2)})
        yield Sample((sample_array(),), {"shape": (2, 2), "broadcast_dimensions": ()})


BLOCK = 128  # elements that are added in sequence, as NumPy does it along rows


def _summed(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Any:
    """The sum over axes; of floats in blocks, so that the error grows with a logarithm.

    NumPy adds in pairs along the last axis alone: 10^7 tenths in a column are 9 % too few.
    """
    if dtypes.kind(x.dtype) not in "fc":
        return np.add.reduce(x, axes, dtype=x.dtype)
    if len(axes) > 1:
        *others, last = sorted(axes)
        return _summed(_summed(x, (last,)), tuple(others))
    for axis in axes:
        n = x.shape[axis]
        if n <= 2 * BLOCK or x.strides[axis] == x.itemsize:
            continue
        cut, before, behind = n // BLOCK * BLOCK, (slice(None),) * axis, x.shape[axis + 1:]
        blocks = x[(*before, slice(cut))].reshape(*x.shape[:axis], cut // BLOCK, BLOCK, *behind)
        sums = np.add.reduce(blocks, axis + 1, dtype=x.dtype)
        rest = np.add.reduce(x[(*before, slice(cut, n))], axis, keepdims=True, dtype=x.dtype)
        return _summed(np.concatenate([sums, rest], axis), axes)
    return np.add.reduce(x, axes, dtype=x.dtype)


class ReduceSum(LinearPrimitive):
    """Sum of x over `axes`."""

    def type(self, x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        return reduced_type(self.name, x, axes)

    def evaluate(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        if x.dtype == np.bool_:
            return np.logical_or.reduce(x, axes)
        return _summed(x, axes)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        result = _runtime.sum_over(args[0], params["axes"])
        return super().evaluate_eagerly(args, params) if result is NotImplemented else result

    def transpose(self, ct: Any, x: Any, *, axes: tuple[int, ...]) -> tuple[Any]:
        kept = tuple(d for d in range(x.aval.ndim) if d not in axes)
        return (broadcast_in_dim(ct, x.aval.shape, kept),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], /,
              **params: Any) -> Any:
        return batch_reduction(self, operands[0], axes[0], **params)

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes + self.type(x, **params).nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 4),), {"axes": (0,)})
        yield Sample((sample_array(2, 3, 4),), {"axes": (0, 2)})
        yield Sample((sample_array(3, 0),), {"axes": (1,)})


class Transpose(LinearPrimitive):
    """x with its axes in the order of `permutation`."""

    widens_halves = False
    is_quiet = True

    def type(self, x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
        if sorted(permutation) != list(range(x.ndim)):
            raise ShapeError(f"transpose: {permutation} is not a permutation of the {x.ndim} axes "
                             f"of {x}.", where=user_source())
        return x.with_shape(tuple(x.shape[p] for p in permutation))

    def evaluate(self, x: Any, *, permutation: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return np.asarray(x).transpose(permutation)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        result = _runtime.transpose_view(args[0], params["permutation"])
        return super().evaluate_eagerly(args, params) if result is NotImplemented else result

    def transpose(self, ct: Any, x: Any, *, permutation: tuple[int, ...]) -> tuple[Any]:
        inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
        return (transpose(ct, tuple(inverse)),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              permutation: tuple[int, ...]) -> tuple[Any, int]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        rest = [d for d in range(x.ndim) if d != axis]
        return transpose(x, (axis, *(rest[p] for p in permutation))), 0

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(0, x.nbytes + x.nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(2, 3),), {"permutation": (1, 0)})
        yield Sample((sample_array(2, 3, 4),), {"permutation": (2, 0, 1)})


broadcast_in_dim_p = BroadcastInDim()
reduce_sum_p = ReduceSum()
transpose_p = Transpose()


def broadcast_in_dim(operand: ArrayLike, shape: Sequence[Size],
                     broadcast_dimensions: Sequence[int]) -> Array:
    """The operand repeated to `shape`, its dimension i becoming dimension broadcast_dimensions[i].

    Dimensions that are not in rising order are a transpose of the operand.

    >>> import functrans as ft
    >>> ft.lax.broadcast_in_dim(ft.numpy.arange(2), (3, 2), (1,)).shape
    (3, 2)
    """
    dims = tuple(broadcast_dimensions)
    if len(dims) > 1 and len(set(dims)) == len(dims) == get_aval(operand).ndim \
            and dims != (rising := tuple(sorted(dims))):
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        operand, dims = transpose_p.bind(operand, permutation=order), rising
    return broadcast_in_dim_p.bind(operand, shape=tuple(shape), broadcast_dimensions=dims)


def reduce_sum(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Sum of the operand over non-negative `axes`; the operand itself when there are none.

    >>> import functrans as ft
    >>> ft.lax.reduce_sum(ft.numpy.ones((2, 3)), (0,)).shape
    (3,)
    """
    if len(axes):
        return reduce_sum_p.bind(operand, axes=tuple(axes))
    return operand  # type: ignore[return-value]  # an operand of any kind is its own sum


def size_array(size: Size, dtype: Any) -> Any:
    """A size as an integer of rank 0: a NumPy one, or counted when the program runs."""
    if isinstance(size, int):
        return np.asarray(size, dtype)
    return reduce_sum(full((size,), 1, dtype), (0,))


def transpose(operand: Array, permutation: Sequence[int]) -> Array:
    """The operand with its axes in the order of `permutation`; itself when that changes nothing.

    >>> import functrans as ft
    >>> ft.lax.transpose(ft.numpy.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))) and len(permutation) == operand.ndim:
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def move_axis(x: Array, source: int, destination: int) -> Array:
    """x with one axis moved; x itself when it is there already."""
    if source == destination:
        return x
    order = [d for d in range(x.ndim) if d != source]
    order.insert(destination, source)
    return transpose(x, order)


def broadcast_batch(x: Any, size: Size) -> Array:
    """x repeated along a new leading axis."""
    x = x if hasattr(x, "shape") else np.asarray(x, dtypes.canonical_scalar(x))
    return broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))


def align_batch(operands: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """All operands with the mapped axis in front, repeated where they had none."""
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    if not all(hasattr(x, "dtype") for x in operands):  # Python scalars among them
        avals = operand_avals(operands, "vmap")
        operands = [x if hasattr(x, "dtype") else wrap(np.asarray(x, a.dtype), a.weak_type)
                    for x, a in zip(operands, avals, strict=True)]
    return [broadcast_batch(x, size) if a is None else move_axis(x, a, 0)
            for x, a in zip(operands, axes, strict=True)]


def batch_reduction(primitive: Any, x: Any, axis: int | None, *, axes: tuple[int, ...],
                    **params: Any) -> tuple[Any, int]:
    """The batching rule of every reduction: shift the axes, keep the mapped one where it is."""
    assert axis is not None
    shifted = tuple(d + (d >= axis) for d in axes)
    return (primitive.bind(x, axes=shifted, **params), axis - sum(d < axis for d in shifted))


def reduced_type(name: str, x: ShapedArray, axes: tuple[int, ...]) -> ShapedArray:
    """The type of a reduction: x without `axes`."""
    kept = _kept_axes(x.ndim, axes)
    if kept is None:
        raise ShapeError(f"{name}: the axes {axes} are not distinct axes of {x}.",
                         where=user_source(), fix=f"use axes between 0 and {x.ndim - 1}")
    return x.with_shape(tuple([x.shape[d] for d in kept]))


@functools.lru_cache(maxsize=256)
def _kept_axes(ndim: int, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes that a reduction leaves; None if its own are not distinct ones of so many."""
    if any(not 0 <= d < ndim for d in axes) or len(set(axes)) != len(axes):
        return None
    return tuple([d for d in range(ndim) if d not in axes])


def canonical_axes(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative ints; None means all of them."""
    if axes is None:
        return tuple(range(ndim))
    given = (axes,) if isinstance(axes, (int, np.integer)) else tuple(axes)
    result = []
    for axis in given:
        axis = int(axis)
        if not -ndim <= axis < ndim:
            raise ShapeError(f"axis {axis} is out of bounds for an array of {ndim} dimensions.",
                             where=user_source())
        result.append(axis % ndim)
    if len(set(result)) != len(result):
        raise ShapeError(f"the axes {given} name one axis twice.", where=user_source())
    return tuple(sorted(result))


def prod(sizes: Sequence[Size]) -> Size:
    return math.prod(sizes)
