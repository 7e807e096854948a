"""What is computed of per-sample gradients: plain programs, the same source for every library.

A quantity takes the array module and the leaves of the gradients, [batch, ...] each. None avoids
these leaves: that is left to the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def rows(leaf: Any) -> Any:
    """A leaf as [batch, coordinates]."""
    return leaf.reshape(leaf.shape[0], -1)


def norms(xp: ModuleType, leaves: Sequence[Any]) -> Any:
    """The L2 norm of every sample's gradient over all parameters."""
    return xp.sqrt(sum((rows(leaf) ** 2).sum(axis=1) for leaf in leaves))


def clip_factors(xp: ModuleType, norms: Any, max_norm: float) -> Any:
    """What scales gradients down to `max_norm` at most."""
    return xp.clip(max_norm / norms, max=1.0)


def clipped_mean(max_norm: float) -> Callable:
    """The mean of the gradients of all samples, each scaled down to `max_norm` at most."""

    def run(xp: ModuleType, leaves: Sequence[Any]) -> list[Any]:
        factors = clip_factors(xp, norms(xp, leaves), max_norm)
        return [xp.tensordot(factors, leaf, 1) / leaf.shape[0] for leaf in leaves]

    return run


def variance(xp: ModuleType, leaves: Sequence[Any]) -> list[Any]:
    """The variance of every coordinate over the batch."""
    return [xp.var(leaf, axis=0, correction=0) for leaf in leaves]


def ntk(xp: ModuleType, leaves: Sequence[Any]) -> Any:
    """The inner products of all pairs of gradients."""
    return sum(rows(leaf) @ rows(leaf).T for leaf in leaves)


def of_gradients(quantity: Callable, loss: Callable, lib: ModuleType) -> Callable:
    """`(params, *batch)` to the quantity, in functrans or JAX."""
    return _program(quantity, loss, lib.vmap, lib.grad, lib.numpy, lib.tree.leaves)


def of_torch_gradients(quantity: Callable, loss: Callable, torch: ModuleType) -> Callable:
    """The same by torch.func."""
    leaves = torch.utils._pytree.tree_leaves
    return _program(quantity, loss, torch.func.vmap, torch.func.grad, torch, leaves)


def _program(
    quantity: Callable, loss: Callable, vmap: Callable, grad: Callable, xp: ModuleType,
    leaves: Callable,
) -> Callable:  # fmt: skip
    def run(params, *batch):
        axes = (None, *[0] * len(batch))
        return quantity(xp, leaves(vmap(grad(loss), axes)(params, *batch)))

    return run
