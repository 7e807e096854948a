"""The binomial and the multinomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.random.arguments import float_dtype, sample_shape, unit_uniform
from functrans.random.generators import Pair
from functrans.random.keys import child, children, pair
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike

_FEW = 10.0  # mean successes up to which Hormann's paper counts the trials between two of them
# log(k!) less Stirling's formula for k! at k + 1, k = 0, ..., 9
_TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
          0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
          0.00925546218271273, 0.00833056343336287)


def binomial(key: Array, n: ArrayLike, p: ArrayLike, shape: ShapeLike | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """How many of n trials of probability p succeed, as floating numbers.

    NaN where n is negative or NaN or p is. Few successes are counted by geometric numbers, many by
    transformed rejection (Hormann, The generation of binomial random variates, 1993).

    >>> import functrans as ft
    >>> x = ft.random.binomial(ft.random.key(0), 10, 0.3, (100,))
    >>> bool((x >= 0).all() & (x <= 10).all())
    True
    """
    dtype = float_dtype("binomial", dtype)
    p = _inexact(p)
    n = lax.convert_element_type(ftnp.asarray(n), p.dtype)
    shape = sample_shape("binomial", shape, n, p)
    return _binomial(pair("binomial", key), n, p, shape, dtype)


def _inexact(x: ArrayLike) -> Array:
    x = ftnp.asarray(x)
    return lax.convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))


def _binomial(words: Pair, n: Array, p: Array, shape: tuple[Any, ...], dtype: dtypes.DType
              ) -> Array:
    n, p = (lax.stop_gradient(ftnp.broadcast_to(x, shape)) for x in (n, p))
    rare = p < 0.5
    q = ftnp.where(rare, p, 1.0 - p)
    no_count = ftnp.isnan(n) | (n < 0)
    endless = ftnp.isinf(n)
    no_chance = ftnp.isnan(q) | (q < 0)
    q = ftnp.where(no_chance, ftnp.full_like(q, 0.01), q)
    few = no_count | (n * q <= _FEW)
    n = lax.floor(n)
    counted = _by_geometric(words, ftnp.where(few, n, ftnp.zeros_like(n)), q)
    drawn = _by_rejection(words, ftnp.where(few, ftnp.full_like(n, 1e4), n),
                          ftnp.where(few, ftnp.full_like(q, 0.5), q))
    out = lax.convert_element_type(ftnp.where(few, counted, drawn), dtype)
    wrong = no_chance | no_count
    out = ftnp.where(wrong, ftnp.full_like(out, np.nan), out)
    out = ftnp.where(endless & ~wrong, ftnp.full_like(out, np.inf), out)
    kept = rare | no_count | ftnp.isnan(q) | endless
    return ftnp.where(kept, out, lax.convert_element_type(n, dtype) - out)


def _by_geometric(key: Pair, n: Array, p: Array) -> Array:
    """Successes among n trials, by adding up the trials from one success to the next."""
    log_failure = lax.log1p(-p)

    def step(state: Any) -> Any:
        key, successes, trials = state
        successes = ftnp.where(trials <= n, successes + 1, successes)
        u = unit_uniform(child(key, 0), tuple(p.shape), p.dtype)
        return child(key, 1), successes, trials + lax.ceil(lax.log(u) / log_failure)

    start = (key, ftnp.zeros_like(p), ftnp.zeros_like(p))
    return lax.while_loop(lambda state: ftnp.any(state[2] <= n), step, start)[1] - 1


def _by_rejection(key: Pair, n: Array, p: Array) -> Array:
    """Binomial numbers for n p of at least 10; the names of the constants are Hormann's."""
    deviation = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = lax.floor((n + 1) * p)

    def step(state: Any) -> Any:
        key, out, accepted = state
        key, *draws = (child(key, i) for i in range(3))
        u, v = (unit_uniform(draw, tuple(p.shape), p.dtype) for draw in draws)
        u = u - 0.5
        u_s = 0.5 - lax.abs(u)
        quick = (u_s >= 0.07) & (v <= v_r)
        k = lax.floor((2 * a / u_s + b) * u + c)
        outside = (k < 0) | (k > n)
        hat = lax.log(v * alpha / (a / (u_s * u_s) + b))
        target = ((m + 0.5) * lax.log((m + 1) / (r * (n - m + 1)))
                  + (n + 1) * lax.log((n - m + 1) / (n - k + 1))
                  + (k + 0.5) * lax.log(r * (n - k + 1) / (k + 1))
                  + _tail(m) + _tail(n - m) - _tail(k) - _tail(n - k))
        accept = quick | (~outside & (hat <= target))
        return key, ftnp.where(accept, k, out), accepted | accept

    start = (key, ftnp.full_like(p, -1.0), ftnp.zeros(p.shape, bool))
    return lax.while_loop(lambda state: ~ftnp.all(state[2]), step, start)[1]


def _tail(k: Array) -> Array:
    """What Stirling's formula leaves of log(k!): from a table up to 9, by its series above."""
    small = k <= 9
    k = ftnp.clip(k, 0.0, 9.0)
    square = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    table = ftnp.asarray(np.array(_TAILS), k.dtype)
    return ftnp.where(small, ftnp.take(table, lax.convert_element_type(k, "int32")), series)


def multinomial(key: Array, n: ArrayLike, p: ArrayLike, *, shape: ShapeLike | None = None,
                dtype: DTypeLike | None = None, unroll: int | bool = 1) -> Array:
    """How many of n trials have each outcome, of probabilities p along the last axis.

    The result has the shape of p, or `shape`, to which p and, without the last axis, n broadcast.
    `unroll` is that of `lax.scan`, which draws outcome after outcome.

    >>> import functrans as ft
    >>> x = ft.random.multinomial(ft.random.key(0), 20, ft.numpy.array([0.2, 0.3, 0.5]))
    >>> x.shape, float(x.sum())
    ((3,), 20.0)
    """
    dtype = float_dtype("multinomial", dtype)
    n, p = ftnp.asarray(n), ftnp.asarray(p)
    common, _ = dtypes.inexact_result_type(n, p)
    n, p = (lax.convert_element_type(x, common) for x in (n, p))
    if not p.ndim:
        raise ShapeError("ft.random.multinomial: one probability.", where=user_source(),
                         why="outcomes are along the last axis of p.",
                         fix="ft.random.multinomial(key, n, ft.numpy.array([0.4, 0.6]))")
    whole = tuple(p.shape) if shape is None else sample_shape("multinomial", shape, p)
    n = ftnp.broadcast_to(n, whole[:-1])
    p = ftnp.moveaxis(ftnp.broadcast_to(p, whole), -1, 0)
    left = lax.cumsum(p, axis=0, reverse=True)
    ratios = ftnp.clip(p / ftnp.where(left == 0, ftnp.ones_like(left), left), 0, 1)

    def step(remaining: Any, ratio_and_words: Any) -> Any:
        ratio, words = ratio_and_words
        count = _binomial(words, remaining, ratio, tuple(remaining.shape), dtypes.default_float())
        count = lax.convert_element_type(count, remaining.dtype)
        return remaining - count, count

    words = children(pair("multinomial", key), (p.shape[0],))
    counts = lax.scan(step, n, (ratios, words), unroll=unroll)[1]
    return lax.convert_element_type(ftnp.moveaxis(counts, 0, -1), dtype)
