"""pad in all of NumPy's modes, one axis after the other, and trim_zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans.core.dims import Dim, Size, known_relation
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS, Tracer
from functrans.numpy.common import (
    axis_tuple,
    broadcast,
    cast,
    concrete,
    converted,
    operand,
    slice_axis,
    static,
    wrap,
)
from functrans.numpy.creation import asarray
from functrans.numpy.reductions import max as _max
from functrans.numpy.reductions import min as _min
from functrans.numpy.sorting import median
from functrans.numpy.statistics import (
    mean,
)
from functrans.numpy.ufuncs import floor, rint
from functrans.numpy.vectorizing import apply_along_axis
from functrans.typing import Array, ArrayLike, Axis

_OPTIONS = {
    "constant": {"constant_values"}, "edge": set(), "empty": set(), "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "mean": {"stat_length"}, "median": {"stat_length"},
    "minimum": {"stat_length"}, "reflect": {"reflect_type"}, "symmetric": {"reflect_type"},
    "wrap": set(),
}
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": _max, "mean": mean, "median": median, "minimum": _min}

Pairs = list[tuple[Any, Any]]


def _pairs(value: Any, rank: int, what: str) -> Pairs:
    """A (before, after) pair for each axis from one value, one pair or a full table."""
    table = np.asarray(value)
    try:
        if table.ndim == 1 and table.shape == (1,):
            table = table[0]
        if table.ndim == 2 and table.shape[1] == 1:
            table = np.broadcast_to(table, (rank, 2))
        table = np.broadcast_to(table, (rank, 2))
    except ValueError:
        raise ArgumentError(f"functrans.numpy.pad: {what} of shape {table.shape} does not fit "
                            f"{rank} axes; give one value or a pair for each.",
                            where=user_source()) from None
    return [(a, b) for a, b in table.tolist()]


def _widths(pad_width: Any, x: Array) -> list[tuple[int, int]]:
    if isinstance(pad_width, Mapping):
        rows = [(0, 0)] * x.ndim
        for axis, width in pad_width.items():
            rows[axis] = (width, width) if isinstance(width, int) else tuple(width)
        pad_width = rows or 0
    if isinstance(pad_width, ARRAYS):
        pad_width = static("pad", pad_width, "pad_width")
    table = np.asarray(pad_width)
    if table.dtype.kind not in "iu" and not (
            table.dtype == object and all(isinstance(w, (int, Dim)) for w in table.flat)):
        raise ArgumentError("functrans.numpy.pad: pad_width holds integers.", where=user_source())
    pairs = _pairs(table, x.ndim, "pad_width") if x.ndim else []
    if any(known_relation("<", width, 0) for pair in pairs for width in pair):
        raise ArgumentError("functrans.numpy.pad: pad_width is negative; index to cut.",
                            where=user_source())
    return pairs


def _edge(x: Array, axis: int, last: bool) -> Array:
    n = x.shape[axis]
    return slice_axis(x, n - 1, n, axis) if last else slice_axis(x, 0, 1, axis)


def _repeated(x: Array, count: int, axis: int) -> Array:
    return broadcast(x, tuple(count if i == axis else s for i, s in enumerate(x.shape)))


def _join(before: Array | None, x: Array, after: Array | None, axis: int) -> Array:
    parts = [p for p in (before, x, after) if p is not None]
    return lax.concatenate(parts, axis) if len(parts) > 1 else x


def _pad_constant(x: Array, widths: list[tuple[int, int]], values: Any) -> Array:
    if (isinstance(values, ARRAYS) and values.ndim == 0) or not isinstance(
            values, (*ARRAYS, list, tuple, np.ndarray)):
        fill = converted("pad", values, x.dtype)
        return lax.pad(x, fill, [(before, after, 0) for before, after in widths])
    given: Any = values
    table = asarray(given)
    if table.ndim == 1 and table.shape[0] == 1:
        table = lax.reshape(table, ())
    table = broadcast(cast(table, x.dtype), (x.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        for side, width in enumerate((before, after)):
            fill = lax.reshape(lax.slice(table, (axis, side), (axis + 1, side + 1)), ())
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (width, 0, 0) if side == 0 else (0, width, 0)
            x = lax.pad(x, fill, config)
    return x


def _pad_edge(x: Array, axis: int, before: int, after: int) -> Array:
    return _join(_repeated(_edge(x, axis, False), before, axis), x,
                 _repeated(_edge(x, axis, True), after, axis), axis)


def _pad_wrap(x: Array, axis: int, before: int, after: int) -> Array:
    n = x.shape[axis]
    lead = [slice_axis(x, n - before % n, n, axis)] + [x] * (before // n)
    tail = [x] * (after // n) + [slice_axis(x, 0, after % n, axis)]
    return lax.concatenate([*lead, x, *tail], axis)


def _pad_mirror(x: Array, axis: int, before: int, after: int, offset: int, odd: bool) -> Array:
    """reflect (offset 1, the edge not repeated) and symmetric (offset 0)."""
    if x.shape[axis] == 1 and offset == 1:
        return _pad_edge(x, axis, before, after)
    while before > 0 or after > 0:
        n = x.shape[axis]
        take_before = min(before, n - offset)
        take_after = min(after, n - offset)
        head = slice_axis(x, offset, offset + take_before, axis)
        tail = slice_axis(x, n - offset - take_after, n - offset, axis)
        head, tail = lax.rev(head, (axis,)), lax.rev(tail, (axis,))
        if odd:
            first, last = _edge(x, axis, False), _edge(x, axis, True)
            head = _repeated(first, take_before, axis) * 2 - head
            tail = _repeated(last, take_after, axis) * 2 - tail
        x = lax.concatenate([head, x, tail], axis)
        before, after = before - take_before, after - take_after
    return x


def _round_to(x: Array, dtype: np.dtype) -> Array:
    if kind(dtype) in "iu" and kind(x.dtype) in "fc":
        x = rint(x)
    return cast(x, dtype)


def _pad_statistic(x: Array, axis: int, before: int, after: int, lengths: tuple[Any, Any] | None,
                   reduce: Callable[..., Array]) -> Array:
    n = x.shape[axis]
    parts = []
    for width, length, last in ((before, lengths and lengths[0], False),
                                (after, lengths and lengths[1], True)):
        size = n if length is None else min(int(length), n)
        part = slice_axis(x, n - size, n, axis) if last else slice_axis(x, 0, size, axis)
        value = _round_to(reduce(part, axis, keepdims=True), x.dtype)
        parts.append(_repeated(value, width, axis))
    return _join(parts[0], x, parts[1], axis)


def _pad_ramp(x: Array, axis: int, before: int, after: int, ends: tuple[Any, Any]) -> Array:
    """Lines from end values, which are reached, to the edges, which are not repeated."""
    parts = []
    dtype = x.dtype if kind(x.dtype) in "fc" else np.dtype(np.float32)
    for width, end, last in ((before, ends[0], False), (after, ends[1], True)):
        edge = cast(_edge(x, axis, last), dtype)
        share = np.arange(width) / max(width, 1)  # 0 at the end value, rising to the edge
        share = share[::-1].copy() if last else share
        shape = tuple(width if i == axis else s for i, s in enumerate(x.shape))
        weight = lax.broadcast_in_dim(wrap(share.astype(dtype)), shape, (axis,))
        start = lax.full(shape, end, dtype)
        line = lax.add(start, lax.mul(lax.sub(_repeated(edge, width, axis), start), weight))
        parts.append(cast(floor(line) if kind(x.dtype) in "iu" else line, x.dtype))
    return _join(parts[0], x, parts[1], axis)


def _pad_function(x: Array, widths: list[tuple[int, int]], function: Callable[..., Any],
                  options: dict[str, Any]) -> Array:
    """Each padded vector, along one axis after the other, is what the function makes of it.

    In JAX's protocol it returns an array; in NumPy's it changes the vector in place, which is
    possible where the array is concrete.
    """
    if not isinstance(x, Tracer):
        def call(vector: np.ndarray, width: tuple[int, int], axis: int, kwargs: Any) -> None:
            result = function(vector.view(_PaddedVector), width, axis, kwargs)
            if result is not None:
                vector[:] = np.asarray(result)

        return wrap(np.pad(concrete("pad", x, "array", "a named mode"), widths, call, **options))
    x = _pad_constant(x, widths, 0)
    for axis, width in enumerate(widths):
        x = apply_along_axis(function, axis, x, width, axis, options)
    return x


class _PaddedVector(np.ndarray):
    """A vector that is changed in place, and has `at`, which gives an array that is not."""

    @property
    def at(self) -> Any:
        return wrap(np.array(self)).at


def pad(array: ArrayLike,
        pad_width: ArrayLike | Sequence[Size | Sequence[Size]] | Mapping[int, int | Sequence[int]],
        mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """array with pad_width = (before, after) for each axis added around it.

    Size n becomes before + n + after.

    mode: constant (constant_values), edge, empty (zeros), linear_ramp (end_values), maximum, mean,
    median, minimum (stat_length), reflect, symmetric (reflect_type), wrap, or a function.

    >>> import functrans.numpy as jnp
    >>> jnp.pad(jnp.asarray([1, 2]), 1).tolist()
    [0, 1, 2, 0]
    """
    x = operand("pad", np.asarray(array) if isinstance(array, (list, tuple)) else array)
    widths = _widths(pad_width, x)
    if callable(mode):
        return _pad_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ArgumentError(f"functrans.numpy.pad: unknown mode={mode!r}; it is "
                            f"{', '.join(_OPTIONS)} or a function.", where=user_source())
    wrong = set(kwargs) - _OPTIONS[mode]
    if wrong:
        raise ArgumentError(f"functrans.numpy.pad: mode {mode!r} does not take "
                            f"{', '.join(sorted(wrong))}.", where=user_source())
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    lengths = kwargs.get("stat_length")
    stat_lengths = None if lengths is None else _pairs(lengths, x.ndim, "stat_length")
    ends = _pairs(kwargs.get("end_values", 0), x.ndim, "end_values") if x.ndim else []
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        if x.shape[axis] == 0:
            raise ArgumentError(f"functrans.numpy.pad: axis {axis} of shape {x.shape} is empty, "
                                f"and mode {mode!r} has nothing to pad it with.",
                                where=user_source())
        if mode == "edge":
            x = _pad_edge(x, axis, before, after)
        elif mode == "wrap":
            x = _pad_wrap(x, axis, before, after)
        elif mode in ("reflect", "symmetric"):
            odd = kwargs.get("reflect_type", "even") == "odd"
            x = _pad_mirror(x, axis, before, after, int(mode == "reflect"), odd)
        elif mode == "linear_ramp":
            x = _pad_ramp(x, axis, before, after, ends[axis])
        else:
            length = None if stat_lengths is None else stat_lengths[axis]
            x = _pad_statistic(x, axis, before, after, length, _STATISTICS[mode])
    return x


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Array:
    """A concrete array without the zeros at its front ("f") and back ("b"), along all or some axes.

    >>> import functrans.numpy as jnp
    >>> jnp.trim_zeros(jnp.asarray([0, 1, 2, 0])).tolist()
    [1, 2]
    """
    x = asarray(filt)
    value = concrete("trim_zeros", x, "filt", "slice with static bounds instead")
    places = np.argwhere(value)
    for a in axis_tuple(axis, x.ndim, "trim_zeros"):
        if not len(places):
            x = slice_axis(x, 0, 0, a)
            continue
        start = int(places[:, a].min()) if "f" in trim.lower() else 0
        stop = int(places[:, a].max()) + 1 if "b" in trim.lower() else x.shape[a]
        x = slice_axis(x, start, stop, a)
    return x
