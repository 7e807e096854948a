"""Movement operations: they change where elements stand, never what they are."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Shape, Size
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import sub
from functrans.primitives.base import LinearPrimitive, sample_array, zeros
from functrans.primitives.broadcast import (
    align_batch,
    broadcast_in_dim,
    move_axis,
    prod,
    reduce_sum,
    transpose,
)
from functrans.primitives.compare import select_n

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, DTypeLike


class Movement(LinearPrimitive, abstract=True):
    """Moves elements: no arithmetic, every element read and written at most once."""

    widens_halves = False
    is_quiet = True

    def cost(self, x: ShapedArray, *rest: ShapedArray, **params: Any) -> Cost:
        out = self.type(x, *rest, **params)
        return Cost(0, out.nbytes + out.nbytes)


class Reshape(Movement):
    """The elements of x in row-major order, in another shape."""

    def type(self, x: ShapedArray, *, new_sizes: Shape) -> ShapedArray:
        if prod(new_sizes) != x.size:
            raise ShapeError(f"cannot reshape {x} to {new_sizes}.", where=user_source(),
                             why=f"the sizes are {x.size} and {prod(new_sizes)}.",
                             fix="x.reshape(..., -1) fills in one size")
        return x.with_shape(new_sizes)

    def evaluate(self, x: Any, *, new_sizes: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return np.asarray(x).reshape(new_sizes)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        result = _runtime.reshape_view(args[0], params["new_sizes"])
        return super().evaluate_eagerly(args, params) if result is NotImplemented else result

    def transpose(self, ct: Any, x: Linear, **params: Any) -> tuple[Any]:
        return (reshape(ct, x.aval.shape),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              new_sizes: Shape) -> tuple[Any, int]:
        x = move_axis(operands[0], axes[0] or 0, 0)
        return reshape(x, (x.shape[0], *new_sizes)), 0

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(2, 6),), {"new_sizes": (3, 4)})
        yield Sample((sample_array(),), {"new_sizes": (1, 1)})


class Slice(Movement):
    """The elements from `start_indices` to before `limit_indices`, every `strides`-th."""

    def type(self, x: ShapedArray, *, start_indices: Shape, limit_indices: Shape,
             strides: tuple[int, ...]) -> ShapedArray:
        if not len(start_indices) == len(limit_indices) == len(strides) == x.ndim:
            raise ShapeError(f"slice: starts {start_indices}, limits {limit_indices} and strides "
                             f"{strides} do not have one entry per dimension of {x}.",
                             where=user_source())
        sizes = []
        for size, start, limit, stride in zip(x.shape, start_indices, limit_indices, strides,
                                              strict=True):
            bounds = (size, start, limit)
            if not any(isinstance(b, Dim) for b in bounds) and not (
                    0 <= start <= limit <= size and stride > 0):
                raise ShapeError(f"slice: [{start}:{limit}:{stride}] is not within a dimension of "
                                 f"size {size} of {x}.", where=user_source(),
                                 fix="0 <= start <= limit <= size, stride > 0")
            sizes.append(limit - start if stride == 1 else (limit - start + stride - 1) // stride)
        return x.with_shape(tuple(sizes))

    def evaluate(self, x: Any, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
                 strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
        index = tuple(map(builtins.slice, start_indices, limit_indices, strides))
        return np.asarray(x)[index]

    def transpose(self, ct: Any, x: Linear, *, start_indices: Shape, limit_indices: Shape,
                  strides: tuple[int, ...]) -> tuple[Any]:
        padding = []
        for size, start, n, stride in zip(x.aval.shape, start_indices, ct.shape, strides,
                                          strict=True):
            used = start if _is_zero(n) else start + (n - 1) * stride + 1
            padding.append((start, size - used, stride - 1))
        return (pad(ct, np.zeros((), x.aval.dtype), padding),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, start_indices: Shape,
              limit_indices: Shape, strides: tuple[int, ...]) -> tuple[Any, int]:
        x = move_axis(operands[0], axes[0] or 0, 0)
        return slice_p.bind(x, start_indices=(0, *start_indices),
                            limit_indices=(x.shape[0], *limit_indices),
                            strides=(1, *strides)), 0

    def samples(self) -> Iterator[Sample]:
        x = sample_array(5, 4)
        yield Sample((x,), {"start_indices": (1, 0), "limit_indices": (4, 3), "strides": (1, 1)})
        yield Sample((x,), {"start_indices": (0, 1), "limit_indices": (5, 4), "strides": (2, 3)})


class Pad(Primitive):
    """x with `low` and `high` values before and after each dimension and `interior` in between.

    Negative widths take elements away.
    """

    widens_halves = False
    is_quiet = True

    def type(self, x: ShapedArray, value: ShapedArray, *,
             padding_config: tuple[tuple[Size, Size, int], ...]) -> ShapedArray:
        if value.shape or value.dtype != x.dtype:
            raise ShapeError(f"pad: the padding value must be a scalar of {x.dtype}, got {value}.",
                             where=user_source(), fix=f"numpy.asarray(0, {x.dtype.name!r})")
        if len(padding_config) != x.ndim:
            raise ShapeError(f"pad: {len(padding_config)} widths for the dimensions of {x}.",
                             where=user_source())
        sizes = []
        for size, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            if interior:
                size = size + (0 if _is_zero(size) else (size - 1) * interior)
            size = low + size + high
            if not isinstance(size, Dim) and size < 0:
                raise ShapeError(f"pad: {padding_config} takes away more than there is of {x}.",
                                 where=user_source())
            sizes.append(size)
        return x.with_shape(tuple(sizes))

    def evaluate(self, x: Any, value: Any, *,
                 padding_config: tuple[tuple[int, int, int], ...]) -> np.ndarray[Any, Any]:
        x = np.asarray(x)
        x = x[tuple(builtins.slice(None if i else max(-low, 0), None)
                    for low, _, i in padding_config)]
        shape, where = [], []
        crop = []
        for size, (low, high, interior) in zip(x.shape, padding_config, strict=True):
            if not interior:
                low = max(low, 0)
            spread = size + max(size - 1, 0) * interior
            first, last = max(low, 0), max(high, 0)
            shape.append(first + spread + last)
            where.append(builtins.slice(first, first + spread if size else first, interior + 1))
            crop.append(builtins.slice(max(-low, 0), first + spread + last - max(-high, 0)))
        out = np.full(shape, value, x.dtype)
        out[tuple(where)] = x
        return out[tuple(crop)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x, value), (tx, tv) = primals, tangents
        tx = zeros(get_aval(x).strong()) if tx is None else tx
        tv = zeros(get_aval(value).strong()) if tv is None else tv
        return pad_p.bind(x, value, **params), pad_p.bind(tx, tv, **params)

    def transpose(self, ct: Any, x: Any, value: Any, *,
                  padding_config: tuple[tuple[Size, Size, int], ...]) -> tuple[Any, Any]:
        undo = tuple((-low, -high, 0) for low, high, _ in padding_config)
        inner = pad(ct, np.zeros((), ct.dtype), undo)
        strides = tuple(i + 1 for _, _, i in padding_config)
        if any(s != 1 for s in strides):
            inner = slice(inner, (0,) * inner.ndim, inner.shape, strides)
        ct_value = None
        if isinstance(value, Linear):
            axes = tuple(range(ct.ndim))
            ct_value = sub(reduce_sum(ct, axes), reduce_sum(inner, tuple(range(inner.ndim))))
        return inner if isinstance(x, Linear) else None, ct_value

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              padding_config: tuple[tuple[Size, Size, int], ...]) -> tuple[Any, int]:
        (x, value), (x_axis, value_axis) = operands, axes
        if value_axis is None:
            x = move_axis(x, x_axis or 0, 0)
            return pad_p.bind(x, value, padding_config=((0, 0, 0), *padding_config)), 0
        # one value per lane: pad with zeros, and add the values where the padding is
        x, value = align_batch(operands, axes)
        config = ((0, 0, 0), *padding_config)
        zero = np.zeros((), x.dtype)
        inside = pad(broadcast_in_dim(np.ones((), np.bool_), x.shape, ()), np.False_, config)
        padded = pad(x, zero, config)
        return select_n(inside, broadcast_in_dim(value, padded.shape, (0,)), padded), 0

    def samples(self) -> Iterator[Sample]:
        x, v = sample_array(3, 2), np.float32(0.5)
        yield Sample((x, v), {"padding_config": ((1, 2, 0), (0, 1, 0))})
        yield Sample((x, v), {"padding_config": ((1, 0, 1), (-1, 2, 0))})
        yield Sample((x, v), {"padding_config": ((0, -1, 0), (2, 2, 2))})
        yield Sample((x, v), {"padding_config": ((-2, 1, 2), (0, 0, 0))})


class Concatenate(Primitive):
    """The operands one after the other along `dimension`."""

    widens_halves = False
    is_quiet = True

    def type(self, *operands: ShapedArray, dimension: int) -> ShapedArray:
        first = operands[0]
        for x in operands:
            if (x.ndim != first.ndim or x.dtype != first.dtype
                    or any(a != b for d, (a, b) in enumerate(zip(x.shape, first.shape, strict=True))
                           if d != dimension)):
                names = ", ".join(map(str, operands))
                difference = "in dtype" if x.dtype != first.dtype else \
                    f"outside dimension {dimension}"
                raise ShapeError(f"concatenate: the operands {names} differ {difference}.",
                                 where=user_source(),
                                 why="only the dimension that is joined may differ.")
        if not 0 <= dimension < first.ndim:
            raise ShapeError(f"concatenate: {first} has no dimension {dimension}.",
                             where=user_source())
        total = sum((x.shape[dimension] for x in operands), start=0)
        shape = (*first.shape[:dimension], total, *first.shape[dimension + 1:])
        return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))

    def evaluate(self, *operands: Any, dimension: int) -> np.ndarray[Any, Any]:
        return np.concatenate(operands, dimension)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if len({get_aval(x).dtype for x in args}) > 1:
            self.type(*map(get_aval, args), **params)  # NumPy would promote
        return super().evaluate_eagerly(args, params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, dimension: int) -> Any:
        filled = [zeros(get_aval(p).strong()) if t is None else t
                  for p, t in zip(primals, tangents, strict=True)]
        return (concatenate_p.bind(*primals, dimension=dimension),
                concatenate_p.bind(*filled, dimension=dimension))

    def transpose(self, ct: Any, *operands: Any, dimension: int) -> tuple[Any, ...]:
        results = []
        start: Size = 0
        for x in operands:
            n = (x.aval if isinstance(x, Linear) else get_aval(x)).shape[dimension]
            results.append(slice_in_dim(ct, start, start + n, axis=dimension)
                           if isinstance(x, Linear) else None)
            start = start + n
        return tuple(results)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimension: int) -> tuple[Any, int]:
        return concatenate_p.bind(*align_batch(operands, axes), dimension=dimension + 1), 0

    def cost(self, *operands: ShapedArray, **params: Any) -> Cost:
        out = self.type(*operands, **params)
        return Cost(0, out.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(2, 3), sample_array(1, 3, seed=1)), {"dimension": 0})
        yield Sample((sample_array(2, 3), sample_array(2, 0), sample_array(2, 1, seed=2)),
                     {"dimension": 1})


class Rev(Movement):
    """x with the order along `dimensions` reversed."""

    def type(self, x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
        if any(not 0 <= d < x.ndim for d in dimensions):
            raise ShapeError(f"rev: {x} has no dimensions {dimensions}.", where=user_source())
        return x

    def evaluate(self, x: Any, *, dimensions: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return np.flip(np.asarray(x), dimensions)

    def transpose(self, ct: Any, x: Linear, *, dimensions: tuple[int, ...]) -> tuple[Any]:
        return (rev(ct, dimensions),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimensions: tuple[int, ...]) -> tuple[Any, int]:
        axis = axes[0] or 0
        return rev(operands[0], tuple(d + (d >= axis) for d in dimensions)), axis

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2),), {"dimensions": (0,)})
        yield Sample((sample_array(3, 2),), {"dimensions": (0, 1)})


class Iota(Primitive):
    """0, 1, 2, ... along `dimension`, the same along the others."""

    creates = True
    widens_halves = False
    is_quiet = True

    def type(self, *, dtype: np.dtype[Any], shape: Shape, dimension: int) -> ShapedArray:
        if not 0 <= dimension < len(shape):
            raise ShapeError(f"iota: no dimension {dimension} in the shape {shape}.",
                             where=user_source())
        if dtypes.kind(dtype) == "b":
            raise DTypeError("iota: booleans cannot count.", where=user_source())
        return ShapedArray(shape, dtype)

    def evaluate(self, *, dtype: np.dtype[Any], shape: tuple[int, ...],
                 dimension: int) -> np.ndarray[Any, Any]:
        line = np.arange(shape[dimension]).astype(dtype)
        view = line.reshape([-1 if d == dimension else 1 for d in range(len(shape))])
        return np.broadcast_to(view, shape)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(**params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(**params), None

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return Cost(0, self.type(**params).nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((), {"dtype": np.dtype(np.int32), "shape": (2, 3), "dimension": 1})
        yield Sample((), {"dtype": np.dtype(np.float32), "shape": (4,), "dimension": 0})


class Copy(Movement):
    """x in memory of its own."""

    def type(self, x: ShapedArray) -> ShapedArray:
        return x

    def evaluate(self, x: Any) -> np.ndarray[Any, Any]:
        return np.array(x)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (ct,)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self.bind(operands[0]), axes[0]

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2),))


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


reshape_p, slice_p, pad_p, concatenate_p = Reshape(), Slice(), Pad(), Concatenate()
rev_p, iota_p, copy_p = Rev(), Iota(), Copy()


def reshape(operand: Array, new_sizes: Sequence[Size], dimensions: Sequence[int] | None = None
            ) -> Array:
    """The elements in row-major order in the shape `new_sizes`, of which one may be -1.

    `dimensions` is the order in which the dimensions are taken before.

    Raises ShapeError when the number of elements differs.

    >>> import functrans as ft
    >>> ft.lax.reshape(ft.numpy.arange(6), (2, -1)).shape
    (2, 3)
    """
    sizes: Shape = tuple(s if isinstance(s, Dim) else operator.index(s) for s in new_sizes)
    if not hasattr(operand, "shape"):
        operand = to_array(operand, "reshape: the operand")
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    shape = operand.shape
    if sizes == shape:
        return operand
    if -1 in sizes:
        at = sizes.index(-1)
        known: Any = prod(sizes[:at] + sizes[at + 1:])
        total: Any = prod(shape)
        if _is_zero(known) or total % known != 0:
            raise ShapeError(f"cannot reshape {get_aval(operand)} to {sizes}.", where=user_source(),
                             why=f"{total} elements do not divide into {known}.")
        sizes = (*sizes[:at], total // known, *sizes[at + 1:])
    return reshape_p.bind(operand, new_sizes=sizes)


def squeeze(array: Array, dimensions: Sequence[int]) -> Array:
    """The array without `dimensions`, which must be of size 1.

    >>> lax.squeeze(jnp.ones((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    dims = {d % array.ndim for d in dimensions}
    if any(array.shape[d] != 1 for d in dims):
        raise ShapeError(f"squeeze: {get_aval(array)} is not of size 1 along {sorted(dims)}.",
                         where=user_source())
    return reshape(array, tuple(s for d, s in enumerate(array.shape) if d not in dims))


def expand_dims(array: Array, dimensions: Sequence[int]) -> Array:
    """The array with new dimensions of size 1 at the places `dimensions` of the result.

    Raises ShapeError for a place that is named twice or that the result does not have.

    >>> lax.expand_dims(jnp.ones((2, 3)), (0, 3)).shape
    (1, 2, 3, 1)
    """
    if not hasattr(array, "shape"):
        array = to_array(array, "expand_dims: the array")
    ndim = array.ndim + len(dimensions)
    dims = {d % ndim for d in dimensions}
    if len(dims) < len(dimensions) or any(not -ndim <= d < ndim for d in dimensions):
        raise ShapeError(f"expand_dims: {tuple(dimensions)} are no different places of the "
                         f"{ndim} axes of the result.", where=user_source())
    rest = iter(array.shape)
    return reshape(array, tuple(1 if d in dims else next(rest) for d in range(ndim)))


def slice(operand: Array, start_indices: Sequence[Size], limit_indices: Sequence[Size],
          strides: Sequence[int] | None = None) -> Array:
    """The elements from start to before limit in every dimension.

    Raises ShapeError when a bound lies outside.

    >>> import functrans as ft
    >>> ft.lax.slice(ft.numpy.arange(5), (1,), (5,), (2,)).tolist()
    [1, 3]
    """
    return slice_p.bind(operand, start_indices=tuple(start_indices),
                        limit_indices=tuple(limit_indices),
                        strides=(1,) * operand.ndim if strides is None else tuple(strides))


def _from_front(index: Size, size: Size) -> Size:
    return index + size if isinstance(index, int) and index < 0 else index


def slice_in_dim(operand: Array, start_index: Size | None, limit_index: Size | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """The elements from start to before limit along one axis; the operand where these are all.

    None is the begin or the end of the axis, and a negative index counts from its end.

    >>> lax.slice_in_dim(jnp.arange(10), 2, 9, stride=3)
    Array([2, 5, 8], dtype=int32)
    """
    axis %= operand.ndim
    size = operand.shape[axis]
    start_index = 0 if start_index is None else _from_front(start_index, size)
    limit_index = size if limit_index is None else _from_front(limit_index, size)
    if _is_zero(start_index) and limit_index == operand.shape[axis] and stride == 1:
        return operand
    starts: list[Size] = [0] * operand.ndim
    limits: list[Size] = list(operand.shape)
    strides = [1] * operand.ndim
    starts[axis], limits[axis], strides[axis] = start_index, limit_index, stride
    return slice(operand, starts, limits, strides)


def pad(operand: Array, padding_value: ArrayLike, padding_config: Sequence[tuple[Size, Size, int]]
        ) -> Array:
    """The operand with (low, high, interior) padding in every dimension; negative widths crop.

    Raises ShapeError when the value is not a scalar of the operand's dtype.

    >>> import functrans as ft
    >>> ft.lax.pad(ft.numpy.arange(3), 9, [(1, 0, 1)]).tolist()
    [9, 0, 9, 1, 9, 2]
    """
    if not hasattr(padding_value, "dtype"):
        padding_value = np.asarray(padding_value, operand.dtype)
    config = tuple((low, high, interior) for low, high, interior in padding_config)
    if all(c == (0, 0, 0) for c in config) and len(config) == operand.ndim:
        return operand
    return pad_p.bind(operand, padding_value, padding_config=config)


def concatenate(operands: Sequence[Array], dimension: int) -> Array:
    """The operands one after the other along `dimension`.

    Raises ShapeError when they differ elsewhere, ValueError when there are none.

    >>> import functrans as ft
    >>> ft.lax.concatenate([ft.numpy.zeros(2), ft.numpy.ones(1)], 0).tolist()
    [0.0, 0.0, 1.0]
    """
    if not len(operands):
        raise ShapeError("concatenate needs at least one operand.", where=user_source())
    if len(operands) == 1:
        return operands[0]
    return concatenate_p.bind(*operands, dimension=dimension)


def rev(operand: Array, dimensions: Sequence[int]) -> Array:
    """The operand with the order along `dimensions` reversed.

    >>> lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return rev_p.bind(operand, dimensions=tuple(dimensions)) if len(dimensions) else operand


def iota(dtype: DTypeLike, size: Size) -> Array:
    """0, 1, ..., size - 1.

    >>> import functrans as ft
    >>> ft.lax.iota("float32", 3).tolist()
    [0.0, 1.0, 2.0]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[Size], dimension: int) -> Array:
    """0, 1, 2, ... along `dimension` of an array of `shape`.

    >>> lax.broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    return iota_p.bind(dtype=dtypes.as_dtype(dtype), shape=tuple(shape), dimension=dimension)


def copy(x: ArrayLike) -> Array:
    """x in memory of its own.

    >>> x = jnp.ones(2)
    >>> lax.copy(x) is x
    False
    """
    return copy_p.bind(x)

