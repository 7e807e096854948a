"""Filters forwards and backwards whose initial delays make both orders agree.

Source: Gustafsson, IEEE Trans. Signal Process. 44 (1996).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import numpy as jnp
from functrans.scipy.products import lstsq, matmul
from functrans.typing import Array


def agreeing(lfilter: Callable[..., Any], b: Array, a: Array, x: Array, length: int | None
             ) -> Array:
    """x along its last axis, filtered both ways, with delays for which both orders give the same.

    `lfilter` is the filter, from delays of 0 or `zi`; `length` is that of its response, beyond
    which delays at an end count as 0.
    """
    order = max(b.shape[0], a.shape[0]) - 1
    if not order:
        return x * (b[0] / a[0]) ** 2

    def run(v: Array) -> Array:
        out: Array = lfilter(b, a, v)
        return out

    def back(v: Array) -> Array:
        return jnp.flip(run(jnp.flip(v, -1)), -1)

    n = x.shape[-1]
    m = n if length is None or n <= 2 * length else length
    # the responses to each of the delays, in rows: those of the first, and of it later
    start = jnp.zeros(order, b.dtype).at[0].set(1)
    first, _ = lfilter(b, a, jnp.zeros(m, b.dtype), zi=start)
    seen = jnp.stack([jnp.pad(first, (k, 0))[:m] for k in range(order)])
    filtered = run(jnp.flip(seen, -1))
    ahead, behind = jnp.flip(filtered, -1) - seen, jnp.flip(seen, -1) - filtered
    effects = jnp.flip(filtered, -1), jnp.flip(seen, -1)
    forth_back = back(run(x))
    apart = run(back(x)) - forth_back
    lines = apart.reshape(-1, n).T
    if m == n:
        system, effect = jnp.concatenate([ahead, behind]).T, jnp.concatenate(effects).T
        moved = matmul(effect.astype(lines.dtype), lstsq(system.astype(lines.dtype), lines))
        return forth_back + moved.T.reshape(x.shape)
    # both ends are apart: each has its own delays
    out = forth_back
    for part, effect, where in ((ahead, effects[0], slice(0, m)), (behind, effects[1],
                                                                   slice(n - m, n))):
        delays = lstsq(part.T.astype(lines.dtype), lines[where])
        moved = matmul(effect.T.astype(lines.dtype), delays).T.reshape(*x.shape[:-1], m)
        out = out.at[..., where].add(moved)
    return out
