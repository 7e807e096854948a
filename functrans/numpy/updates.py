"""Changing what an index expression names: what `x.at[index].set(v)` and its kin compute.

Ints and slices become a dynamic_update_slice with static starts, which a compiled program does in
place; everything else one scatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans._runtime import ArrayBase, empty, get_trace, wrap
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.dims import Dim
from functrans.core.eager import is_off_host
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.masked import refuse_masked
from functrans.core.record import Record
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.lax.applying import scatter_apply
from functrans.numpy.index_lists import WindowIndex, window_index
from functrans.numpy.index_parts import (
    IndexPart,
    Indices,
    count_from_front,
    index_text,
    index_vectors,
    is_known,
    known_value,
    negative_outside,
    parse_index,
)
from functrans.numpy.indexing import (
    check_mode,
    check_parts,
    numpy_index,
    scalar_masks_expanded,
)
from functrans.numpy.ufuncs import power
from functrans.primitives import scatter as scatters
from functrans.primitives.arithmetic import add, div, max, min, mul, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, size_array
from functrans.primitives.compare import select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import scatter_add
from functrans.primitives.index_checks import looks_at_indices
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.shape import iota, reshape, rev
from functrans.primitives.shape import slice as static_slice
from functrans.typing import Array

__all__ = ["UPDATES", "update", "update_by_function"]

Operation = Callable[[Any, Any], Any]
# index arrays of known values are looked through for repetition up to this many
_MAX_COMPARED = 4096


class UpdateMethod(Record):
    """One way to change elements: by `combine(old, new)`, or with index arrays by `scatter`.

    `ufunc` does the same on NumPy arrays of one dtype; `repeats` where an index repeats too.
    """

    name: str
    combine: Operation
    scatter: Callable[..., Any]
    ufunc: np.ufunc | None = None
    repeats: bool = True


def _replace(old: Any, new: Any) -> Any:
    return new


def _through_product(combine: Operation) -> Callable[..., Any]:
    """Several divisors (or exponents) at one place act as their product."""
    def scatter(x: Any, i: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        ones = full(x.shape, 1, x.dtype)
        return combine(x, scatters.scatter_mul(ones, i, v, *args, **kwargs))

    return scatter


UPDATES = {u.name: u for u in (
    UpdateMethod("set", _replace, scatters.scatter),
    UpdateMethod("add", add, scatter_add, np.add),
    UpdateMethod("subtract", sub, scatters.scatter_sub, np.subtract),
    UpdateMethod("multiply", mul, scatters.scatter_mul, np.multiply),
    UpdateMethod("divide", div, _through_product(div), np.true_divide, repeats=False),
    UpdateMethod("power", power, _through_product(power), np.power, repeats=False),
    UpdateMethod("min", min, scatters.scatter_min, np.minimum),
    UpdateMethod("max", max, scatters.scatter_max, np.maximum),
)}
_NATIVE_FLOATS = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


def _eager(x: ArrayBase, index: Any, values: Any, kind: UpdateMethod) -> Array | None:
    """The update by NumPy on a copy, None where it is not NumPy's to say (or to refuse).

    Values have x's dtype, or are Python numbers that it holds; all index arrays are in bounds.
    """
    dtype = x.dtype
    if is_off_host(x) or is_off_host(values):
        return None
    if isinstance(values, (ArrayBase, np.ndarray)):
        if values.dtype != dtype or isinstance(values, np.ma.MaskedArray):
            return None
        values = values._np if isinstance(values, ArrayBase) else values
    elif type(values) not in (int, float) or dtype not in _NATIVE_FLOATS:
        return None
    index = numpy_index(index)
    if index is NotImplemented or (kind.ufunc is not None and dtype not in _NATIVE_FLOATS):
        return None
    out = empty(x.shape, dtype)
    np.copyto(out, x._np)
    try:
        if kind.ufunc is None:
            out[index] = values
        elif not _has_array(index):
            with np.errstate(all="ignore"):
                out[index] = kind.ufunc(out[index], values)
        elif kind.repeats and out.ndim == 1:
            with np.errstate(all="ignore"):
                kind.ufunc.at(out, index, values)
        else:
            return None
    except (IndexError, TypeError, ValueError, OverflowError):
        return None  # out of bounds, which is left out, or calls for our own message
    return wrap(out, x.weak_type)


def _has_array(index: Any) -> bool:
    return any(isinstance(i, np.ndarray) for i in index) if type(index) is tuple else \
        isinstance(index, np.ndarray)


def update(x: Array, index: Any, values: Any, kind: UpdateMethod, *, mode: Any = None,
           indices_are_sorted: bool = False, unique_indices: bool = False,
           wrap_negative_indices: bool = True) -> Array:
    """x with `kind.combine(x[index], values)` at the index, in x's dtype.

    Indices out of bounds are left out unless `mode` is "clip", "wrap" or "promise_in_bounds".
    Raises IndexingError for what is no index, ShapeError for values that do not broadcast to
    x[index], DTypeError for complex values in a real array.
    """
    if get_trace() is None and isinstance(x, ArrayBase) and mode is None and wrap_negative_indices:
        out = _eager(x, index, values, kind)
        if out is not None:
            return out
    window = window_index(tuple(x.shape), index)
    if window is not None:
        return _in_window(x, window, lambda part, rest: update(
            part, rest, values, kind, mode=mode, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices, wrap_negative_indices=wrap_negative_indices), mode)
    if not wrap_negative_indices:
        index = negative_outside(index)
    dtype, weak = x.dtype, get_aval(x).weak_type
    x, values = _common(x, values, kind)
    if kind.name == "divide" and dtypes.kind(dtype) in "iub":
        dtype = x.dtype  # a quotient of integers is none
    out = _masked(x, index, values, kind)
    if out is None:
        whole, index = scalar_masks_expanded(x, index)
        if mode in (None, "promise_in_bounds") and looks_at_indices():
            check_parts(parse_index(tuple(whole.shape), index, clamp_scalars=False))
        out = _update(whole, index, values, kind, check_mode(mode, "fill"), indices_are_sorted,
                      unique_indices, wrap_negative_indices, mode is not None)
        if out.shape != x.shape:
            out = reshape(out, x.shape)
    return convert_element_type(out, dtype, weak)


def _in_window(x: Array, window: WindowIndex, change: Callable[[Array, Any], Array],
               mode: Any) -> Array:
    """x with a window changed; as it is where the window sticks out, unless that is moved."""
    part = dynamic_slice_p.bind(x, *window.starts, slice_sizes=window.sizes)
    new = change(part, window.rest)
    if check_mode(mode, "fill") == "fill":
        new = select_n(broadcast_in_dim(window.is_inside, part.shape, ()),
                       convert_element_type(part, new.dtype), new)
    return dynamic_update_slice_p.bind(convert_element_type(x, new.dtype), new, *window.starts)


def _common(x: Any, values: Any, kind: UpdateMethod) -> tuple[Any, Any]:
    """x and values in the dtype in which they are combined."""
    if not isinstance(values, (ArrayBase, Tracer)):
        if isinstance(values, np.ndarray):
            refuse_masked(values)
        values = np.asarray(values) if not isinstance(values, (bool, int, float, complex)) \
            else values
    result = dtypes.result_type(x, values)
    if dtypes.kind(result) == "c" and dtypes.kind(x.dtype) != "c":
        raise DTypeError(f"x.at[...].{kind.name}: complex values do not fit an array of {x.dtype}.",
                         where=user_source(), why="their imaginary part would be lost.",
                         fix="x.at[...]." + kind.name + "(values.real), or x.astype(complex)")
    if kind.name == "set":
        result = x.dtype
        if type(values) is int and dtypes.kind(result) in "iu":
            dtypes.check_int(values, result, where=user_source())
    elif kind.name == "divide":
        result = dtypes.to_inexact_dtype(result)
    if not hasattr(values, "aval"):
        values = np.asarray(values).astype(result)
    return convert_element_type(x, result), convert_element_type(values, result)


def _masked(x: Any, index: Any, values: Any, kind: UpdateMethod) -> Array | None:
    """One traced mask and values that do not depend on what it selects: a selection."""
    if type(index) is tuple and len(index) == 1:
        index = index[0]
    if not isinstance(index, Tracer) or dtypes.kind(index.dtype) != "b" \
            or values.ndim > x.ndim - index.ndim or is_known(known_value(index)) \
            or index.shape != x.shape[:index.ndim]:
        return None
    mask: Any = index
    if index.ndim:
        mask = broadcast_in_dim(mask, x.shape, range(index.ndim))
    new = kind.combine(x, _broadcast(values, x.shape, index, kind.name))
    return select_n(mask, x, new)


def _broadcast(values: Any, shape: Any, index: Any, name: str) -> Any:
    """Values repeated to the shape of what is changed, leading axes of size 1 dropped."""
    given = tuple(values.shape)
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    if given != tuple(values.shape):
        values = reshape(values, given)
    if given == tuple(shape):
        return values
    fits = len(given) <= len(shape) and all(
        g in (1, s) for g, s in zip(given[::-1], shape[::-1], strict=False))
    if not fits:
        raise ShapeError(
            f"values of shape {given} do not fit x[{index_text(index)}] of shape {tuple(shape)}.",
            where=user_source(), why="they must broadcast to what is changed.",
            fix=f"x.at[{index_text(index)}].{name}(values.reshape(...))")
    return broadcast_in_dim(values, shape, range(len(shape) - len(given), len(shape)))


def _update(x: Any, index: Any, values: Any, kind: UpdateMethod, named: str,
            indices_are_sorted: bool, unique_indices: bool, wrap_negative: bool,
            says_mode: bool) -> Any:
    at = parse_index(tuple(x.shape), index, ints_in_bounds=not says_mode,
                     clamp_scalars=named in ("clip", "promise_in_bounds") and wrap_negative)
    values = _broadcast(values, at.result_shape, index, kind.name)
    if _has_none(at.result_shape) or _has_none(x.shape):
        return x
    if not at.arrays and _is_one_window(at):
        return _update_window(x, at, values, kind.combine)
    plan = _scatter_plan(at, named, wrap_negative)
    values = _windows_forward(values, at, plan)
    return kind.scatter(x, plan.vectors, values, plan.numbers,
                        indices_are_sorted=indices_are_sorted or plan.is_sorted,
                        unique_indices=unique_indices or plan.is_unique, mode=plan.mode)


def _has_none(shape: Sequence[Any]) -> bool:
    return any(isinstance(s, int) and s == 0 for s in shape)


def _update_window(x: Array, at: Indices, values: Any, combine: Operation) -> Array:
    """Ints and slices without gaps: one window is read, combined and written back."""
    starts, shape, reverse = [], [], []
    for kind, axis, value in at.parts:
        if kind == "int":
            starts.append(value)
            shape.append(1)
        elif kind == "slice":
            start, count, step = value
            starts.append(start if step > 0 else start + (count - 1) * step)
            shape.append(count)
            if step < 0 and count != 1:
                reverse.append(axis)
    if values is not None:
        values = values if tuple(values.shape) == tuple(shape) else reshape(values, shape)
        values = rev(values, reverse)
    if tuple(shape) == at.shape:
        combined: Array = combine(x, values)
        return combined
    if combine is not _replace:
        limits = [s + n for s, n in zip(starts, shape, strict=True)]
        values = combine(static_slice(x, starts, limits), values)
    return dynamic_update_slice_p.bind(x, values, *map(_start, starts))


def _start(start: Any) -> Any:
    """Where a window or a place starts, as an integer of rank 0."""
    return size_array(start, np.int64 if isinstance(start, int) and start >= 2**31 else np.int32)


def _steps(start: Any, count: Any, step: int) -> Any:
    """start, start + step, ..., count of them."""
    if isinstance(start, Dim) or isinstance(count, Dim):
        steps = mul(iota(np.int32, count), np.asarray(step, np.int32))
        return add(steps, _start(start))
    return np.arange(start, start + step * count, step).astype(np.int32)


class _UpdatePlan(Record):
    """A scatter for an index: index vectors, dimension numbers, and what is known of them."""

    vectors: Any
    numbers: ScatterDimensionNumbers
    mode: GatherScatterMode
    is_unique: bool
    is_sorted: bool
    reverse: tuple[int, ...]  # axes of the updates that run backwards


def _is_window(part: IndexPart) -> bool:
    return part.kind == "slice" and (part.value[2] in (1, -1) or part.value[1] == 1)


def _is_one_window(at: Indices) -> bool:
    return all(_is_window(p) for p in at.parts if p.kind == "slice")


def _scatter_plan(at: Indices, named: str, wrap_negative: bool) -> _UpdatePlan:
    """Slices without gaps are windows, with a constant start; all other axes are indexed."""
    order = [p for p in at.order if p is None or p.kind != "new"]
    windows, reverse = [], []
    batch_shape: list[Any] = []
    place: dict[int, tuple[int, ...]] = {}  # operand axis -> its dimensions of the batch
    block: tuple[int, ...] = ()
    d = 0
    for p in order:
        if p is None:
            block = tuple(range(len(batch_shape), len(batch_shape) + len(at.block)))
            batch_shape += at.block
            d += len(at.block)
            continue
        if _is_window(p):
            windows.append(d)
            if p.value[2] < 0 and p.value[1] != 1:
                reverse.append(d)
        else:
            place[p.axis] = (len(batch_shape),)
            batch_shape.append(p.value[1])
        d += 1
    components, dims, addressed, inserted = [], [], [], []
    inside, given = True, []
    for p in at.parts:
        size: Any = at.shape[p.axis] if p.kind != "new" else 0
        if p.kind == "new":
            continue
        if p.kind == "array":
            value = count_from_front(p.value, size, named == "wrap") \
                if wrap_negative or named == "wrap" else p.value
            known = is_known(value) and isinstance(size, int)
            inside = inside and (named == "wrap" or (known and bool(
                not value.size or (value.min() >= 0 and value.max() < size))))
            given.append(value)
            along = block
        elif p.kind == "int":
            value, along = _start(p.value), ()
        elif _is_window(p):
            start, count, step = p.value
            start = start if step > 0 else start + (count - 1) * step
            if isinstance(start, int) and start == 0 and count == size:
                continue
            value, along = _start(start), ()
        else:
            start, count, step = p.value
            value = _steps(start, count, step)
            along = place[p.axis]
        components.append(value)
        dims.append(along)
        addressed.append(p.axis)
        if not _is_window(p):
            inserted.append(p.axis)
    vectors = index_vectors(components, tuple(batch_shape), dims)
    numbers = ScatterDimensionNumbers(tuple(windows), tuple(inserted), tuple(addressed))
    unique = at.distinct or (inside and _is_distinct(given, at.block))
    return _UpdatePlan(vectors, numbers, GatherScatterMode.PROMISE_IN_BOUNDS if inside else
                       GatherScatterMode.from_any(named), unique,
                       at.distinct and len(components) == 1,
                       tuple(reverse))


def _is_distinct(arrays: list[Any], block: Any) -> bool:
    """Whether index arrays of known values name no place twice."""
    count = math.prod(block)
    if count <= 1:
        return True
    if count > _MAX_COMPARED or not all(is_known(a) for a in arrays):
        return False
    vectors: np.ndarray = np.stack([np.broadcast_to(a, block).reshape(-1) for a in arrays], axis=-1)
    return bool(len(set(map(tuple, vectors.tolist()))) == count)


def _windows_forward(values: Any, at: Indices, plan: _UpdatePlan) -> Any:
    shape = at.core_shape
    values = values if tuple(values.shape) == shape else reshape(values, shape)
    return rev(values, plan.reverse)


def update_by_function(x: Array, index: Any, function: Callable[[Any], Any], *, mode: Any = None,
                       indices_are_sorted: bool = False, unique_indices: bool = False,
                       wrap_negative_indices: bool = True) -> Array:
    """x with an elementwise function applied at the index, again where an index repeats."""
    window = window_index(tuple(x.shape), index)
    if window is not None:
        return _in_window(x, window, lambda part, rest: update_by_function(
            part, rest, function, mode=mode, indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices, wrap_negative_indices=wrap_negative_indices), mode)
    whole, index = scalar_masks_expanded(x, index)
    named = check_mode(mode, "fill")
    if mode in (None, "promise_in_bounds") and looks_at_indices():
        check_parts(parse_index(tuple(whole.shape), index, clamp_scalars=False))
    at = parse_index(tuple(whole.shape), index, ints_in_bounds=mode is None,
                     clamp_scalars=named in ("clip", "promise_in_bounds") and wrap_negative_indices)
    if _has_none(at.result_shape) or _has_none(x.shape):
        return x
    if not at.arrays and _is_one_window(at):
        return _update_window(x, at, None, lambda old, _: convert_element_type(function(old),
                                                                              x.dtype))
    plan = _scatter_plan(at, named, wrap_negative_indices)
    out = scatter_apply(
        whole, plan.vectors, lambda v: convert_element_type(function(v), x.dtype), plan.numbers,
        update_shape=at.core_shape, indices_are_sorted=indices_are_sorted or plan.is_sorted,
        unique_indices=unique_indices or plan.is_unique, mode=plan.mode)
    return out if out.shape == x.shape else reshape(out, x.shape)
