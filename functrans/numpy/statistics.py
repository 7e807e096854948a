"""Means and variances, also without NaN; histograms, covariance, linear interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.dtypes import as_dtype, kind, real_dtype
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    axis_tuple,
    broadcast,
    broadcast_shapes,
    cast,
    concrete,
    converted,
    filled,
    index_dtype,
    operand,
    promote,
    promote_dtypes_inexact,
    refuse_out,
    scalar_like,
    size_of,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.creation import asarray, linspace
from functrans.numpy.elementwise import select_where
from functrans.numpy.joining import concatenate
from functrans.numpy.manipulation import atleast_2d, ravel
from functrans.numpy.products import diag, dot
from functrans.numpy.reductions import keep_dims, replace_where, sum
from functrans.numpy.reductions import max as _max
from functrans.numpy.reductions import min as _min
from functrans.numpy.searching import count_into, searchsorted, take
from functrans.numpy.ufunc_dispatch import truth
from functrans.numpy.ufuncs import (
    conj,
    divide,
    isnan,
    multiply,
    remainder,
    sqrt,
    square,
    subtract,
)
from functrans.numpy.ufuncs import true_divide as _divide
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, Axis, DTypeLike


def _bounds(x: Array, given: Any) -> tuple[Array, Array]:
    """The range of a histogram: given or that of the data, and wider where it is empty."""
    if given is not None:
        low, high = (operand("histogram", v) for v in promote_dtypes_inexact("histogram", *given))
        low, high = cast(low, x.dtype), cast(high, x.dtype)
    elif x.size == 0:
        return scalar_like(x, 0), scalar_like(x, 1)
    else:
        low, high = _min(x), _max(x)
    same = lax.eq(low, high)
    half = scalar_like(low, 0.5)
    return (lax.select_n(same, low, lax.sub(low, half)),
            lax.select_n(same, high, lax.add(high, half)))


def histogram_bin_edges(a: ArrayLike, bins: ArrayLike | str = 10,
                        range: Sequence[ArrayLike] | None = None,
                        weights: ArrayLike | None = None) -> Array:
    """Edges of equal bins over the data or over range; a rule's name as bins needs a concrete a.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 2.0, 4.0]), bins=4)
    Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    x = asarray(a)
    x = cast(x, dtypes.to_inexact_dtype(x.dtype))
    if isinstance(bins, str):
        value = concrete("histogram_bin_edges", x, "a", "bins=10")
        given: Any = range, weights
        return wrap(np.histogram_bin_edges(value, bins, *given).astype(x.dtype))
    counted: Any = bins
    if np.ndim(counted) == 1 or (isinstance(bins, ARRAYS) and bins.ndim == 1):
        edges = asarray(bins)
        return cast(edges, dtypes.to_inexact_dtype(edges.dtype))
    count = static_int("histogram_bin_edges", bins, "bins")
    low, high = _bounds(ravel(x), range)
    return linspace(low, high, count + 1)


def _bin_of(x: Array, edges: Array) -> Array:
    """The bin of each value; outside of the edges the number of bins, which is then dropped."""
    n = edges.shape[0] - 1
    place = searchsorted(edges, x, side="right")
    place = lax.sub(place, lax.full_like(place, 1))
    last = slice_axis(edges, n, n + 1)
    at_end = lax.eq(x, broadcast(cast(last, x.dtype), x.shape))
    place = lax.select_n(at_end, place, lax.full_like(place, n - 1))
    outside = lax.lt(place, lax.full_like(place, 0))
    return lax.select_n(outside, place, lax.full_like(place, n))


@composite
def histogram(a: ArrayLike, bins: ArrayLike | str = 10, range: Sequence[ArrayLike] | None = None,
              weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Array, Array]:
    """Number (or weight, or density) of elements in each bin, and the edges of the bins.

    >>> import functrans.numpy as jnp
    >>> counts, edges = jnp.histogram(jnp.asarray([0.0, 1.0, 1.0]), bins=2)
    >>> counts.tolist(), edges.tolist()
    ([1.0, 2.0], [0.0, 0.5, 1.0])
    """
    x = ravel(asarray(a))
    edges = histogram_bin_edges(x, bins, range, weights)
    (x,) = promote_dtypes_inexact("histogram", x)
    dtype = edges.dtype
    w = None if weights is None else ravel(asarray(weights))
    if w is not None and w.shape != x.shape:
        raise ShapeError(f"functrans.numpy.histogram: weights of shape {w.shape} for values of "
                         f"shape {x.shape}.", where=user_source())
    count = edges.shape[0] - 1
    counts = count_into(_bin_of(cast(x, dtype), edges), w, count,
                        dtypes.default_float() if w is None else None)
    counts = cast(counts, dtypes.to_inexact_dtype(counts.dtype))
    if density:
        widths = subtract(slice_axis(edges, 1, count + 1), slice_axis(edges, 0, count))
        counts = divide(divide(counts, cast(widths, counts.dtype)), sum(counts))
    return counts, edges


def histogramdd(sample: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10,
                range: Sequence[Sequence[ArrayLike] | None] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, list[Array]]:
    """A histogram over several dimensions; sample has a row for each point.

    >>> counts, edges = jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]), bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    x = asarray(sample)
    if x.ndim != 2:
        raise ShapeError(f"functrans.numpy.histogramdd takes a matrix of points, and got shape "
                         f"{x.shape}.", where=user_source())
    (x,) = promote_dtypes_inexact("histogramdd", x)
    rank = x.shape[1]
    all_bins = list(bins) if isinstance(bins, Sequence) else [bins] * rank
    if len(all_bins) != rank:
        raise ArgumentError(f"functrans.numpy.histogramdd: {len(all_bins)} bins for {rank} "
                            "dimensions.", where=user_source())
    ranges = [None] * rank if range is None else list(range)
    index: Any = None
    edges, sizes = [], []
    outside: Any = None
    for d, (b, r) in enumerate(zip(all_bins, ranges, strict=True)):
        column = lax.squeeze(slice_axis(x, d, d + 1, 1), (1,))
        edge = histogram_bin_edges(column, b, r)
        n = edge.shape[0] - 1
        place = _bin_of(column, cast(edge, column.dtype))
        out = lax.ge(place, lax.full_like(place, n))
        index = place if index is None else index * n + place
        outside = out if outside is None else lax.bitwise_or(outside, out)
        edges.append(edge)
        sizes.append(n)
    total = int(np.prod(sizes))
    index = lax.select_n(outside, index, lax.full_like(index, total))
    w = None if weights is None else asarray(weights)
    counts = lax.reshape(count_into(index, w, total), tuple(sizes))
    if density:
        counts = divide(counts, sum(counts))
        for d, edge in enumerate(edges):
            n = edge.shape[0] - 1
            widths = cast(subtract(slice_axis(edge, 1, n + 1), slice_axis(edge, 0, n)),
                          counts.dtype)
            counts = divide(counts, lax.broadcast_in_dim(widths, counts.shape, (d,)))
    return counts, edges


def histogram2d(x: ArrayLike, y: ArrayLike, bins: ArrayLike | Sequence[ArrayLike] = 10,
                range: Sequence[Sequence[ArrayLike] | None] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, Array, Array]:
    """A histogram over the points (x, y), and the edges along both axes.

    >>> x, y = jnp.array([0.1, 0.9, 0.8]), jnp.array([0.2, 0.7, 0.1])
    >>> counts, x_edges, y_edges = jnp.histogram2d(x, y, bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    xs, ys = promote_dtypes_inexact("histogram2d", asarray(x), asarray(y))
    points = lax.concatenate([lax.expand_dims(v, (1,)) for v in (xs, ys)], 1)
    if isinstance(bins, (list, tuple)) and len(bins) == 2:
        pair: Any = list(bins)
    else:
        pair = [bins, bins]
    counts, edges = histogramdd(points, pair, range, weights, density)
    return counts, edges[0], edges[1]


# covariance ----------------------------------------------------------------------------------


@composite
def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
    ddof: int | None = None, fweights: ArrayLike | None = None, aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Covariance matrix of variables in rows (columns if not rowvar), over N - 1 (N if bias).

    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    Array([[ 1., -2.],
           [-2.,  4.]], dtype=float32)
    """
    if y is None:
        (x,) = promote_dtypes_inexact("cov", asarray(m))
    else:
        x, other = promote_dtypes_inexact("cov", asarray(m), asarray(y))
    if dtype is not None:
        x = cast(x, dtypes.as_dtype(dtype))
    if x.ndim > 2:
        raise ShapeError(f"functrans.numpy.cov takes a vector or matrix, and got shape {x.shape}.",
                         where=user_source())
    vector = x.ndim < 2
    x = atleast_2d(x)
    if not rowvar and not vector:
        x = lax.transpose(x, (1, 0))
    if y is not None:
        other = atleast_2d(other)
        if not rowvar and other.shape[0] != 1:
            other = lax.transpose(other, (1, 0))
        x = concatenate([x, cast(other, x.dtype)], 0)
    if ddof is None:
        ddof = 0 if bias else 1
    w: Any = None
    if fweights is not None:
        w = cast(asarray(fweights), dtypes.real_dtype(x.dtype))
    if aweights is not None:
        a = cast(asarray(aweights), dtypes.real_dtype(x.dtype))
        w = a if w is None else multiply(w, a)
    if w is None:
        centre = mean(x, 1)
        factor: Any = max(x.shape[1] - ddof, 0)
    else:
        centre, total = average(x, 1, cast(w, x.dtype), returned=True)
        total = slice_axis(total, 0, 1)
        total = lax.reshape(total, ())
        if ddof == 0:
            factor = total
        elif aweights is None:
            factor = subtract(total, ddof)
        else:
            square = sum(multiply(cast(w, x.dtype), cast(asarray(aweights), x.dtype)))
            factor = subtract(total, divide(multiply(square, ddof), total))
    x = subtract(x, lax.expand_dims(centre, (1,)))
    weighted = x if w is None else multiply(x, cast(w, x.dtype))
    product = dot(x, lax.transpose(conj(weighted), (1, 0)))
    factor = (scalar_like(product, factor) if isinstance(factor, int)
              else cast(asarray(factor), product.dtype))
    result = divide(product, factor)
    return lax.reshape(result, ()) if result.shape == (1, 1) else result


@composite
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:
    """Correlation coefficients of variables in rows (columns if not rowvar).

    >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).round(4)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return divide(c, c)
    variance = diag(c)
    spread = sqrt(lax.real(variance) if dtypes.kind(variance.dtype) == "c" else variance)
    c = divide(c, lax.expand_dims(spread, (1,)))
    c = divide(c, lax.expand_dims(spread, (0,)))
    if dtypes.kind(c.dtype) == "c":
        return lax.complex(_unit(lax.real(c)), _unit(lax.imag(c)))
    return _unit(c)


def _unit(x: Array) -> Array:
    return lax.clamp(scalar_like(x, -1), x, scalar_like(x, 1))


# interpolation -------------------------------------------------------------------------------


@composite
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None = None,
           right: ArrayLike | None = None, period: ArrayLike | None = None) -> Array:
    """Piecewise linear interpolation at x of the points (xp, fp), xp rising.

    Outside of the points the value is left or right (by default that of the end point;
    "extrapolate" continues the outer segments); with period, x and xp wrap around.

    >>> import functrans.numpy as jnp
    >>> jnp.interp(0.5, jnp.asarray([0.0, 1.0]), jnp.asarray([2.0, 4.0])).tolist()
    3.0
    """
    at, knots = promote_dtypes_inexact("interp", asarray(x), asarray(xp))
    (values,) = promote_dtypes_inexact("interp", asarray(fp))
    if knots.ndim != 1 or values.shape != knots.shape:
        raise ShapeError(f"functrans.numpy.interp: xp and fp are vectors of one size, and have "
                         f"shapes {knots.shape} and {values.shape}.", where=user_source())
    if period is not None:
        cycle = converted("interp", period, knots.dtype)
        at, knots = remainder(at, cycle), remainder(knots, cycle)
        places = lax.iota(np.dtype(np.int32), knots.shape[0])
        knots, places = lax.sort((knots, places), dimension=0, num_keys=1)
        values = take(values, places, mode="clip")
        n = knots.shape[0]
        knots = concatenate([slice_axis(knots, n - 1, n) - cycle, knots,
                             slice_axis(knots, 0, 1) + cycle])
        values = concatenate([slice_axis(values, n - 1, n), values, slice_axis(values, 0, 1)])
    n = knots.shape[0]
    if n == 1:
        result = broadcast(lax.reshape(values, ()), at.shape)
    else:
        index = searchsorted(knots, at, side="right")
        index = lax.clamp(scalar_like(index, 1), index, scalar_like(index, n - 1))
        before = lax.sub(index, lax.full_like(index, 1))
        x0, x1 = take(knots, before, mode="clip"), take(knots, index, mode="clip")
        y0, y1 = take(values, before, mode="clip"), take(values, index, mode="clip")
        width = lax.sub(x1, x0)
        empty = lax.eq(width, lax.full_like(width, 0))
        safe = lax.select_n(empty, width, lax.full_like(width, 1))
        part = cast(lax.div(lax.sub(at, x0), safe), values.dtype)
        result = lax.add(y0, lax.mul(part, lax.sub(y1, y0)))
        result = lax.select_n(empty, result, y0)
    if period is None:
        first, last = slice_axis(knots, 0, 1), slice_axis(knots, n - 1, n)
        first, last = lax.reshape(first, ()), lax.reshape(last, ())
        ends = (lax.reshape(slice_axis(values, 0, 1), ()),
                lax.reshape(slice_axis(values, n - 1, n), ()))
        if not (isinstance(left, str) and left == "extrapolate"):
            value = ends[0] if left is None else converted("interp", left, result.dtype)
            result = select_where(lax.lt(at, broadcast(first, at.shape)), value, result)
        if not (isinstance(right, str) and right == "extrapolate"):
            value = ends[1] if right is None else converted("interp", right, result.dtype)
            result = select_where(lax.gt(at, broadcast(last, at.shape)), value, result)
    return result


def _computation(x: Array) -> Array:
    """Halves are averaged in float32: their sums overflow and lose digits."""
    return cast(x, dtypes.computed_dtype(x.dtype))


def _mean_operand(name: str, a: ArrayLike, dtype: DTypeLike | None) -> tuple[Array, np.dtype]:
    """The operand in the dtype to compute in, and the dtype of the result."""
    x = operand(name, a)
    dtype = dtypes.to_inexact_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    return _computation(cast(x, dtype)), dtype


def _count(x: Array, axes: tuple[int, ...], where: ArrayLike | None, name: str) -> Any:
    """The number of elements that a reduction takes: a size, or an array if it depends on where."""
    if where is None:
        return size_of(x, axes)
    mask = truth(operand(name, where))
    mask = broadcast(mask, broadcast_shapes(x.shape, mask.shape, name=name))
    return sum(mask, axes, real_dtype(x.dtype))


def _over(total: Array, count: Any) -> Array:
    """total / count, with a static count as a constant (NaN for none)."""
    if isinstance(count, int):
        return lax.div(total, scalar_like(total, count))
    return _divide(total, count)


def _over_size(total: Array, count: Any) -> Array:
    """As _over, the count of a floating mean staying a number."""
    if isinstance(count, int) and total.dtype.kind == "f":
        return lax.div(total, float(count))
    return _over(total, count)


def mean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, *, where: ArrayLike | None = None,
) -> Array:
    """Arithmetic mean over axes (all by default); float16 and bfloat16 are summed in float32.

    The shape is a's without the axes, or with size 1 there with `keepdims`.

    >>> import functrans.numpy as jnp
    >>> jnp.mean(jnp.asarray([1, 2])).tolist()
    1.5
    """
    refuse_out("mean", out)
    x, dtype = _mean_operand("mean", a, dtype)
    axes = axis_tuple(axis, x.ndim, "mean")
    result = _over_size(sum(x, axes, where=where), _count(x, axes, where, "mean"))
    result = cast(result, dtype)
    return keep_dims(result, axes, x.ndim) if keepdims else result


def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Variance over axes: the mean squared distance from the mean, over N - ddof.

    >>> jnp.var(jnp.array([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    Array([1., 0.], dtype=float32)
    """
    refuse_out("var", out)
    if correction is not None:
        if ddof:
            raise ArgumentError("functrans.numpy.var: ddof and correction are one argument; give "
                                "one of them.", where=user_source())
        ddof = correction
    wanted = None if dtype is None else as_dtype(dtype)
    a = operand("var", a)
    if wanted is not None and kind(a.dtype) == "c" and kind(wanted) != "c":
        raise DTypeError(f"functrans.numpy.var of {a.dtype} does not take dtype={wanted}.",
                         where=user_source(), why="it would drop the imaginary parts.",
                         fix="var(x).astype(...), or var(x.real)")
    x, dtype = _mean_operand("var", a, dtype)
    axes = axis_tuple(axis, x.ndim, "var")
    centre = _mean(x, axes, keepdims=True, where=where) if mean is None else mean
    residual = subtract(x, centre)
    if kind(residual.dtype) == "c":
        squares = lax.add(square(lax.real(residual)), square(lax.imag(residual)))
    else:
        squares = square(residual)
    count = _count(squares, axes, where, "var")
    total = sum(squares, axes, where=where)
    if ddof:
        count = _positive_or_nan(count, ddof)
    result = cast(_over_degrees(total, count), wanted or real_dtype(dtype))
    return keep_dims(result, axes, x.ndim) if keepdims else result


_mean = mean


def _positive_or_nan(count: Any, ddof: float) -> Any:
    """Degrees of freedom; none or fewer give NaN or infinity by dividing by 0."""
    if isinstance(count, int):
        return float(np.maximum(count - ddof, 0))
    rest = subtract(count, ddof)
    return lax.max(rest, lax.full_like(rest, 0))


def _over_degrees(total: Array, count: Any) -> Array:
    if isinstance(count, (int, float)):
        if total.dtype.kind == "f":
            return lax.div(total, float(count))
        return lax.div(total, scalar_like(total, count))
    return divide(total, count)


def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: float | None = None) -> Array:
    """Standard deviation over axes: the square root of var.

    >>> jnp.std(jnp.array([1.0, 3.0, 5.0, 7.0]), ddof=1).round(4)
    Array(2.582, dtype=float32)
    """
    refuse_out("std", out)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                    correction=correction))


def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Weighted mean over axes; weights have a's shape, or the shape of its reduced axes.

    >>> jnp.average(jnp.array([1.0, 2.0, 6.0]), weights=jnp.array([3, 2, 1])).round(4)
    Array(2.1667, dtype=float32)
    """
    x = operand("average", a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = size_of(x, axis_tuple(axis, x.ndim, "average"))
        total = broadcast(scalar_like(result, count), result.shape)
    else:
        x, w = promote_dtypes_inexact("average", x, weights)
        axes = axis_tuple(axis, x.ndim, "average")
        if w.shape != x.shape:
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                raise ArgumentError(
                    f"functrans.numpy.average: weights of shape {w.shape} fit neither the array's "
                    f"shape {x.shape} nor its axes {axis}.", where=user_source())
            order = np.argsort(axes)
            w = lax.transpose(w, tuple(int(i) for i in order))
            w = lax.broadcast_in_dim(w, x.shape, tuple(sorted(axes)))
        total = sum(w, axes, keepdims=keepdims)
        result = divide(sum(multiply(x, w), axes, keepdims=keepdims), total)
    return (result, total) if returned else result


def _valid(name: str, x: Array, where: ArrayLike | None) -> Array:
    """Where an element counts: it is not NaN, and `where` holds."""
    valid = lax.bitwise_not(isnan(x))
    if where is None:
        return valid
    valid, where = promote(name, valid, truth(operand(name, where)))
    return lax.bitwise_and(valid, where)


@composite
def nanmean(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
    keepdims: bool = False, where: ArrayLike | None = None,
) -> Array:
    """Mean over axes of the elements that are not NaN.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    x = operand("nanmean", a)
    if kind(x.dtype) not in "fc":
        return mean(x, axis, dtype, keepdims=keepdims, where=where)
    return mean(x, axis, dtype, keepdims=keepdims, where=_valid("nanmean", x, where))


@composite
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: float = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Variance over axes of the elements that are not NaN; NaN where ddof leaves none.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 5.0]))
    Array(4., dtype=float32)
    """
    refuse_out("nanvar", out)
    x = operand("nanvar", a)
    if kind(x.dtype) not in "fc":
        return var(x, axis, dtype, None, ddof, keepdims, where=where, mean=mean)
    valid = _valid("nanvar", x, where)
    result = var(replace_where(x, isnan(x), 0), axis, dtype, None, ddof, keepdims, where=valid,
                 mean=mean)
    count = sum(valid, axis, real_dtype(result.dtype), keepdims=keepdims)
    return replace_where(result, lax.le(count, lax.full_like(count, ddof)), np.nan)


@composite
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: float = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None) -> Array:
    """Standard deviation over axes of the elements that are not NaN.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    return sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
             ) -> Array:
    """The number of the bin of each element; bins rise or fall.

    Bin i of falling edges holds bins[i - 1] > x >= bins[i], with `right` bins[i - 1] >= x and
    x > bins[i].

    >>> jnp.digitize(jnp.array([0.2, 6.4, 3.0]), jnp.array([0.0, 1.0, 2.5, 4.0]))
    Array([1, 4, 3], dtype=int32)
    """
    method = "scan" if method is None else method
    edges = asarray(bins)
    side: Literal["left", "right"] = "right" if not right else "left"
    values = asarray(x)
    if edges.ndim != 1:
        raise ShapeError(f"functrans.numpy.digitize: bins is a vector, and not of shape "
                         f"{edges.shape}.", where=user_source())
    size = edges.shape[0]
    if size == 0:
        return filled(values.shape, 0, index_dtype())
    rising = searchsorted(edges, values, side, method=method)
    turned = searchsorted(lax.rev(edges, (0,)), values, side, method=method)
    falling = lax.sub(lax.full_like(turned, size), turned)
    first, last = slice_axis(edges, 0, 1), slice_axis(edges, size - 1, size)
    ascending = broadcast(lax.reshape(lax.le(first, last), ()), rising.shape)
    return lax.select_n(ascending, falling, rising)
