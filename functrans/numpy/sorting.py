"""Sorting, partitioning and order statistics (median, quantile, percentile)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.dims import same_shape
from functrans.core.dtypes import as_dtype
from functrans.core.dtypes import kind as kind_of
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    cast,
    index_dtype,
    operand,
    promote_dtypes_inexact,
    refuse_out,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.manipulation import ravel
from functrans.numpy.reductions import any as _any
from functrans.numpy.reductions import sum
from functrans.numpy.ufuncs import isnan
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, Axis, DTypeLike


def _check_kind(name: str, kind: str | None, order: Any) -> None:
    if kind not in (None, "stable", "quicksort", "mergesort", "heapsort"):
        raise ArgumentError(f"functrans.numpy.{name}: unknown kind={kind!r}.", where=user_source())
    if order is not None:
        raise ArgumentError(f"functrans.numpy.{name} does not take order=: arrays have no fields.",
                            where=user_source())


def sort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """a sorted along axis, or flattened and sorted if axis is None; NaN comes last.

    The shape is a's, or (a.size,) if axis is None.

    >>> import functrans.numpy as jnp
    >>> jnp.sort(jnp.asarray([3, 1, 2])).tolist()
    [1, 2, 3]
    """
    _check_kind("sort", kind, order)
    x = operand("sort", a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "sort")
    result = lax.sort(x, dimension=axis, is_stable=stable)
    return lax.rev(result, (axis,)) if descending else result


def argsort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: None = None,
            stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The indices that sort a along axis, in an integer dtype; equal elements keep their order.

    >>> import functrans.numpy as jnp
    >>> jnp.argsort(jnp.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    _check_kind("argsort", kind, order)
    x = operand("argsort", a)
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_index(axis, x.ndim, "argsort")
    places = lax.broadcasted_iota(_place_dtype(dtype, x.shape[axis]), x.shape, axis)
    if not descending:
        return lax.sort((x, places), dimension=axis, is_stable=stable, num_keys=1)[1]
    # Sorted backwards and read backwards: equal elements keep their order.
    backwards = lax.sort((lax.rev(x, (axis,)), lax.rev(places, (axis,))), dimension=axis,
                         is_stable=stable, num_keys=1)[1]
    return lax.rev(backwards, (axis,))


def _place_dtype(dtype: DTypeLike | None, size: Any) -> np.dtype:
    if dtype is None:
        return index_dtype(size)
    wanted = as_dtype(dtype)
    if kind_of(wanted) not in "iu":
        raise ArgumentError(f"functrans.numpy.argsort: dtype={wanted} is no integer dtype.",
                            where=user_source())
    return wanted


def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by the last key, ties by the one before it, and so on.

    >>> jnp.lexsort((jnp.array([3, 1, 2]), jnp.array([0, 1, 0])))
    Array([2, 0, 1], dtype=int32)
    """
    xs = [operand("lexsort", k) for k in keys]
    if not xs:
        raise ArgumentError("functrans.numpy.lexsort needs at least one key.", where=user_source())
    if not xs[0].ndim:
        return wrap(np.zeros((), index_dtype()))
    axis = axis_index(axis, xs[0].ndim, "lexsort")
    places = lax.broadcasted_iota(index_dtype(xs[0].shape[axis]), xs[0].shape, axis)
    return lax.sort((*reversed(xs), places), dimension=axis, is_stable=True, num_keys=len(xs))[-1]


def sort_complex(a: ArrayLike) -> Array:
    """a sorted along its last axis as complex numbers, by real and then by imaginary part.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1 - 1j, 2 - 1j]))
    Array([1.-1.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    x = operand("sort_complex", a)
    x = cast(x, dtypes.complex_dtype(dtypes.to_inexact_dtype(x.dtype)))
    return sort(x)


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """a with the kth element along axis where sorting would put it, smaller ones before it.

    >>> jnp.partition(jnp.array([40, 10, 30, 20]), 1)[:2]
    Array([10, 20], dtype=int32)
    """
    x = operand("partition", a)
    _check_kth("partition", kth, x, axis)
    return sort(x, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition a around its kth element along axis.

    >>> jnp.argpartition(jnp.array([40, 10, 30, 20]), 1)[:2].tolist()
    [1, 3]
    """
    x = operand("argpartition", a)
    _check_kth("argpartition", kth, x, axis)
    return argsort(x, axis)


def _check_kth(name: str, kth: int, x: Array, axis: int) -> None:
    size = x.shape[axis_index(axis, x.ndim, name)]
    if isinstance(size, int) and size == 0:
        return  # nothing has a place
    k = static_int(name, kth, "kth")
    if not -size <= k < size:
        raise ArgumentError(f"functrans.numpy.{name}: kth={k} is out of bounds for axis {axis} of "
                            f"shape {x.shape}.", where=user_source())


# order statistics ----------------------------------------------------------------------------


_PLOTTING: Final[Mapping[str, tuple[float, float]]] = MappingProxyType({
    "linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0)})
_DISCRETE: Final = ("lower", "higher", "midpoint", "nearest", "inverted_cdf",
                    "averaged_inverted_cdf", "closest_observation")


def _quantile(
    name: str, a: ArrayLike, q: ArrayLike, axis: Axis, method: str, keepdims: bool, skip_nan: bool
, weights: ArrayLike | None = None
              ) -> Array:
    """Quantiles along axes: sort them as one, then read between two neighbours."""
    if method not in (*_PLOTTING, *_DISCRETE):
        raise ArgumentError(f"functrans.numpy.{name}: unknown method={method!r}.",
                            where=user_source(), fix=", ".join((*_PLOTTING, *_DISCRETE)))
    if weights is not None:
        if method != "inverted_cdf":
            raise ArgumentError(f"functrans.numpy.{name}: method={method!r} takes no weights.",
                                where=user_source(), fix='method="inverted_cdf"')
        a, weights = promote_dtypes_inexact(name, a, weights)
    middle = type(q) is float and q == 0.5 and method == "midpoint" and not skip_nan
    x, q = promote_dtypes_inexact(name, a, q)
    q = operand(name, q)
    if kind_of(x.dtype) == "c":
        raise ArgumentError(f"functrans.numpy.{name} does not take complex numbers.",
                            where=user_source())
    dtype = x.dtype
    if dtypes.is_half(dtype):
        x, q = (lax.convert_element_type(v, np.dtype(np.float32)) for v in (x, q))
    axes = axis_tuple(axis, x.ndim, name)
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    lead = tuple(x.shape[i] for i in rest)
    kept_shape = tuple(1 if i in axes else s for i, s in enumerate(x.shape))
    flat_shape = (*lead, math.prod(x.shape[i] for i in axes))
    heavy = None if weights is None else _weights_of(name, weights, x, axes)
    x = lax.reshape(lax.transpose(x, (*rest, *axes)), flat_shape)
    size = x.shape[-1]
    if isinstance(size, int) and size == 0:
        return _of_nothing(name, (*q.shape, *(kept_shape if keepdims else lead)), dtype)
    nan = isnan(x)
    if heavy is None:
        x = lax.sort(x, dimension=x.ndim - 1, is_stable=False)
    else:
        heavy = lax.reshape(lax.transpose(heavy, (*rest, *axes)), flat_shape)
        if skip_nan:
            heavy = lax.select_n(nan, heavy, lax.full_like(heavy, 0))
        x, heavy = lax.sort((x, heavy), dimension=x.ndim - 1, num_keys=1)
    if middle and isinstance(size, int):
        return lax.convert_element_type(
            lax.reshape(_middle(x, size), kept_shape if keepdims else lead), dtype)
    whole = (*q.shape, *lead)
    if skip_nan:
        count = sum(lax.bitwise_not(nan), -1, x.dtype)
        count = lax.broadcast_in_dim(count, whole, tuple(range(q.ndim, len(whole))))
    else:
        count = lax.full(whole, size, x.dtype)
    one = lax.full_like(count, 1)
    spread = lax.broadcast_in_dim(q, whole, tuple(range(q.ndim)))
    last = lax.max(lax.sub(count, one), lax.full_like(count, 0))
    place = lax.min(_place(method, spread, count), last)
    low = lax.clamp(lax.full_like(place, 0), lax.floor(place), last)
    high = lax.clamp(lax.full_like(place, 0), lax.ceil(place), last)
    fraction = lax.sub(place, lax.floor(place))
    below, above = _pick(x, low, q.ndim), _pick(x, high, q.ndim)
    if method in _PLOTTING:
        result = lax.add(lax.mul(below, lax.sub(one, fraction)), lax.mul(above, fraction))
        result = lax.select_n(lax.eq(below, above), result, below)  # infinities too
    elif method == "lower":
        result = below
    elif method == "inverted_cdf":
        index = lax.sub(lax.ceil(lax.mul(spread, count)), one) if heavy is None else \
            _rank_by_weight(spread, heavy, q.ndim)
        result = _pick(x, lax.clamp(lax.full_like(place, 0), index, last), q.ndim)
    elif method == "averaged_inverted_cdf":
        after = _pick(x, lax.clamp(lax.full_like(place, 0), lax.add(lax.floor(place), one), last),
                      q.ndim)
        half = lax.mul(lax.add(below, after), lax.full_like(below, 0.5))
        result = lax.select_n(lax.eq(place, lax.floor(place)), after, half)
    elif method == "closest_observation":
        even = lax.eq(lax.rem(lax.floor(place), lax.full_like(place, 2)), lax.full_like(place, 0))
        stays = lax.bitwise_and(even, lax.eq(place, lax.floor(place)))
        after = lax.add(lax.floor(place), one)
        index = lax.select_n(stays, after, lax.floor(place))
        result = _pick(x, lax.clamp(lax.full_like(place, 0), index, last), q.ndim)
    elif method == "higher":
        result = above
    elif method == "midpoint":
        half = lax.mul(lax.add(below, above), lax.full_like(below, 0.5))
        result = lax.select_n(lax.eq(low, high), half, below)
    else:
        nearest = lax.round(place, 1)  # ties to even
        result = _pick(x, lax.clamp(lax.full_like(place, 0), nearest, last), q.ndim)
    if not skip_nan:
        spoilt = broadcast(_any(nan, -1), result.shape)
    else:
        spoilt = lax.le(count, lax.full_like(count, 0))
    result = lax.select_n(spoilt, result, lax.full_like(result, np.nan))
    result = cast(result, dtype)
    return lax.reshape(result, (*q.shape, *kept_shape)) if keepdims else result


def _place(method: str, q: Array, count: Array) -> Array:
    """Where a quantile is among the sorted elements, from 0 on: Hyndman and Fan (1996)."""
    one = lax.full_like(count, 1)
    if method in ("averaged_inverted_cdf", "closest_observation"):
        whole = lax.sub(lax.mul(q, count), one)
        return whole if method[0] == "a" else lax.sub(whole, lax.full_like(count, 0.5))
    if method in _DISCRETE or method == "linear":
        return lax.mul(q, lax.sub(count, one))
    alpha, beta = _PLOTTING[method]
    shift = lax.sub(lax.mul(q, lax.full_like(count, 1 - alpha - beta)),
                    lax.full_like(count, 1 - alpha))
    return lax.add(lax.mul(q, count), shift)


def _weights_of(name: str, weights: ArrayLike, x: Array, axes: tuple[int, ...]) -> Array:
    """Weights of every element, in x's dtype."""
    w = cast(operand(name, weights), x.dtype)
    if same_shape(w.shape, x.shape):
        return w
    if not same_shape(w.shape, tuple(x.shape[a] for a in axes)):
        raise ShapeError(f"functrans.numpy.{name}: weights of shape {w.shape} have neither the "
                         f"shape {x.shape} of the array nor that of its axes {axes}.",
                         where=user_source())
    return lax.broadcast_in_dim(w, x.shape, axes)


def _rank_by_weight(q: Array, weights: Array, extra: int) -> Array:
    """How many of the sorted elements hold less than the fraction q of all weight."""
    reached = lax.cumsum(weights, axis=weights.ndim - 1)
    total = slice_axis(reached, reached.shape[-1] - 1, reached.shape[-1])
    share = lax.div(reached, broadcast(total, reached.shape))
    shape = (*q.shape[:extra], *share.shape)
    share = lax.broadcast_in_dim(share, shape, tuple(range(extra, len(shape))))
    wanted = lax.broadcast_in_dim(q, shape, tuple(range(q.ndim)))
    before = lax.bitwise_or(lax.lt(share, wanted), lax.eq(share, lax.full_like(share, 0)))
    return sum(before, -1, q.dtype)


def _of_nothing(name: str, shape: Any, dtype: np.dtype) -> Array:
    """The median of no elements, and what leaves NaN out, is NaN; other quantiles are refused."""
    if name in ("quantile", "percentile"):
        raise ArgumentError(f"functrans.numpy.{name} of no elements.", where=user_source(),
                            why="an axis without elements has no order statistics.",
                            fix=f"nan{name}, which gives NaN")
    return lax.full(shape, np.nan, dtype)


def _middle(x: Array, size: int) -> Array:
    """The middle of sorted rows, of a number of elements that is known; NaN stand last in each."""
    def at(k: int) -> Array:
        return lax.slice_in_dim(x, k, k + 1, axis=-1)

    middle = at(size // 2)
    if size % 2 == 0:
        middle = lax.mul(lax.add(at(size // 2 - 1), middle), lax.full_like(middle, 0.5))
    last = at(size - 1)
    return lax.select_n(isnan(last), middle, last)


def _pick(x: Array, index: Array, extra: int) -> Array:
    """x[..., i] for i of shape (extra axes, leading axes of x)."""
    lead = x.ndim - 1
    dtype = index_dtype(*x.shape)
    index = cast(index, dtype)
    coordinates = [lax.expand_dims(
        lax.broadcasted_iota(dtype, index.shape, extra + i), (index.ndim,))
        for i in range(lead)]
    coordinates.append(lax.expand_dims(index, (index.ndim,)))
    starts = lax.concatenate(coordinates, index.ndim)
    dims = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=tuple(range(x.ndim)),
                                      start_index_map=tuple(range(x.ndim)))
    return lax.gather(x, starts, dims, (1,) * x.ndim, mode="clip")


def _check_range(name: str, q: Any, top: float) -> Any:
    if isinstance(q, (list, tuple)):
        q = np.asarray(q)
    if isinstance(q, (int, float, np.ndarray)) and not np.all((np.asarray(q) >= 0)
                                                              & (np.asarray(q) <= top)):
        raise ArgumentError(f"functrans.numpy.{name}: q must lie in [0, {top}].",
                            where=user_source())
    return _strong_or_scalar(q)


def _strong_or_scalar(q: Any) -> Any:
    """Given as NumPy's default float64, q is a number like any in Python: weak."""
    if isinstance(q, np.ndarray) and q.dtype in (np.float64, np.int64):
        return wrap(q.astype(dtypes.default_float()), True)
    return q


@composite
def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which a fraction q in [0, 1] lies along axes; NaN if there is one.

    `method` is one of NumPy's. `weights` have the shape of a, or that of the axes: then it is
    "inverted_cdf".

    >>> import functrans.numpy as jnp
    >>> jnp.quantile(jnp.asarray([1.0, 2.0, 4.0]), 0.5).tolist()
    2.0
    """
    refuse_out("quantile", out)
    q = _check_range("quantile", q, 1)
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


@composite
def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:
    """As quantile, without NaN.

    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0, 5.0]), jnp.array([0.0, 0.5]))
    Array([1., 3.], dtype=float32)
    """
    refuse_out("nanquantile", out)
    q = _check_range("nanquantile", q, 1)
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


def _hundredth(q: Any) -> Any:
    if isinstance(q, (int, float, np.ndarray)):
        return q / 100
    q = operand("percentile", q)
    q = cast(q, dtypes.to_inexact_dtype(q.dtype))
    return lax.div(q, lax.full_like(q, 100))


@composite
def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:
    """As quantile, with q in percent.

    >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0, 4.0, 5.0]), 25)
    Array(2., dtype=float32)
    """
    refuse_out("percentile", out)
    q = _hundredth(_check_range("percentile", q, 100))
    return _quantile("percentile", a, q, axis, method, keepdims, False, weights)


@composite
def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None,
    overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
    weights: ArrayLike | None = None,
) -> Array:
    """As percentile, without NaN.

    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """
    refuse_out("nanpercentile", out)
    q = _hundredth(_check_range("nanpercentile", q, 100))
    return _quantile("nanpercentile", a, q, axis, method, keepdims, True, weights)


@composite
def median(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Array:
    """The middle value along axes, or the mean of the two middle ones; NaN if there is one.

    >>> jnp.median(jnp.array([7.0, 1.0, 3.0, 4.0]))
    Array(3.5, dtype=float32)
    """
    refuse_out("median", out)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, False)


@composite
def nanmedian(a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Array:
    """The middle value along axes of the elements that are not NaN.

    >>> jnp.nanmedian(jnp.array([7.0, jnp.nan, 3.0]))
    Array(5., dtype=float32)
    """
    refuse_out("nanmedian", out)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, True)

