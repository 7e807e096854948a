"""Reading an index expression: what it says of every axis, and where its axes go in the result."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.dims import Dim, Shape, Size, known_relation, same_shape
from functrans.core.eager import is_off_host
from functrans.core.errors import ConcretizationError, IndexingError
from functrans.core.masked import refuse_masked
from functrans.core.record import Record
from functrans.core.source import describe_source, user_source
from functrans.core.trace import Tracer
from functrans.primitives.arithmetic import add, rem
from functrans.primitives.broadcast import broadcast_in_dim, size_array
from functrans.primitives.compare import lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import join_components

__all__ = ["IndexPart", "Indices", "index_text", "negative_outside", "parse_index", "slice_text"]


class IndexPart(NamedTuple):
    """What an index expression says of one axis of the operand, or of a new axis.

    `kind` is "int" (value: an int in bounds), "slice" (value: start, count, step), "array" (value:
    integers, NumPy if they are known), or "new" (axis -1).
    """

    kind: str
    axis: int
    value: Any = None


class Indices(Record):
    """A parsed index expression on an operand of `shape`.

    `order` lists the axes of the result: parts of kind "slice" and "new", and None for the block
    of axes that the index arrays broadcast to (`block`), placed by NumPy's rules.
    """

    shape: Shape
    parts: tuple[IndexPart, ...]
    block: Shape
    order: tuple[IndexPart | None, ...]
    distinct: bool  # the index arrays come from masks: no place twice, in order

    @property
    def arrays(self) -> list[IndexPart]:
        return [p for p in self.parts if p.kind == "array"]

    @property
    def result_shape(self) -> Shape:
        """The shape of the operand indexed."""
        return tuple(s for p in self.order for s in (
            self.block if p is None else (1,) if p.kind == "new" else (p.value[1],)))

    @property
    def core_shape(self) -> Shape:
        """The shape of the operand indexed, without new axes."""
        return tuple(s for p in self.order if p is None or p.kind != "new" for s in (
            self.block if p is None else (p.value[1],)))


def is_known(x: Any) -> bool:
    """Whether the value of an index array is known while Python runs."""
    return isinstance(x, np.ndarray)


def known_value(x: Any) -> Any:
    """An index as a NumPy array if its value is known, else itself."""
    if isinstance(x, ArrayBase):
        return x if is_off_host(x) and dtypes.kind(x.dtype) != "b" else x._np
    if isinstance(x, Tracer):
        value = x.concrete
        return x if value is None else np.asarray(value)
    refuse_masked(x)
    return np.asarray(x)


def _is_array(x: Any) -> bool:
    return isinstance(x, (ArrayBase, Tracer, np.ndarray))


def parse_index(shape: Shape, index: Any, *, clamp_scalars: bool = True,
                ints_in_bounds: bool = True) -> Indices:
    """Read an index expression on an operand of `shape`.

    Integer arrays of rank 0 with known values become ints, clamped into bounds, if
    `clamp_scalars`. Python ints out of bounds are index arrays of rank 0 where the caller says by a
    mode what these mean: not `ints_in_bounds`. Raises IndexingError for what is no index, too many
    indices and Python ints out of bounds, ConcretizationError for traced masks and slice bounds.
    """
    items = _expand(shape, index if isinstance(index, tuple) else (index,), index)
    parts: list[IndexPart] = []
    distinct = True
    axis = 0
    for item in items:
        if item is None or item is Ellipsis:
            parts.append(IndexPart("new" if item is None else "gap", -1))
        elif isinstance(item, slice):
            parts.append(IndexPart("slice", axis, _resolve_slice(item, shape[axis], axis)))
            axis += 1
        elif isinstance(item, (int, np.integer, Dim)):
            item = item if isinstance(item, Dim) else int(item)
            if ints_in_bounds or not _is_outside(item, shape[axis]):
                parts.append(IndexPart("int", axis, _resolve_int(item, shape[axis], axis)))
            else:
                wide = not -2**31 <= item < 2**31
                parts.append(IndexPart("array", axis, np.asarray(item, np.int64 if wide else
                                                                 np.int32)))
                distinct = False
            axis += 1
        elif dtypes.kind(item.dtype) == "b":
            for positions in _mask_positions(item, shape, axis):
                parts.append(IndexPart("array", axis, positions))
                axis += 1
        else:
            value = known_value(item)
            size = shape[axis]
            if clamp_scalars and value.ndim == 0 and is_known(value) and isinstance(size, int) \
                    and size > 0:
                i = int(value)
                i = min(max(i + size if i < 0 else i, 0), size - 1)
                parts.append(IndexPart("int", axis, i))
            else:
                parts.append(IndexPart("array", axis, value))
                distinct = False
            axis += 1
    return _placed(shape, tuple(parts), distinct, index)


def _placed(shape: Shape, parts: tuple[IndexPart, ...], distinct: bool, index: Any) -> Indices:
    """Where the axes of the result go: index arrays stay in place when they stand together."""
    arrays = [p for p in parts if p.kind == "array"]
    basic = [p for p in parts if p.kind in ("slice", "new")]
    real = tuple(p for p in parts if p.kind != "gap")
    if not arrays:
        return Indices(shape, real, (), tuple(basic), True)
    advanced = [i for i, p in enumerate(parts) if p.kind in ("int", "array")]
    # an Ellipsis that stands for no axis still keeps the arrays around it apart, as in NumPy
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    before = sum(p.kind in ("slice", "new") for p in parts[:advanced[0]]) if together else 0
    try:
        block = _together([p.value.shape for p in arrays])
    except ValueError:
        shapes = ", ".join(str(p.value.shape) for p in arrays)
        raise IndexingError(f"the index arrays in x[{index_text(index)}] have shapes {shapes}, "
                            f"which do not broadcast together.", where=user_source()) from None
    return Indices(shape, real, block, (*basic[:before], None, *basic[before:]), distinct)


def _together(shapes: Sequence[Shape]) -> Shape:
    """Shapes broadcast to one; raises ValueError where they do not."""
    if all(same_shape(s, shapes[0]) for s in shapes):
        return tuple(shapes[0])
    return tuple(np.broadcast_shapes(*shapes))


def negative_outside(index: Any) -> Any:
    """The index with negative ints as arrays of rank 0, which stay out of bounds."""
    if isinstance(index, tuple):
        return tuple([negative_outside(item) for item in index])
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool) and index < 0:
        return np.asarray(index, np.int32 if index >= -2**31 else np.int64)
    return index


def _expand(shape: Shape, items: Sequence[Any], index: Any) -> list[Any]:
    """The items of an index with every axis named; Ellipsis stays where it stands for none."""
    used = 0
    dots = None
    for i, item in enumerate(items):
        if item is Ellipsis:
            if dots is not None:
                raise IndexingError("an index has at most one Ellipsis (...).", where=user_source())
            dots = i
        elif item is None or isinstance(item, (int, np.integer, Dim, slice)):
            used += item is not None
        elif _is_array(item) and dtypes.kind(item.dtype) in "iub":
            used += item.ndim if dtypes.kind(item.dtype) == "b" else 1
        else:
            raise _no_index(item)
    missing = len(shape) - used
    if missing < 0:
        raise IndexingError(f"too many indices: x[{index_text(index)}] uses {used} axes of an "
                            f"array of shape {_shape(shape)}.", where=user_source())
    if dots is None:
        return [*items, *[slice(None)] * missing]
    gap: list[Any] = [slice(None)] * missing or [Ellipsis]
    return [*items[:dots], *gap, *items[dots + 1:]]


def _no_index(item: Any) -> IndexingError:
    if isinstance(item, (list, tuple)):
        return IndexingError(
            f"a {type(item).__name__} is no index.", where=user_source(),
            why="NumPy would convert it anew at every call, which hides a cost.",
            fix="x[np.array([...])] or x[[...],] for several elements, x[i, j] for one")
    what = f"an array of dtype {item.dtype}" if _is_array(item) else f"{item!r}"
    return IndexingError(f"{what} is no index.", where=user_source(),
                         why="an index is made of ints, slices, None, Ellipsis, and arrays of "
                             "integers or booleans.",
                         fix="x[i.astype(int)]" if _is_array(item) else "")


def _resolve_int(i: Size, size: Size, axis: int) -> Any:
    negative = known_relation("<", i, 0)
    if known_relation("<", i + size, 0) if negative else known_relation(">=", i, size):
        raise IndexingError(
            f"index {i} is out of bounds for axis {axis} of size {size}.", where=user_source(),
            fix=f"an index from {-size} to {size - 1}, or an index array, which is clamped"
            if size else "check x.shape: the axis is empty")
    return i + size if negative else i


def _is_outside(i: Size, size: Size) -> bool:
    return isinstance(i, int) and isinstance(size, int) and not -size <= i < size


def _bound(value: Any, axis: int) -> Any:
    if value is None or isinstance(value, (int, Dim)):
        return value
    if isinstance(value, Tracer) and value.concrete is None:
        raise ConcretizationError(
            f"a slice of axis {axis} has a traced bound ({value.aval}).", where=user_source(),
            why="the bounds decide the shape of the result, and shapes must be known while a "
                "program is traced.",
            fix="functrans.lax.dynamic_slice_in_dim(x, start, size, axis), or static_argnums in "
                "jit")
    try:
        return operator.index(value)
    except TypeError:
        raise IndexingError(f"a slice bound is an integer or None, and {value!r} is neither.",
                            where=user_source()) from None


def _resolve_slice(s: slice, size: Size, axis: int) -> tuple[Any, Any, int]:
    """(start, count, step): the elements start, start + step, ..., count of them."""
    start, stop, step = (_bound(v, axis) for v in (s.start, s.stop, s.step))
    if isinstance(step, int) and step == 0:
        raise IndexingError(f"the step of a slice of axis {axis} is 0.", where=user_source())
    if all(v is None or isinstance(v, int) for v in (start, stop)) and isinstance(size, int):
        first, last, step = slice(start, stop, step).indices(size)
        return first, len(range(first, last, step)), step
    return _symbolic_slice(start, stop, 1 if step is None else step, size)


def _symbolic_slice(start: Any, stop: Any, step: int, size: Size) -> tuple[Any, Any, int]:
    """A slice with a symbolic bound or of a symbolic size.

    Where nothing is known of the sizes its bounds are taken to be inside.
    """
    def inside(v: Any, low: Any, high: Any) -> Any:
        if (isinstance(v, int) and v < 0) or known_relation("<", v, 0):
            v = v + size
        if known_relation("<", v, low):
            return low
        return high if known_relation(">", v, high) else v

    if step > 0:
        first = 0 if start is None else inside(start, 0, size)
        last = size if stop is None else inside(stop, 0, size)
        length, stride = last - first, step
    else:
        first = size - 1 if start is None else inside(start, -1, size - 1)
        last = -1 if stop is None else inside(stop, -1, size - 1)
        length, stride = first - last, -step
    if known_relation("<", length, 0):
        return 0, 0, step
    return first, (length + (stride - 1)) // stride, step


def _mask_positions(mask: Any, shape: Shape, axis: int) -> Iterator[np.ndarray[Any, Any]]:
    """The positions where a mask over several axes is true, an array for each of these axes."""
    value = known_value(mask)
    if not is_known(value):
        origin = describe_source(mask.origin)
        raise ConcretizationError(
            f"a boolean index is traced ({mask.aval}{origin and ', made '}{origin}).",
            where=user_source(),
            why="how many elements it selects decides the shape of the result, and shapes must be "
                "known while a program is traced.",
            fix="functrans.numpy.where(mask, x, fill_value), or x.at[mask].set(scalar), or "
                "x[functrans.numpy.nonzero(mask, size=n)]")
    if value.shape != tuple(shape[axis:axis + value.ndim]):
        raise IndexingError(
            f"a boolean index of shape {value.shape} does not match the axes it indexes, of shape "
            f"{_shape(shape[axis:axis + value.ndim])}.", where=user_source())
    return iter([positions.astype(np.int32) if max(value.shape, default=0) < 2**31 else positions
                 for positions in value.nonzero()])


# index arrays as operands --------------------------------------------------------------------


def count_from_front(index: Any, size: Size, wrap: bool = False) -> Any:
    """Index values with negative ones counted from the end, or all taken modulo the size."""
    if dtypes.kind(index.dtype) == "u" and not wrap:
        return index
    if is_known(index) and isinstance(size, int):
        if not index.size or (index.min() >= 0 and (not wrap or index.max() < size)):
            return index
        wide = index.astype(np.int64, copy=False)
        wide = wide % max(size, 1) if wrap else np.where(wide < 0, wide + size, wide)
        narrow = wide.astype(np.int32)
        return narrow if np.array_equal(narrow, wide) else wide
    if is_known(index) and not wrap and (not index.size or index.min() >= 0):
        return index
    large = isinstance(size, int) and size >= 2**31
    if index.dtype.itemsize < (8 if large else 4):
        index = convert_element_type(index, np.int64 if large else np.int32)
    n, zero = size_array(size, index.dtype), np.asarray(0, index.dtype)
    if n.ndim != index.ndim and not isinstance(size, int):
        n = broadcast_in_dim(n, index.shape, ())
    index = rem(index, n) if wrap else index
    return select_n(lt(index, zero), index, add(index, n))


def index_vectors(parts: Sequence[Any], shape: Shape, dims: Sequence[Sequence[int]]) -> Any:
    """Components broadcast to `shape`, component k along dims[k] of it, as index vectors."""
    if all(is_known(p) for p in parts):
        dtype = np.result_type(np.int32, *parts)
        if dtype.kind == "f":  # uint64 beside a signed integer
            dtype = np.dtype(np.int64)
        out = np.empty((*shape, len(parts)), dtype)
        for k, (part, at) in enumerate(zip(parts, dims, strict=True)):
            spread = [1] * len(shape)
            for d, s in zip(at[len(at) - part.ndim:], part.shape, strict=True):
                spread[d] = s
            out[..., k] = part.reshape(spread)
        return out
    components = []
    for part, at in zip(parts, dims, strict=True):
        if tuple(part.shape) != tuple(shape):
            part = broadcast_in_dim(part, shape, at[len(at) - part.ndim:])
        components.append(part)
    return join_components(components)


# how an index is spelled in messages ---------------------------------------------------------


def index_text(index: Any) -> str:
    """The index as it would be written between brackets, long arrays shortened."""
    if isinstance(index, tuple) and index:
        return ", ".join(map(index_text, index)) + ("," if len(index) == 1 else "")
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        return slice_text(index)
    if _is_array(index):
        return "i" if dtypes.kind(index.dtype) != "b" else "mask"
    return repr(index)


def slice_text(s: slice) -> str:
    """`1:3`, `::-1`, `:`."""
    start, stop, step = ("" if v is None else index_text(v) for v in (s.start, s.stop, s.step))
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _shape(shape: Sequence[Size]) -> str:
    return str(tuple(shape))


def size_of(shape: Shape) -> Any:
    return math.prod(shape)
