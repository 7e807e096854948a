"""Normalizations as functions: statistics in float32 at least, results in the operand's dtype."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.typing import Array, ArrayLike, Axis, AxisName

__all__ = ["BatchStats", "batch_norm", "group_norm", "layer_norm", "rms_norm"]


class BatchStats(NamedTuple):
    """Running mean and variance of each feature, for `batch_norm` without a batch.

    >>> x = jnp.array([[1.0], [3.0]])
    >>> y, stats = ft.nn.batch_norm(x, ft.nn.BatchStats(jnp.zeros(1), jnp.ones(1)), training=True)
    >>> stats
    BatchStats(mean=Array([0.2], dtype=float32), variance=Array([1.], dtype=float32))
    """

    mean: Array
    variance: Array


def _wide(x: Array) -> Array:
    """In float32 where it is narrower."""
    return x.astype(jnp.promote_types(x.dtype, np.float32))


def _scaled(x: Array, scale: ArrayLike | None, bias: ArrayLike | None) -> Array:
    if scale is not None:
        x = x * scale
    return x if bias is None else x + bias


def _standardized(x: Array, axis: Axis, epsilon: float) -> Array:
    mean = x.mean(axis, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis, keepdims=True)
    return centred * lax.rsqrt(variance + epsilon)


def layer_norm(x: ArrayLike, scale: ArrayLike | None = None, bias: ArrayLike | None = None, *,
               axis: Axis = -1, epsilon: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + epsilon) along axes, times `scale`, plus `bias`.

    The shape is x's.

    Source: Ba, Kiros and Hinton, Layer normalization (2016).

    >>> import functrans as ft
    >>> ft.nn.layer_norm(ft.numpy.array([[1.0, 3.0]]), epsilon=0.0)
    Array([[-1.,  1.]], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("layer_norm", x)
    return _scaled(_standardized(_wide(x), axis, epsilon), scale, bias).astype(x.dtype)


def rms_norm(x: ArrayLike, scale: ArrayLike | None = None, *, axis: Axis = -1,
             epsilon: float = 1e-6) -> Array:
    """x / sqrt(mean(x^2) + epsilon) along axes, times `scale`.

    Source: Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019.

    >>> import functrans as ft
    >>> ft.nn.rms_norm(ft.numpy.array([3.0, -3.0]), epsilon=0.0)
    Array([ 1., -1.], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("rms_norm", x)
    wide = _wide(x)
    normalized = wide * lax.rsqrt((wide * wide).mean(axis, keepdims=True) + epsilon)
    return _scaled(normalized, scale, None).astype(x.dtype)


def group_norm(x: ArrayLike, groups: int, scale: ArrayLike | None = None,
               bias: ArrayLike | None = None, *, epsilon: float = 1e-5) -> Array:
    """Normalization of each sample over space and over groups of features.

    x has shape (batch, ..., features); `scale` and `bias` have shape (features,). As many groups as
    features is instance normalization. Raises ShapeError where groups do not divide features.
    Source: Wu and He, Group normalization, ECCV 2018.

    >>> import functrans as ft
    >>> ft.nn.group_norm(ft.numpy.array([[1.0, 3.0, 10.0, 30.0]]), 2, epsilon=0.0)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("group_norm", x)
    features = x.shape[-1] if x.ndim >= 2 else 0
    if x.ndim < 2 or groups < 1 or features % groups:
        raise ShapeError(f"group_norm got x of shape {x.shape} and groups={groups}.",
                         where=user_source(), why="x is (batch, ..., features), and groups divide "
                                                  "its features.")
    parts = _wide(x).reshape(*x.shape[:-1], groups, features // groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    normalized = _standardized(parts, axes, epsilon).reshape(x.shape)
    return _scaled(normalized, scale, bias).astype(x.dtype)


def batch_norm(x: ArrayLike, stats: BatchStats | None = None, scale: ArrayLike | None = None,
               bias: ArrayLike | None = None, *, training: bool, momentum: float = 0.9,
               axis: Axis = None, epsilon: float = 1e-5,
               axis_name: AxisName | None = None) -> tuple[Array, BatchStats]:
    """Normalization of each feature over a batch, and the running statistics after it.

    x has shape (batch, ..., features); the mean is over all axes but the last, or over `axis`, and
    over the mapped axis `axis_name` of a `vmap`. With `training` the statistics are those of x, and
    `stats` moves towards them: momentum * stats + (1 - momentum) * those of x (None: they are
    those of x). Without it `stats` are used as they are. Raises ArgumentError without both.
    Source: Ioffe and Szegedy, Batch normalization, ICML 2015.

    >>> import functrans as ft
    >>> y, stats = ft.nn.batch_norm(ft.numpy.array([[1.0], [3.0]]), training=True, epsilon=0.0)
    >>> y.ravel().tolist(), stats.mean.tolist()
    ([-1.0, 1.0], [2.0])
    """
    (x,) = promote_dtypes_inexact("batch_norm", x)
    wide = _wide(x)
    axes = tuple(range(x.ndim - 1)) if axis is None else axis
    if training:
        mean, square = wide.mean(axes, keepdims=True), (wide * wide).mean(axes, keepdims=True)
        if axis_name is not None:
            mean, square = lax.pmean((mean, square), axis_name)
            variance = jnp.maximum(square - mean * mean, 0)
        else:
            variance = ((wide - mean) ** 2).mean(axes, keepdims=True)
        new = BatchStats(mean.squeeze(axes), variance.squeeze(axes))
        if stats is not None:
            new = BatchStats(*[momentum * old + (1 - momentum) * now
                               for old, now in zip(stats, new, strict=True)])
        after = BatchStats(*map(lax.stop_gradient, new))
    elif stats is None:
        raise ArgumentError("batch_norm without training needs stats.", where=user_source(),
                            fix="the BatchStats that batch_norm(..., training=True) returned")
    else:
        after = stats
        mean, variance = (jnp.expand_dims(jnp.asarray(s), axes) for s in stats)
    normalized = (wide - mean) * lax.rsqrt(variance + epsilon)
    return _scaled(normalized, scale, bias).astype(x.dtype), after
