"""The gradients of single samples, and sums of them with a weight for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import functrans.numpy as jnp
from functrans import tree
from functrans.core.avals import get_aval
from functrans.core.errors import ShapeError
from functrans.per_sample.batches import (
    Batch,
    Function,
    Tree,
    checked,
    in_chunks,
    named,
    narrow,
    split_batch,
    wide,
)
from functrans.transforms.derivatives import grad

__all__ = ["check_weights", "grads", "squared_norm", "weighted_leaf", "weighted_sum", "wide_grads"]


def wide_grads(loss: Function, params: Tree, batch: Batch, leaves: Sequence[Any]) -> Tree:
    """The gradient of every sample, each leaf [B, ...], in the dtype in which it is added up."""
    return tree.map(wide, batch.map(grad(loss), params, leaves))


def squared_norm(g: Any) -> Any:
    """The squared L2 norm [B] of one leaf [B, ...]."""
    return jnp.sum(g * g, axis=tuple(range(1, g.ndim)))


def weighted_leaf(weights: Any, g: Any) -> Any:
    """The sum of g [B, ...] over samples with weights [B], in the dtype of g."""
    return jnp.tensordot(weights.astype(g.dtype), g, axes=1)


def check_weights(what: str, weights: Any, batch: Batch) -> Any:
    """The weights as an array; refused unless there is one for each sample."""
    weights = jnp.asarray(weights)
    if weights.shape != (batch.size,):
        raise ShapeError(
            f"per_sample.{what}: weights is {get_aval(weights)}, but the batch has {batch.size} "
            "samples.", why="every sample has one weight.",
            fix=f"weights of shape ({batch.size},)")
    return weights


def grads(loss: Function, *, in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """The gradient of every sample: `(params, *batch)` to the tree of params, each leaf [B, ...].

    Dtypes are those of params.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> grads(squared_error)(ft.numpy.array([3.0, 1.0]), xs, ys).tolist()
    [[6.0, 0.0], [24.0, 12.0]]
    """
    checked("grads", loss, chunk_size)

    def run(params: Tree, *batch: Any) -> Tree:
        split = split_batch("grads", loss, params, batch, in_axes)
        _, g = in_chunks(lambda leaves: ((), split.map(grad(loss), params, leaves)),
                         split.leaves, chunk_size)
        return g

    return named("grads", loss, run)


def weighted_sum(loss: Function, *, in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """The sum of w_b times the gradient of sample b: `(params, weights [B], *batch)` to a tree.

    The result is like params. Raises ShapeError for weights of another shape.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> w, weights = ft.numpy.array([3.0, 1.0]), ft.numpy.array([1.0, -0.5])
    >>> weighted_sum(squared_error)(w, weights, xs, ys).tolist()
    [-6.0, -6.0]
    """
    checked("weighted_sum", loss, chunk_size)

    def run(params: Tree, weights: Any, *batch: Any) -> Tree:
        split = split_batch("weighted_sum", loss, params, batch, in_axes)
        weights = check_weights("weighted_sum", weights, split)

        def part(chunk: Tree) -> tuple[Tree, Tree]:
            weights, leaves = chunk
            g = wide_grads(loss, params, split, leaves)
            return tree.map(lambda x: weighted_leaf(weights, x), g), ()

        total, _ = in_chunks(part, (weights, split.leaves), chunk_size)
        return tree.map(narrow, total, params)

    return named("weighted_sum", loss, run)
