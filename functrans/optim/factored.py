"""Second moments by rows and columns: memory for a sum of vectors in place of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as jnp
from functrans import tree
from functrans.optim.scaling import next_count
from functrans.optim.transforms import GradientTransformation, squared
from functrans.typing import Array, PyTree

__all__ = ["FactoredState", "scale_by_factored_rms"]


class FactoredState(NamedTuple):
    """Means of squares: by rows and by columns of large matrices, whole for other arrays.

    >>> state = ft.optim.scale_by_factored_rms().init(jnp.zeros((256, 512)))
    >>> state.v_row.shape, state.v_col.shape, state.v.shape
    ((256,), (512,), (1,))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    v_row: PyTree
    v_col: PyTree
    v: PyTree


class _Update(NamedTuple):
    update: Array
    v_row: Array
    v_col: Array
    v: Array


def _factored_axes(shape: Sequence[int], factored: bool, least: int) -> tuple[int, int] | None:
    """The second largest and the largest axis, where both are large enough."""
    if not factored or len(shape) < 2:
        return None
    second, first = (int(d) for d in np.argsort(shape)[-2:])
    return (second, first) if shape[second] >= least else None


def _power_decay(count: Array, exponent: float) -> Array:
    return 1 - jnp.asarray(count + 1, "float32") ** -exponent


def scale_by_factored_rms(factored: bool = True, decay_rate: float = 0.8, step_offset: int = 0,
                          min_dim_size_to_factor: int = 128, epsilon: float = 1e-30,
                          decay_rate_fn: Callable[[Array, float], Array] = _power_decay
                          ) -> GradientTransformation:
    """Gradients over the root of a mean of their squares that is a product of two vectors.

    `decay_rate_fn(k, decay_rate)` is what stays of the mean in step k = 0, 1, ...: 1 less
    (k + 1)^-decay_rate. Arrays whose second largest axis is shorter than
    `min_dim_size_to_factor` keep the whole mean (Shazeer and Stern 2018).

    >>> rule = ft.optim.scale_by_factored_rms()
    >>> state = rule.init(jnp.zeros((256, 512)))
    >>> state.v_row.shape, state.v_col.shape
    ((256,), (512,))
    """
    def axes_of(p: Array) -> tuple[int, int] | None:
        return _factored_axes(p.shape, factored, min_dim_size_to_factor)

    def init(params: PyTree) -> FactoredState:
        def without(p: Array, number: int) -> Array:
            axes = axes_of(p)
            if axes is None:
                return jnp.zeros((1,), p.dtype)
            return jnp.zeros(tuple(np.delete(p.shape, axes[1 - number]).tolist()), p.dtype)

        def whole(p: Array) -> Array:
            return jnp.zeros((1,) if axes_of(p) else p.shape, p.dtype)

        return FactoredState(
            jnp.zeros((), np.int32), tree.map(lambda p: without(p, 0), params),
            tree.map(lambda p: without(p, 1), params), tree.map(whole, params))

    def update(updates: PyTree, state: FactoredState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, FactoredState]:
        decay = jnp.asarray(decay_rate_fn(state.count - step_offset, decay_rate))

        def moved(g: Array, v_row: Array, v_col: Array, v: Array) -> _Update:
            axes = axes_of(g)
            keep = decay.astype(g.dtype)
            squares = squared(g) + epsilon
            if axes is None:
                v = keep * v + (1 - keep) * squares
                return _Update(g / jnp.sqrt(v), v_row, v_col, v)
            second, first = axes
            v_row = keep * v_row + (1 - keep) * jnp.mean(squares, axis=first)
            v_col = keep * v_col + (1 - keep) * jnp.mean(squares, axis=second)
            along = second - (second > first)
            mean = jnp.mean(v_row, axis=along, keepdims=True)
            row = jnp.expand_dims((v_row / mean) ** -0.5, first)
            return _Update(g * row * jnp.expand_dims(v_col**-0.5, second), v_row, v_col, v)

        found = tree.map(moved, updates, state.v_row, state.v_col, state.v)
        out, *states = (tree.map(lambda u, k=k: u[k], found, is_leaf=lambda x: type(x) is _Update)
                        for k in range(4))
        return out, FactoredState(next_count(state.count), *states)

    return GradientTransformation(init, update)
