"""Embeddings, positions, dropout, and attention over what was seen before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import functrans.numpy as jnp
from functrans import lax, random
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.nn.attention import dot_product_attention
from functrans.numpy.common import promote_dtypes_inexact
from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["KVCache", "cached_attention", "dropout", "embed", "init_cache", "rotary_embedding",
           "sinusoidal_positions"]


def embed(table: ArrayLike, ids: ArrayLike) -> Array:
    """The rows of a table (entries, features) at integer ids of any shape.

    Raises DTypeError where ids are no integers. An id out of bounds gives NaN (integers: 0).

    >>> import functrans as ft
    >>> ft.nn.embed(ft.numpy.eye(3), ft.numpy.array([2, 0])).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    table, ids = jnp.asarray(table), jnp.asarray(ids)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise DTypeError(f"embed got ids of dtype {ids.dtype}.", where=user_source(),
                         fix='ids.astype("int32")')
    return jnp.take(table, ids, axis=0, mode="fill")


def sinusoidal_positions(length: int, features: int, base: float = 10000.0,
                         dtype: DTypeLike | None = None) -> Array:
    """Sines, then cosines, of positions with wavelengths from 2 pi to 2 pi base.

    Shape (length, features). Source: Vaswani et al., Attention is all you need (2017).

    >>> import functrans as ft
    >>> ft.nn.sinusoidal_positions(2, 4).round(2).tolist()[0]
    [0.0, 0.0, 1.0, 1.0]
    """
    if features % 2:
        raise ArgumentError(f"sinusoidal_positions got features={features}.", where=user_source(),
                            why="half of them are sines, half cosines.", fix="an even number")
    angles = _angles(jnp.arange(length), features, base)
    table = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
    return table if dtype is None else table.astype(dtype)


def _angles(positions: Array, features: int, base: float) -> Array:
    rates = base ** -(jnp.arange(0, features, 2) / features)
    return positions[..., None] * rates


def rotary_embedding(x: ArrayLike, positions: ArrayLike | None = None,
                     base: float = 10000.0) -> Array:
    """x (..., length, heads, features) with pairs of features turned by angles of the position.

    Pairs are feature i and feature i + features / 2. `positions`, by default 0, 1, 2, ..., have
    shape (..., length). Source: Su et al., RoFormer (2021).

    >>> import functrans as ft
    >>> x = ft.numpy.ones((2, 1, 2))
    >>> ft.nn.rotary_embedding(x).round(2).ravel()
    Array([ 1.  ,  1.  , -0.3 ,  1.38], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("rotary_embedding", x)
    if x.ndim < 3 or x.shape[-1] % 2:
        raise ShapeError(f"rotary_embedding got x of shape {x.shape}.", where=user_source(),
                         fix="(..., length, heads, features) with an even number of features")
    positions = jnp.arange(x.shape[-3]) if positions is None else jnp.asarray(positions)
    wide = jnp.promote_types(x.dtype, np.float32)
    angles = _angles(positions.astype(wide), x.shape[-1], base)[..., None, :]
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    first, second = jnp.split(x.astype(sine.dtype), 2, -1)
    turned = jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
    return turned.astype(x.dtype)


def dropout(key: Array | None, x: ArrayLike, rate: float, *, deterministic: bool = False,
            broadcast_axes: tuple[int, ...] = ()) -> Array:
    """x with elements set to 0 with probability `rate`, the others divided by 1 - rate.

    Along `broadcast_axes` all elements share one draw. Raises ArgumentError unless 0 <= rate <= 1.
    Source: Srivastava et al., JMLR 15 (2014).

    >>> import functrans as ft
    >>> kept = ft.nn.dropout(ft.random.key(0), ft.numpy.ones(1000), 0.5)
    >>> sorted(set(kept.tolist()))
    [0.0, 2.0]
    """
    (x,) = promote_dtypes_inexact("dropout", x)
    if not 0 <= rate <= 1:
        raise ArgumentError(f"dropout got rate={rate}.", where=user_source(), fix="0 <= rate <= 1")
    if deterministic or rate == 0:
        return x
    if rate == 1:
        return jnp.zeros_like(x)
    if key is None:
        raise ArgumentError("dropout got no key.", where=user_source(),
                            fix="a key, or deterministic=True")
    drawn = [axis % x.ndim for axis in broadcast_axes]
    shape = [1 if i in drawn else n for i, n in enumerate(x.shape)]
    keep = random.bernoulli(key, 1 - rate, shape)
    return jnp.where(keep, x / (1 - rate), jnp.zeros_like(x))


class KVCache(NamedTuple):
    """Keys and values (batch, size, heads, features) of positions before `length` (an int32).

    >>> cache = ft.nn.init_cache(1, size=16, heads=2, features=8)
    >>> cache.key.shape, int(cache.length)
    ((1, 16, 2, 8), 0)
    """

    key: Array
    value: Array
    length: Array


def init_cache(batch: int, size: int, heads: int, features: int,
               dtype: DTypeLike | None = None) -> KVCache:
    """An empty cache for `size` positions.

    >>> import functrans as ft
    >>> ft.nn.init_cache(1, 16, 2, 8).key.shape
    (1, 16, 2, 8)
    """
    zeros = jnp.zeros((batch, size, heads, features), dtype)
    return KVCache(zeros, zeros, jnp.zeros((), np.int32))


def cached_attention(query: ArrayLike, key: ArrayLike, value: ArrayLike, cache: KVCache, *,
                     scale: float | None = None) -> tuple[Array, KVCache]:
    """Causal attention of new positions to themselves and to those in the cache, and the new cache.

    query has shape (batch, new, heads, features), key and value (batch, new, key heads, features).
    They are written behind the `cache.length` positions that are there; results at positions that
    the cache has no room for are NaN. One program serves any length: decode by `jit` with the cache
    donated.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> cache = ft.nn.init_cache(1, 16, 2, 8)
    >>> x = jnp.ones((1, 3, 2, 8))
    >>> out, cache = ft.nn.cached_attention(x, x, x, cache)
    >>> out.shape, int(cache.length)
    ((1, 3, 2, 8), 3)
    """
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    size, new = cache.key.shape[1], key.shape[1]
    if new > size or key.shape[2:] != cache.key.shape[2:]:
        raise ShapeError(f"cached_attention got keys of shape {key.shape} for a cache of shape "
                         f"{cache.key.shape}.", where=user_source(),
                         why="new keys have the heads and features of the cache, and fit into it.")
    start = (0, cache.length, 0, 0)
    keys = lax.dynamic_update_slice(cache.key, key.astype(cache.key.dtype), start)
    values = lax.dynamic_update_slice(cache.value, value.astype(cache.value.dtype), start)
    rows = cache.length + jnp.arange(new, dtype=np.int32)
    mask = jnp.arange(size, dtype=np.int32)[None, :] <= rows[:, None]
    out = dot_product_attention(query, keys.astype(query.dtype), values.astype(query.dtype),
                                mask=mask[None, None], scale=scale)
    out = jnp.where((rows < size)[:, None, None], out, np.nan)
    return out, KVCache(keys, values, cache.length + new)
