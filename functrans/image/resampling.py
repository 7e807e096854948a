"""resize and scale_and_translate: every axis is multiplied by a matrix of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.image.methods import KERNELS, ResizeMethod, method_of
from functrans.numpy.common import axis_index, promote_dtypes_inexact, shape_tuple
from functrans.primitives.precision import Precision
from functrans.typing import Array, ArrayLike, PrecisionLike, Shape, ShapeLike

_LEAST_SUM = 1000 * float(np.finfo(np.float32).eps)  # of weights: less is no pixel of the image


def resize(image: ArrayLike, shape: ShapeLike, method: str | ResizeMethod, antialias: bool = True,
           precision: PrecisionLike = Precision.HIGHEST) -> Array:
    """`image` resampled to `shape`, axis by axis; axes of an unchanged size stay as they are.

    `method` is "nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5" or "area".
    With `antialias` kernels are as wide as the pixels of the result where these are the larger
    ones. Raises ShapeError for a shape of another rank, ArgumentError for an unknown method.

    >>> import functrans as ft
    >>> ft.image.resize(ft.numpy.array([[0.0, 4.0]]), (1, 4), "linear").tolist()
    [[0.0, 1.0, 3.0, 4.0]]
    """
    x, sizes, how = _operands("resize", image, shape, method)
    axes = [d for d in range(x.ndim) if x.shape[d] != sizes[d]]
    if how is ResizeMethod.NEAREST:
        for d in axes:
            x = jnp.take(x, _nearest(x.shape[d], sizes[d]), axis=d)
        return x
    (x,) = promote_dtypes_inexact("image.resize", x)
    scales = [sizes[d] / x.shape[d] if x.shape[d] else 1.0 for d in axes]
    return _resampled(x, sizes, axes, scales, [0.0] * len(axes), how, antialias, precision)


def scale_and_translate(image: ArrayLike, shape: ShapeLike, spatial_dims: Sequence[int],
                        scale: ArrayLike, translation: ArrayLike, method: str | ResizeMethod,
                        antialias: bool = True, precision: PrecisionLike = Precision.HIGHEST
                        ) -> Array:
    """`image` scaled and moved along `spatial_dims` and resampled to `shape`.

    What stands at x goes to `scale * x + translation`, where the middle of pixel i is i + 0.5;
    both are vectors with a number for each of `spatial_dims`, and may be traced. Pixels of the
    result outside of the image are 0. All methods of `resize` but "nearest" are there.
    Raises ShapeError for shapes that do not fit, ArgumentError for an unknown method.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 3.0])
    >>> ft.image.scale_and_translate(x, (3,), (0,), ft.numpy.array([1.0]), ft.numpy.array([1.0]),
    ...                              "linear").tolist()
    [0.0, 1.0, 2.0]
    """
    x, sizes, how = _operands("scale_and_translate", image, shape, method)
    if how is ResizeMethod.NEAREST:
        raise ArgumentError("functrans.image.scale_and_translate has no method 'nearest'.",
                            where=user_source(), fix="functrans.image.resize, 'linear'")
    axes = [axis_index(d, x.ndim, "scale_and_translate") for d in spatial_dims]
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"functrans.image.scale_and_translate: spatial_dims={spatial_dims} "
                            "names one axis twice.", where=user_source())
    scales, moves = (jnp.asarray(v) for v in (scale, translation))
    if scales.shape != (len(axes),) or moves.shape != (len(axes),):
        raise ShapeError(f"functrans.image.scale_and_translate: scale has shape {scales.shape} and "
                         f"translation {moves.shape}.", where=user_source(),
                         why=f"there are {len(axes)} spatial_dims.")
    other = [d for d in range(x.ndim) if d not in axes and x.shape[d] != sizes[d]]
    if other:
        raise ShapeError(f"functrans.image.scale_and_translate: axis {other[0]} goes from "
                         f"{x.shape[other[0]]} to {sizes[other[0]]} pixels, and is not one of "
                         f"spatial_dims={tuple(spatial_dims)}.", where=user_source())
    (x,) = promote_dtypes_inexact("image.scale_and_translate", x)
    scales, moves = promote_dtypes_inexact("image.scale_and_translate", scales, moves)
    return _resampled(x, sizes, axes, list(scales), list(moves), how, antialias, precision)


def _operands(name: str, image: ArrayLike, shape: ShapeLike, method: str | ResizeMethod
              ) -> tuple[Array, Shape, ResizeMethod]:
    x = jnp.asarray(image)
    sizes = shape_tuple(shape, name, "functrans.image")
    if len(sizes) != x.ndim:
        raise ShapeError(f"functrans.image.{name}: the image has shape {x.shape}, the result "
                         f"{tuple(sizes)}.", where=user_source(), why="both have the same axes.",
                         fix="shape=(batch, height, width, channels)")
    return x, sizes, method_of(method)


def _nearest(size: Any, wanted: Any) -> Array:
    """The pixels under the middles of the pixels of the result."""
    middles = (jnp.arange(wanted, dtype=np.float32) + 0.5) * size / wanted
    return jnp.floor(middles).astype(np.int32)


def _resampled(x: Array, shape: Shape, axes: Sequence[int], scales: Sequence[Any],
               moves: Sequence[Any], method: ResizeMethod, antialias: bool,
               precision: PrecisionLike) -> Array:
    at_edges = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    dtype = dtypes.result_type(x.real.dtype, *[s for s in scales if jnp.ndim(s) or
                                               not isinstance(s, float)])
    # the axis that shrinks most goes first, so that the others have less to do
    order = sorted(range(len(axes)), key=lambda i: _growth(x.shape[axes[i]], shape[axes[i]]))
    for i in order:
        d, size = axes[i], x.shape[axes[i]]
        if at_edges:
            weights = _weights_with_edges(size, shape[d], scales[i], moves[i], dtype)
        else:
            weights = _weights(size, shape[d], scales[i], moves[i], method, antialias, dtype)
        product = jnp.tensordot(x, weights.astype(x.dtype), axes=((d,), (0,)), precision=precision)
        x = jnp.moveaxis(product, -1, d)
    return x


def _growth(size: Any, wanted: Any) -> float:
    known = isinstance(size, int) and isinstance(wanted, int) and size
    return wanted / size if known else 1.0


def _samples(size: Any, scale: Any, move: Any, dtype: Any) -> tuple[Array, Any]:
    """Where in the image, in pixels, the middles of the pixels of the result lie; 1 / scale."""
    step = 1 / scale
    return (jnp.arange(size, dtype=dtype) + 0.5) * step - move * step - 0.5, step


def _weights(size: Any, wanted: Any, scale: Any, move: Any, method: ResizeMethod, antialias: bool,
             dtype: Any) -> Array:
    """The matrix (size, wanted) that an axis is multiplied by."""
    at, step = _samples(wanted, scale, move, dtype)
    pixels = jnp.arange(size, dtype=dtype)[:, None]
    if method is ResizeMethod.AREA:
        # how much of an input pixel a pixel of the result covers
        left = (jnp.arange(wanted, dtype=dtype) - move) * step
        shared = jnp.minimum(left + step, pixels + 1) - jnp.maximum(left, pixels)
        weights = jnp.maximum(0, shared)
    else:
        width = jnp.maximum(step, 1) if antialias else 1
        weights = KERNELS[method].weight(jnp.abs(at - pixels) / width)
    inside = (at >= -0.5) & (at <= size - 0.5)
    return jnp.where(inside, _normalized(weights), 0).astype(dtype)


def _weights_with_edges(size: Any, wanted: Any, scale: Any, move: Any, dtype: Any) -> Array:
    """As _weights for the cubic kernel of PyTorch, whose pixels beyond an edge are those at it."""
    radius, weight = KERNELS[ResizeMethod.CUBIC_PYTORCH]
    at, _ = _samples(wanted, scale, move, dtype)
    pixels = jnp.arange(-radius, size + radius, dtype=dtype)[:, None]
    weights = weight(jnp.abs(at - pixels))
    first = jnp.sum(weights[:radius + 1], axis=0, keepdims=True)
    last = jnp.sum(weights[size + radius - 1:], axis=0, keepdims=True)
    if size == 1:
        total = jnp.sum(weights, axis=0, keepdims=True)
        return _normalized(total).astype(dtype)
    middle = weights[radius + 1:size + radius - 1]
    return _normalized(jnp.concatenate([first, middle, last])).astype(dtype)


def _normalized(weights: Array) -> Array:
    """Weights with the sum 1 for each pixel of the result, 0 where they are next to none."""
    total = jnp.sum(weights, axis=0, keepdims=True)
    some = jnp.abs(total) > _LEAST_SUM
    return jnp.where(some, weights / jnp.where(some, total, 1), 0)
