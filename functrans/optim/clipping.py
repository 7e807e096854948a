"""Bounds on gradients."""

from __future__ import annotations

import functrans.numpy as jnp
from functrans import tree
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.optim.scaling import norm
from functrans.optim.transforms import (
    GradientTransformation,
    Number,
    global_norm,
    needs_params,
    squared,
    stateless,
)
from functrans.typing import Array, PyTree

__all__ = ["adaptive_grad_clip", "clip", "clip_by_block_rms", "clip_by_global_norm", "zero_nans"]


def clip(max_delta: Number) -> GradientTransformation:
    """Every number moved into [-max_delta, max_delta].

    >>> import functrans as ft
    >>> ft.optim.clip(1.0).update(ft.numpy.array([-3.0, 0.5]), ft.optim.EmptyState())[0].tolist()
    [-1.0, 0.5]
    """
    return stateless(lambda updates, params: tree.map(
        lambda u: jnp.clip(u, -max_delta, max_delta), updates))


def clip_by_global_norm(max_norm: Number) -> GradientTransformation:
    """All updates scaled together so that their norm is at most `max_norm` (Pascanu 2012).

    >>> import functrans as ft
    >>> bounded = ft.optim.clip_by_global_norm(1.0)
    >>> u, _ = bounded.update(ft.numpy.array([3.0, 4.0]), bounded.init(None))
    >>> [round(float(x), 2) for x in u]
    [0.6, 0.8]
    """
    def update(updates: PyTree, params: PyTree) -> PyTree:
        total = global_norm(updates)
        inside = total < max_norm
        return tree.map(lambda u: jnp.where(
            inside, u, (u / total.astype(u.dtype)) * max_norm).astype(u.dtype), updates)

    return stateless(update)


def clip_by_block_rms(threshold: float) -> GradientTransformation:
    """Updates of each array scaled so that their root mean square is at most `threshold`.

    >>> rule = ft.optim.clip_by_block_rms(1.0)
    >>> rule.update(jnp.array([3.0, 3.0]), rule.init(jnp.zeros(2)))[0]
    Array([1., 1.], dtype=float32)
    """
    def clipped(u: Array) -> Array:
        rms = jnp.sqrt(jnp.mean(squared(u)))
        return u / jnp.maximum(1.0, rms / threshold)

    return stateless(lambda updates, params: tree.map(clipped, updates))


def adaptive_grad_clip(clipping: Number, eps: Number = 1e-3,
                       axis: int | tuple[int, ...] | None = None) -> GradientTransformation:
    """Updates of each unit at most `clipping` times the norm of its parameters (Brock 2021).

    A unit is a slice along `axis`; without one a column of a matrix, a filter of a convolution (its
    last axis), or a whole vector. Raises ArgumentError for more than five axes without `axis`.

    >>> rule = ft.optim.adaptive_grad_clip(0.1)
    >>> params = jnp.array([[3.0], [4.0]])
    >>> rule.update(jnp.array([[1.0], [0.1]]), rule.init(params), params)[0].round(3)
    Array([[0.498],
           [0.05 ]], dtype=float32)
    """
    def clipped(u: Array, p: Array) -> Array:
        own, most = _unit_norm(u, axis), clipping * jnp.maximum(_unit_norm(p, axis), eps)
        return jnp.where(own < most, u, u * (most / jnp.maximum(own, 1e-6)))

    def update(updates: PyTree, params: PyTree) -> PyTree:
        needs_params("adaptive_grad_clip", params)
        return tree.map(clipped, updates, params)

    return stateless(update)


def _unit_norm(x: Array, axis: int | tuple[int, ...] | None) -> Array:
    if axis is None:
        if sum(d != 1 for d in x.shape) <= 1:
            return norm(x)
        if x.ndim > 5:
            raise ArgumentError(
                f"adaptive_grad_clip: a parameter has shape {tuple(x.shape)}.", where=user_source(),
                why="what a unit is is known of arrays with up to five axes.", fix="axis=(0, 1)")
        axis = (0,) if x.ndim in (2, 3) else tuple(range(x.ndim - 1))
    return jnp.sqrt(jnp.sum(squared(x), axis=axis, keepdims=True))


def zero_nans() -> GradientTransformation:
    """Updates with 0 in place of NaN.

    >>> rule = ft.optim.zero_nans()
    >>> rule.update(jnp.array([1.0, jnp.nan]), rule.init(jnp.zeros(2)))[0]
    Array([1., 0.], dtype=float32)
    """
    return stateless(lambda updates, params: tree.map(
        lambda u: jnp.where(jnp.isnan(u), 0, u).astype(u.dtype), updates))
