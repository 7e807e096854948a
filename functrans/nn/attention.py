"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

import functrans.numpy as jnp
from functrans import lax
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.nn.functions import logsumexp, softmax
from functrans.numpy.common import operand
from functrans.typing import Array, ArrayLike

__all__ = ["dot_product_attention"]


@overload
def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None,
        key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
        return_residual: Literal[False] = False) -> Array: ...


@overload
def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None,
        key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
        return_residual: Literal[True]) -> tuple[Array, Array]: ...


def dot_product_attention(
        query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None,
        mask: ArrayLike | None = None, *, scale: float | None = None, is_causal: bool = False,
        query_seq_lengths: ArrayLike | None = None,
        key_value_seq_lengths: ArrayLike | None = None,
        local_window_size: int | tuple[int, int] | None = None, implementation: str | None = None,
        return_residual: bool = False) -> Array | tuple[Array, Array]:
    """softmax(query key^T * scale + bias) value, for each head.

    Shapes: query (B, T, N, H), key and value (B, S, K, H), all with or without B; N is a multiple
    of K, and that many query heads share a key head. bias and the boolean mask (True takes part)
    broadcast to (B, N, T, S). `scale` is by default 1 / sqrt(H). With `is_causal` position t sees
    keys up to t; `local_window_size` (left, right) limits the distance; the lengths, of shape (B,),
    leave out padding. Logits and softmax are computed in float32 at least. The result has the
    shape and dtype of query; rows that see no key are 0. With `return_residual` also the logsumexp
    of the logits, of shape (B, T, N), in the dtype of query. `implementation` is accepted as in
    JAX: None or "xla".

    >>> import functrans as ft
    >>> q, k = ft.numpy.ones((2, 5, 4, 8)), ft.numpy.ones((2, 7, 2, 8))
    >>> ft.nn.dot_product_attention(q, k, k).shape
    (2, 5, 4, 8)
    """
    if implementation not in (None, "xla"):
        raise ArgumentError(f"nn.dot_product_attention: implementation={implementation!r} is not "
                            f"here.", where=user_source(), fix="implementation=None")
    q, k, v = (operand("dot_product_attention", x) for x in (query, key, value))
    single = q.ndim == 3
    if single:
        q, k, v = (jnp.expand_dims(x, 0) for x in (q, k, v))
    _check_shapes(q, k, v)
    batch, rows, heads, size = q.shape
    columns, groups = k.shape[1], heads // k.shape[2]
    visible = _visible(rows, columns, is_causal, local_window_size, mask, query_seq_lengths,
                       key_value_seq_lengths)
    wide = jnp.promote_types(q.dtype, np.float32)
    split = jnp.reshape(q, (batch, rows, k.shape[2], groups, size))
    logits = jnp.einsum("btkgh,bskh->bkgts", split, k, preferred_element_type=wide)
    logits = jnp.reshape(logits, (batch, heads, rows, columns))
    logits = logits * (1 / math.sqrt(size) if scale is None else scale)
    if bias is not None:
        logits = logits + operand("dot_product_attention", bias).astype(wide)
    if visible is not None:
        visible = jnp.broadcast_to(visible, logits.shape)
    weights = softmax(logits, where=visible).astype(q.dtype)
    weights = jnp.reshape(weights, (batch, k.shape[2], groups, rows, columns))
    out = jnp.reshape(jnp.einsum("bkgts,bskh->btkgh", weights, v),
                      (batch, rows, heads, v.shape[3]))
    if not return_residual:
        return out[0] if single else out
    residual = jnp.swapaxes(logsumexp(logits, axis=-1, where=visible), 1, 2).astype(q.dtype)
    return (out[0], residual[0]) if single else (out, residual)


def _check_shapes(q: Array, k: Array, v: Array) -> None:
    shapes = f"query {q.shape}, key {k.shape} and value {v.shape}"
    if q.ndim != 4 or k.ndim != 4 or v.ndim != 4:
        raise ShapeError(f"nn.dot_product_attention: {shapes}.", where=user_source(),
                         why="each is (batch, length, heads, size), or all without batch.")
    if k.shape[:3] != v.shape[:3] or q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise ShapeError(f"nn.dot_product_attention: {shapes} do not fit together.",
                         where=user_source(), why="key and value differ in size at most; query and "
                                                  "key have one batch and one size.")
    if q.shape[2] % k.shape[2]:
        raise ShapeError(f"nn.dot_product_attention: {q.shape[2]} query heads over {k.shape[2]} "
                         f"key heads.", where=user_source(),
                         why="each key head serves the same number of query heads.")
    if q.dtype != k.dtype or q.dtype != v.dtype or dtypes.kind(q.dtype) != "f":
        raise ArgumentError(f"nn.dot_product_attention: query is {q.dtype}, key {k.dtype}, value "
                            f"{v.dtype}.", where=user_source(), why="they have one floating dtype.",
                            fix="key.astype(query.dtype)")


def _visible(rows: Any, columns: Any, is_causal: bool, window: int | tuple[int, int] | None,
             mask: ArrayLike | None, query_lengths: ArrayLike | None,
             key_lengths: ArrayLike | None) -> Any:
    """Which keys each query sees, broadcastable to (B, N, T, S); None means all."""
    conditions = [] if mask is None else [jnp.asarray(mask)]
    if conditions and conditions[0].dtype != np.bool_:
        raise ArgumentError(f"nn.dot_product_attention: the mask is {conditions[0].dtype}.",
                            where=user_source(), why="True marks what takes part.",
                            fix="mask != 0, or bias= for numbers that are added")
    at = jnp.reshape(lax.iota(np.int32, rows), (rows, 1))
    seen = lax.iota(np.int32, columns)
    if is_causal:
        conditions.append(seen <= at)
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        conditions.append((seen >= at - left) & (seen <= at + right))
    if query_lengths is not None:
        conditions.append(at < jnp.reshape(jnp.asarray(query_lengths), (-1, 1, 1, 1)))
    if key_lengths is not None:
        conditions.append(seen < jnp.reshape(jnp.asarray(key_lengths), (-1, 1, 1, 1)))
    result = None
    for condition in conditions:
        result = condition if result is None else result & condition
    return result
