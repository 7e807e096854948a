"""QR with pivoting of columns."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.lax.elementwise import abs, conj, div, eq, lt, max, mul, sub
from functrans.lax.loops import fori_loop
from functrans.lax.operations import full_like, stop_gradient
from functrans.primitives.broadcast import broadcast_in_dim, reduce_sum, transpose
from functrans.primitives.compare import select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dynamic_slice import dynamic_index_in_dim
from functrans.primitives.index import index_take
from functrans.primitives.linalg import qr as plain_qr
from functrans.primitives.reduce import argmax
from functrans.primitives.shape import iota, reshape
from functrans.transforms.vmap import vmap
from functrans.typing import Array

__all__ = ["qr"]


def qr(x: Array, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, ...]:
    """Orthonormal columns Q and an upper triangle R with Q R = x; with `pivoting` also P.

    Shapes (m, n) give (m, m) and (m, n), or (m, k) and (k, n) for k = min(m, n) when not
    `full_matrices`. With `pivoting` Q R = x[:, P], and the diagonal of R falls in size: each column
    is the one of which the columns before it explain least. `use_magma` is a hint.

    >>> import functrans as ft
    >>> q, r = ft.lax.linalg.qr(ft.numpy.ones((4, 2)), full_matrices=False)
    >>> q.shape, r.shape
    ((4, 2), (2, 2))
    """
    if not pivoting:
        return plain_qr(x, full_matrices=full_matrices)
    *lead, m, n = x.shape
    batch = int(np.prod(lead))
    matrices = reshape(x, (batch, m, n))
    order = vmap(_pivots)(stop_gradient(matrices)) if m and n else \
        broadcast_in_dim(iota(np.int32, n), (batch, n), (1,))
    columns = vmap(lambda a, p: index_take(transpose(a, (1, 0)), (p,), (0,)))(matrices, order)
    q, r = plain_qr(transpose(columns, (0, 2, 1)), full_matrices=full_matrices)
    return (reshape(q, (*lead, *q.shape[1:])), reshape(r, (*lead, *r.shape[1:])),
            reshape(order, (*lead, n)))


def _pivots(x: Array) -> Any:
    """The order of the columns of one matrix (m, n), by Gram-Schmidt on what is left of each."""
    m, n = x.shape
    number = iota(np.int32, n)

    def step(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, order = state  # rest[j]: what the columns before do not explain of column order[j]
        real = dtypes.real_dtype(rest.dtype)
        sizes = reduce_sum(mul(abs(rest), abs(rest)), (1,))
        sizes = select_n(lt(number, full_like(number, i)), sizes, full_like(sizes, -1))
        largest = argmax(sizes, 0, np.int32)
        here, there = (eq(number, full_like(number, v)) for v in (i, largest))
        swap = select_n(here, select_n(there, number, full_like(number, i)),
                        full_like(number, largest))
        rest, order = index_take(rest, (swap,), (0,)), index_take(order, (swap,), (0,))
        pivot = dynamic_index_in_dim(rest, i, 0, keepdims=False)
        norm = reduce_sum(mul(abs(pivot), abs(pivot)), (0,))
        safe = max(norm, np.asarray(dtypes.finfo(real).tiny, real))
        wide = broadcast_in_dim(pivot, rest.shape, (1,))
        share = reduce_sum(mul(rest, conj(wide) if dtypes.kind(rest.dtype) == "c" else wide), (1,))
        share = div(share, convert_element_type(safe, share.dtype))
        return sub(rest, mul(broadcast_in_dim(share, rest.shape, (0,)), wide)), order

    return fori_loop(0, builtins.min(m, n), step, (transpose(x, (1, 0)), number))[1]
