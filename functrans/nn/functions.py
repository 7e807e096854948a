"""Softmax and its relatives, and other functions along axes.

Maxima that only keep exponentials in range are constants to differentiation. Elements that a mask
leaves out have zero gradient, whatever they hold; rows that it empties give 0 (softmax) or -inf
(logarithms), with zero gradient.
"""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

import functrans.numpy as jnp
from functrans import lax
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, Axis, DTypeLike

__all__ = ["log1mexp", "log_softmax", "logmeanexp", "logsumexp", "normalize", "one_hot", "softmax",
           "standardize"]


def _peak(x: Array, axis: Axis, where: ArrayLike | None, initial: ArrayLike | None) -> Array:
    """The largest (real part of an) element along axes, a constant; 0 where that is not finite."""
    if dtypes.kind(x.dtype) == "c":
        x = jnp.real(x)
    peak = jnp.max(lax.stop_gradient(x), axis=axis, keepdims=True, where=where,
                   initial=-math.inf if initial is None else initial)
    return jnp.where(jnp.isfinite(peak), peak, 0)


@composite
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None, *,
            initial: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)) along axes (None: all), of the elements where `where` holds, else 0.

    The shape is x's.

    `initial` is a lower bound of the maximum that is subtracted; it changes nothing else.

    >>> import functrans as ft
    >>> ft.nn.softmax(ft.numpy.array([1000.0, 1000.0, -1000.0])).tolist()
    [0.5, 0.5, 0.0]
    """
    (x,) = promote_dtypes_inexact("softmax", x)
    if where is not None:
        x = jnp.where(where, x, -math.inf)
    powers = jnp.exp(x - _peak(x, axis, None, initial))
    total = jnp.sum(powers, axis=axis, keepdims=True)
    if where is not None:
        total = jnp.where(total == 0, 1, total)
    return powers / total


@composite
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None, *,
                initial: ArrayLike | None = None) -> Array:
    """log(softmax(x)) along axes (None: all); -inf where `where` does not hold.

    >>> import functrans as ft
    >>> ft.nn.log_softmax(ft.numpy.array([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    (x,) = promote_dtypes_inexact("log_softmax", x)
    if where is not None:
        x = jnp.where(where, x, -math.inf)
    shifted = x - _peak(x, axis, None, initial)
    total = jnp.sum(jnp.exp(shifted), axis=axis, keepdims=True)
    if where is not None:
        total = jnp.where(total == 0, 1, total)
    return shifted - jnp.log(total)


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              *, return_sign: Literal[True], where: ArrayLike | None = None
              ) -> tuple[Array, Array]: ...


@composite
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None
              ) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))) over axes (all by default), without overflow.

    With `return_sign` the logarithm of the absolute value and the sign of the sum (for complex
    numbers its direction); else a negative sum of real numbers gives NaN. An empty or all-zero sum
    gives -inf, with zero gradient.

    >>> import functrans as ft
    >>> float(ft.nn.logsumexp(ft.numpy.array([1000.0, -1000.0])))
    1000.0
    """
    if b is None:
        (x,) = promote_dtypes_inexact("logsumexp", a)
    else:
        x, b = promote_dtypes_inexact("logsumexp", a, b)
        x, b = jnp.broadcast_arrays(x, b)
        x = jnp.where(b == 0, -math.inf, x)  # 0 * exp(inf) is left out, not NaN
    if where is not None:
        x = jnp.where(where, x, -math.inf)
    peak = _peak(x, axis, None, None)
    powers = jnp.exp(x - peak)
    if b is not None:
        powers = powers * (b if where is None else jnp.where(where, b, 0))
    total = jnp.sum(powers, axis=axis, keepdims=True)
    real = dtypes.kind(x.dtype) != "c"
    sign: Any = jnp.sign(total) if return_sign else None
    size = jnp.abs(total) if return_sign or (real and b is not None) else total
    empty = size == 0
    out = jnp.where(empty, -math.inf, jnp.log(jnp.where(empty, 1, size)) + peak)
    if b is not None and real and not return_sign:
        out = jnp.where(total < 0, math.nan, out)
    if not keepdims:
        out = _drop(out, axis)
    if not return_sign:
        return out
    return out, sign if keepdims else _drop(sign, axis)


def _drop(x: Array, axis: Axis) -> Array:
    return jnp.squeeze(x, axis if axis is None or isinstance(axis, int) else tuple(axis))


def _count(x: Array, axis: Axis, where: ArrayLike | None) -> Any:
    """The number of elements over axes, or of those where the mask holds (kept dimensions)."""
    if where is None:
        axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        return math.prod(x.shape[a] for a in axes)
    mask = jnp.broadcast_to(where, x.shape)
    dtype = np.dtype(x.dtype.type(0).real.dtype) if dtypes.kind(x.dtype) == "c" else x.dtype
    return jnp.sum(mask.astype(dtype), axis=axis, keepdims=True)


def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over axes (all by default), without overflow.

    >>> import functrans as ft
    >>> float(ft.nn.logmeanexp(ft.numpy.array([1000.0, 1000.0])))
    1000.0
    """
    (x,) = promote_dtypes_inexact("logmeanexp", x)
    total = logsumexp(x, axis=axis, where=where, keepdims=True)
    count = _count(x, axis, where)
    out = total - (math.log(count) if isinstance(count, int) and count else jnp.log(count))
    return out if keepdims else _drop(out, axis)


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, accurate for small and for large x.

    Mächler, 2012, "Accurately computing log(1 - exp(-|a|))".

    >>> import functrans as ft
    >>> round(float(ft.nn.log1mexp(1.0)), 4)
    -0.4587
    """
    (x,) = promote_dtypes_inexact("log1mexp", x)
    near = x < math.log(2)
    small, large = jnp.where(near, x, 1), jnp.where(near, 1, x)
    return jnp.where(near, jnp.log(-jnp.expm1(-small)), jnp.log1p(-jnp.exp(-large)))


@composite
def standardize(x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None,
                variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "stable") -> Array:
    """(x - mean) / sqrt(variance + epsilon) along axes (None: all).

    Mean and variance of the elements where `where` holds are computed where they are not given;
    the variance from differences to the mean ("stable"), or from mean squares ("fast", which
    cancels where the mean is large).

    >>> import functrans as ft
    >>> ft.nn.standardize(ft.numpy.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    if algorithm not in ("stable", "fast"):
        raise ArgumentError(f"nn.standardize: algorithm={algorithm!r} is not known.",
                            where=user_source(), fix='algorithm="stable" or algorithm="fast"')
    (x,) = promote_dtypes_inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis=axis, keepdims=True, where=where)
    centered = x - mean
    spread: Any = variance
    if variance is None:
        square = jnp.square(centered if algorithm == "stable" else x)
        spread = jnp.mean(square, axis=axis, keepdims=True, where=where)
        if algorithm == "fast":
            spread = spread - jnp.square(mean)
    (scale,) = promote_dtypes_inexact("standardize", spread + epsilon)
    return centered * lax.rsqrt(scale)


normalize = standardize


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
            ) -> Array:
    """Zeros with a 1 at index x along a new axis of size num_classes; no 1 if x is out of range.

    The shape is (*x.shape, num_classes), with the new axis at `axis`.

    The dtype is the default floating one unless given.

    >>> import functrans as ft
    >>> ft.nn.one_hot(ft.numpy.array([1, 3]), 3).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    x = operand("one_hot", x)
    where = axis % (x.ndim + 1)
    classes = lax.broadcasted_iota(x.dtype, (num_classes,), 0)
    classes = jnp.reshape(classes, (num_classes, *(1,) * (x.ndim - where)))
    hot = jnp.expand_dims(x, where) == classes
    return hot.astype(dtypes.default_float() if dtype is None else dtype)
