"""Discrete distributions: integers, booleans, categories, permutations and choices."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.dims import Dim
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.random.arguments import (
    int_dtype,
    sample_shape,
    unit_uniform,
)
from functrans.random.continuous import gumbel_from_key
from functrans.random.generators import Pair
from functrans.random.keys import child, pair
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def bernoulli(key: Array, p: ArrayLike = 0.5, shape: ShapeLike | None = None, mode: str = "low"
              ) -> Array:
    """Booleans that are true with probability `p`; mode "high" resolves p below 1e-7.

    >>> import functrans as ft
    >>> ft.random.bernoulli(ft.random.key(0), 0.5, (4,)).dtype
    dtype('bool')
    """
    if mode not in ("low", "high"):
        raise ArgumentError(
            f"the mode {mode!r} of bernoulli is none of 'low', 'high'.", where=user_source()
        )
    dtype = dtypes.dtype_of(p)
    if dtypes.kind(dtype) != "f":
        raise DTypeError(
            f"bernoulli: the probability p is {dtype}, and must be floating.",
            where=user_source(),
            fix="ft.random.bernoulli(key, 0.5)",
        )
    p = ftnp.asarray(p, dtype)
    shape = sample_shape("bernoulli", shape, p)
    words = pair("bernoulli", key)
    if mode == "low":
        return unit_uniform(words, shape, dtype) < p
    drawn = unit_uniform(words, (2, *shape), dtype)
    ulp: float = 2.0 ** -dtypes.finfo(dtype).nmant
    return drawn[1] * ulp < p - drawn[0]


def rademacher(key: Array, shape: ShapeLike = (), dtype: DTypeLike | None = None) -> Array:
    """Signs: -1 or 1 with equal probability, by default of the default integer dtype.

    >>> import functrans as ft
    >>> ft.random.rademacher(ft.random.key(0), (4,)).dtype
    dtype('int32')
    """
    dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    heads = lax.convert_element_type(bernoulli(key, 0.5, shape), dtype)
    return heads * 2 - 1


def randint(key: Array, shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
            dtype: DTypeLike | None = None) -> Array:
    """Integers in [minval, maxval), whose shapes broadcast to `shape`; minval if that is empty.

    Bounds outside of the dtype are cut to it, so that the whole range of uint8 is 0 and 256.

    >>> import functrans as ft
    >>> x = ft.random.randint(ft.random.key(0), (100,), 0, 6)
    >>> int(x.min()), int(x.max())
    (0, 5)
    """
    return _randint(pair("randint", key), shape, minval, maxval, int_dtype("randint", dtype))


def _randint(words: Pair, shape: ShapeLike, minval: ArrayLike, maxval: ArrayLike,
             dtype: dtypes.DType) -> Array:
    # Narrow integers are drawn in 32 bits, against the bias of the remainder.
    drawn = np.dtype(np.int32) if dtype.itemsize < 4 else dtype
    limits = dtypes.iinfo(dtype)
    if isinstance(minval, int) and isinstance(maxval, int):
        first = min(max(minval, int(limits.min)), int(limits.max))
        span = max(min(maxval, int(limits.max) + 1) - first, 1)
        shape = sample_shape("randint", shape)
        offset = _static_offsets(words, shape, span, drawn)
        drawn_ints = lax.convert_element_type(offset, drawn)
        return lax.convert_element_type(drawn_ints + first if first else drawn_ints, dtype)
    low, _ = _bound(minval, drawn, int(limits.min), int(limits.max))
    high, beyond = _bound(maxval, drawn, int(limits.min), int(limits.max) + 1)
    shape = sample_shape("randint", shape, low, high)
    return lax.convert_element_type(_integers(words, shape, low, high, beyond, drawn), dtype)


def _bound(x: ArrayLike, dtype: dtypes.DType, least: int, most: int) -> tuple[Any, Any]:
    """A bound cut to the dtype, and whether it lay beyond its largest value."""
    top = int(dtypes.iinfo(dtype).max)
    if isinstance(x, int):
        x = min(max(x, least), most)
        return ftnp.asarray(np.asarray(min(x, top)).astype(dtype)), ftnp.asarray(x > top)
    x = ftnp.asarray(x)
    if dtypes.kind(x.dtype) not in "iu":
        x = lax.convert_element_type(x, dtypes.default_int())
    own = dtypes.iinfo(x.dtype)
    beyond = x > min(top, int(own.max))
    cut = ftnp.clip(x, max(least, int(own.min)), min(most, top, int(own.max)))
    return lax.convert_element_type(cut, dtype), beyond


def _static_offsets(key: Pair, shape: tuple[Any, ...], span: int, dtype: dtypes.DType) -> Array:
    """Integers in [0, span) as `_integers` draws them, for a span that Python knows."""
    width = 8 * dtype.itemsize
    lower = child(key, 1).bits(width, shape)
    if span == 2**width:
        return lower
    shift: int = ((2 ** (width // 2) % span) ** 2 % 2**width) % span
    if not shift:
        return lower % span
    upper = child(key, 0).bits(width, shape)
    return (upper % span * shift + lower % span) % span


def _integers(key: Pair, shape: tuple[Any, ...], low: Array, high: Array, beyond: Any,
              dtype: dtypes.DType) -> Array:
    """Integers in [low, high), or [low, high] where `beyond`, by the remainder of twice the bits.

    The remainder of (a 2^n + b) modulo m is that of (a mod m) (2^n mod m) + (b mod m).
    """
    width = 8 * dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    upper, lower = (child(key, i).bits(width, shape) for i in (0, 1))
    span = lax.convert_element_type(high - low, unsigned)
    span = ftnp.where(high <= low, ftnp.ones_like(span), span)
    # A span of 2^n wraps to 0, the remainder by which changes nothing: so it should be.
    span = ftnp.where(beyond & (high > low), span + 1, span)
    half = _remainder(ftnp.full_like(span, 2 ** (width // 2)), span)
    shift = _remainder(half * half, span)
    offset = _remainder(upper, span) * shift + _remainder(lower, span)
    offset = _remainder(offset, span)
    return low + lax.convert_element_type(offset, dtype)


def _remainder(x: Any, span: Any) -> Array:
    """x modulo span; x itself where span is zero, which stands for 2^n."""
    if tuple(x.shape) != tuple(span.shape):
        span = ftnp.broadcast_to(span, x.shape)
    safe = ftnp.where(span == 0, ftnp.ones_like(span), span)
    return ftnp.where(span == 0, x, lax.rem(x, safe))


def categorical(
    key: Array,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Categories with probabilities softmax(logits) along `axis`, as indices.

    The shape is by default that of the logits without the axis, and must end with it. Without
    replacement, the leading dimensions of the shape number different categories. Raises
    ArgumentError if there are not enough of them.

    >>> import functrans as ft
    >>> logits = ft.numpy.log(ft.numpy.array([0.1, 0.9]))
    >>> float(ft.random.categorical(ft.random.key(0), logits, shape=(1000,)).mean()) > 0.8
    True
    """
    logits = ftnp.asarray(logits)
    axis = axis % logits.ndim
    batch = tuple(n for i, n in enumerate(logits.shape) if i != axis)
    words = pair("categorical", key)
    if shape is None:
        shape = batch
    elif batch:
        shape = sample_shape("categorical", shape, ftnp.empty(batch, bool))
    else:
        shape = sample_shape("categorical", shape)
    leading = shape[: len(shape) - len(batch)]
    if replace:
        lanes = [*shape[len(leading) :]]
        lanes.insert(axis, logits.shape[axis])
        noise = gumbel_from_key(words, (*leading, *lanes), logits.dtype, mode)
        return ftnp.argmax(noise + logits, axis=axis - logits.ndim)
    count = math.prod(leading)
    if count > logits.shape[axis]:
        raise ArgumentError(
            f"categorical: {count} samples without replacement from {logits.shape[axis]} "
            "categories.",
            where=user_source(),
            fix="ft.random.categorical(..., replace=True)",
        )
    noisy = logits + gumbel_from_key(words, tuple(logits.shape), logits.dtype, mode)
    chosen = lax.top_k(ftnp.moveaxis(noisy, axis, -1), count)[1]
    return ftnp.moveaxis(chosen, -1, 0).reshape(shape)


def permutation(key: Array, x: ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """The elements of x along an axis in random order, or of range(x) for an integer x.

    With `independent` every vector along the axis is shuffled on its own.

    >>> import functrans as ft
    >>> sorted(ft.random.permutation(ft.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return _permutation(pair("permutation", key), x, axis, independent)


def _permutation(words: Pair, x: ArrayLike, axis: int, independent: bool = False) -> Array:
    if isinstance(x, (int, np.integer, Dim)):
        return _shuffle(words, ftnp.arange(x), 0)
    x = ftnp.asarray(x)
    if not x.ndim:
        return _shuffle(words, ftnp.arange(int(x)), 0)
    axis = _axis("permutation", axis, x.ndim)
    if independent or x.ndim == 1:
        return _shuffle(words, x, axis)
    return ftnp.take(x, _shuffle(words, ftnp.arange(x.shape[axis]), 0), axis)


def _axis(name: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{name}: axis {axis} is not one of the {ndim} axes.", where=user_source())
    return axis % ndim


def _shuffle(key: Pair, x: Array, axis: int) -> Array:
    """x sorted along an axis by random 32-bit numbers, as often as makes equal ones harmless.

    With n numbers drawn, r rounds leave a tie with probability about n^2 / 2^(32 r); the number
    of rounds is so that n^3 < 2^(32 r).
    """
    rounds = next(r for r in itertools.count() if x.size**3 <= (2**32 - 1) ** r)
    for _ in range(rounds):
        draw, key = child(key, 1), child(key, 0)
        _, x = lax.sort((draw.bits(32, tuple(x.shape)), x), axis)
    return x


def choice(
    key: Array,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of `a` along an axis (or of range(a)), uniform or with probabilities p.

    The axis is replaced by `shape`. Raises ArgumentError if, without replacement, more are asked
    for than there are, and ShapeError if p has another size than the axis.

    >>> import functrans as ft
    >>> ft.random.choice(ft.random.key(0), 10, (3,), replace=False).shape
    (3,)
    """
    words = pair("choice", key)
    shape = sample_shape("choice", shape)
    number: Any = a
    array = None if isinstance(a, (int, np.integer, Dim)) else ftnp.asarray(a)
    if array is not None and not array.ndim:
        number, array = int(array), None
    axis = 0 if array is None else _axis("choice", axis, array.ndim)
    total = array.shape[axis] if array is not None else \
        number if isinstance(number, Dim) else int(number)
    count = math.prod(shape)
    if not count:
        rest = () if array is None else (array.shape[:axis], array.shape[axis + 1 :])
        full = (*rest[0], *shape, *rest[1]) if rest else shape
        return ftnp.zeros(full, dtypes.default_int() if array is None else array.dtype)
    if total <= 0 or (not replace and count > total):
        kind = "with" if replace else "without"
        raise ArgumentError(
            f"choice: {count} samples {kind} replacement from {total} elements.",
            where=user_source(),
            fix="ft.random.choice(key, a, shape, replace=True)",
        )
    if p is None and not replace:
        chosen = _permutation(words, total if array is None else array, axis)
        index = (slice(None),) * axis + (slice(count),)
        return _spread(chosen[index], array, axis, shape)
    indices = _indices(words, total, shape, replace, p, mode)
    return _spread(
        indices if array is None else ftnp.take(array, indices, axis), array, axis, shape
    )


def _spread(x: Array, array: Any, axis: int, shape: tuple[Any, ...]) -> Array:
    """x with the sampled axis in the sample shape."""
    if array is None:
        return x.reshape(shape)
    return x.reshape((*array.shape[:axis], *shape, *array.shape[axis + 1 :]))


def _indices(words: Pair, total: Any, shape: tuple[Any, ...], replace: bool,
             p: ArrayLike | None, mode: str | None) -> Array:
    """Indices below `total`: with replacement, or without and with probabilities."""
    if p is None:
        return _randint(words, shape, 0, total, dtypes.default_int())
    p = ftnp.asarray(p)
    p = lax.convert_element_type(p, dtypes.to_inexact_dtype(p.dtype))
    if tuple(p.shape) != (total,):
        raise ShapeError(
            f"choice: the probabilities have shape {tuple(p.shape)}, for {total} elements.",
            where=user_source(),
            why="there is one probability per element along the axis.",
        )
    if replace:
        sums = ftnp.cumsum(p)
        drawn = sums[-1] * (1.0 - unit_uniform(words, shape, p.dtype))
        return lax.convert_element_type(ftnp.searchsorted(sums, drawn), dtypes.default_int())
    # the largest of log p + Gumbel noise are a sample without replacement (Yellott 1977)
    noisy = gumbel_from_key(words, (total,), p.dtype, mode) + ftnp.log(p)
    return lax.convert_element_type(lax.top_k(noisy, math.prod(shape))[1], dtypes.default_int())


def geometric(key: Array, p: ArrayLike, shape: ShapeLike | None = None,
              dtype: DTypeLike | None = None) -> Array:
    """The number of trials up to the first success, each of probability p.

    >>> import functrans as ft
    >>> bool((ft.random.geometric(ft.random.key(0), 0.3, (100,)) >= 1).all())
    True
    """
    dtype = int_dtype("geometric", dtype)
    p = ftnp.asarray(p)
    p = lax.convert_element_type(p, dtypes.to_inexact_dtype(p.dtype))
    shape = sample_shape("geometric", shape, p)
    u = unit_uniform(pair("geometric", key), shape, p.dtype)
    u = ftnp.where(u == 0, ftnp.ones_like(u), u)
    return lax.convert_element_type(lax.floor(lax.log(u) / lax.log1p(-p)) + 1, dtype)
