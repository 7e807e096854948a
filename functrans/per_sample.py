"""What is computed from the gradients of single samples, without these gradients where possible.

Each function is a few lines over `vmap(grad(loss))`, written as a user would: that the gradients of
single samples are not materialised is what `jit` makes of it (docs/per_sample.md), so call these
under `jit`. `loss(params, *sample)` is the loss of one sample; batches have samples along axis 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functrans.numpy as fnp
from functrans import random, tree
from functrans.transforms.derivatives import grad
from functrans.transforms.vmap import vmap

__all__ = ["clipped_mean", "grads", "norms"]

Loss = Callable[..., Any]
Function = Callable[..., Any]


def grads(loss: Loss, *, chunk_size: int | None = None) -> Function:
    """The gradient of every sample: `(params, *batch)` to the tree of params, each leaf [B, ...]."""
    def run(params: Any, *batch: Any) -> Any:
        axes = (None, *[0] * len(batch))
        return vmap(grad(loss), in_axes=axes, chunk_size=chunk_size)(params, *batch)
    return run


def _norms(gradients: Any) -> Any:
    return fnp.sqrt(sum(fnp.sum(g.reshape(g.shape[0], -1) ** 2, axis=1)
                        for g in tree.leaves(gradients)))


def norms(loss: Loss, *, chunk_size: int | None = None) -> Function:
    """The L2 norm of every sample's gradient over all parameters: `(params, *batch)` to [B]."""
    def run(params: Any, *batch: Any) -> Any:
        return _norms(grads(loss, chunk_size=chunk_size)(params, *batch))
    return run


def clipped_mean(loss: Loss, max_norm: float, *, noise_multiplier: float = 0.0,
                 chunk_size: int | None = None) -> Function:
    """The mean of the gradients of all samples, each scaled down to L2 norm `max_norm` at most."""
    def run(params: Any, *batch: Any, key: Any = None) -> Any:
        g = grads(loss, chunk_size=chunk_size)(params, *batch)
        scale = fnp.minimum(1.0, max_norm / fnp.maximum(_norms(g), 1e-12))
        leaves, structure = tree.flatten(g)
        means = [fnp.tensordot(scale, leaf, axes=1) / leaf.shape[0] for leaf in leaves]
        if noise_multiplier:
            deviation = noise_multiplier * max_norm / leaves[0].shape[0]
            means = [m + deviation * random.normal(k, m.shape)
                     for m, k in zip(means, random.split(key, len(means)), strict=True)]
        return tree.unflatten(structure, means)
    return run
