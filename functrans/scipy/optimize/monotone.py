"""isotonic_regression: the nearest values that do not fall."""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import of_rank, real
from functrans.typing import Array, ArrayLike


class IsotonicResults(NamedTuple):
    """Values that do not fall, and for each the number of its block of equal ones.

    >>> ft.scipy.optimize.isotonic_regression([1.0, 3.0, 2.0]).block.tolist()
    [0, 1, 1]
    """

    x: Array
    block: Array


def isotonic_regression(y: ArrayLike, *, weights: ArrayLike | None = None,
                        increasing: bool = True) -> IsotonicResults:
    """x that does not fall (or rise) with the least sum of weights (x - y)**2.

    It takes n steps, under `jit` and `vmap` too, and is differentiated in y and the weights, as
    means of blocks. Raises ShapeError where they are no vectors of one size.
    Source: Busing, J. Stat. Softw. 102 (2022), code snippet 1.

    >>> import functrans as ft
    >>> ft.scipy.optimize.isotonic_regression([1.0, 3.0, 2.0, 4.0]).x.tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    y_, w = real("optimize.isotonic_regression", y, 1.0 if weights is None else weights)
    of_rank("optimize.isotonic_regression", "y", y_, 1)
    if weights is not None and w.shape != y_.shape:
        raise ShapeError(f"functrans.scipy.optimize.isotonic_regression: y has shape {y_.shape}, "
                         f"weights {w.shape}.", where=user_source())
    w = jnp.broadcast_to(w, y_.shape)
    if not increasing:
        turned = isotonic_regression(y_[::-1], weights=w[::-1])
        last = turned.block[0] if not y_.size else turned.block[-1]
        return IsotonicResults(turned.x[::-1], last - turned.block[::-1])
    n = y_.shape[0]
    if not n:
        return IsotonicResults(y_, jnp.zeros(0, jnp.int32))
    block = _blocks(*(lax.stop_gradient(v) for v in (y_, w)))
    zeros = jnp.zeros_like(y_)
    total = zeros.at[block].add(w)
    return IsotonicResults((zeros.at[block].add(w * y_) / jnp.where(total == 0, 1, total))[block],
                           block)


def _blocks(y: Array, w: Array) -> Array:
    """Blocks are kept on a stack; one that falls below the last is joined with it."""
    n = y.shape[0]

    def push(i: Any, state: Any) -> Any:
        means, sizes, starts, top = state

        def falls(inner: Any) -> Any:
            mean, _, _, top = inner
            return (top > 0) & (means[jnp.maximum(top - 1, 0)] >= mean)

        def join(inner: Any) -> Any:
            mean, size, _, top = inner
            total = sizes[top - 1] + size
            part = jnp.where(total == 0, 0.5, size / jnp.where(total == 0, 1, total))
            below = means[top - 1]
            return below + part * (mean - below), total, starts[top - 1], top - 1

        mean, size, start, top = lax.while_loop(falls, join, (y[i], w[i], jnp.asarray(
            i, jnp.int32), top))
        return (means.at[top].set(mean), sizes.at[top].set(size), starts.at[top].set(start),
                top + 1)

    start = (jnp.zeros_like(y), jnp.zeros_like(y), jnp.zeros(n, jnp.int32), jnp.array(0))
    _, _, starts, top = lax.fori_loop(0, n, push, start)
    # places beyond the stack are out of range, and dropped
    ends = jnp.where(jnp.arange(n) < top, starts, n)
    return jnp.cumsum(jnp.zeros(n, jnp.int32).at[ends].set(1, mode="drop")) - 1
