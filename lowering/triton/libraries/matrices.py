"""Dense linear algebra by cuSOLVER and cuBLAS, with the results that NumPy gives.

A matrix here has contiguous rows, one of these libraries contiguous columns: they see transposes.
Where the transpose has the same factors they are used as they are, else it is computed by a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.primitive import Primitive
from functrans.lowering.passes.systems import det_of_factors, slogdet_of_factors
from functrans.lowering.triton.libraries.functions import TYPES, call
from functrans.primitives.arithmetic import conj, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim, prod
from functrans.primitives.compare import (
    bitwise_not,
    bitwise_or,
    ge,
    is_finite,
    ne,
    where,
)
from functrans.primitives.convert import convert_element_type
from functrans.primitives.linalg import cholesky_p, lu_p, lu_pivots_to_permutation_p, qr_p
from functrans.primitives.matrix import (
    is_complex,
    rows,
    swap_last,
    take_rows,
)
from functrans.primitives.reduce import reduce_and
from functrans.primitives.shape import broadcasted_iota
from functrans.primitives.solve import det_p, slogdet_p, solve_p, triangular_solve_p
from functrans.primitives.spectral import eigh_p, svd_p

__all__ = ["FUNCTIONS"]

INT = np.dtype(np.int32)
LARGEST_JACOBI = 32
"""Rows and columns of matrices that are factored together (as in csrc/cuda/cusolver.cpp)."""
MOST_EXCHANGED = 512
"""Rows up to which the exchanges of all matrices are followed by a kernel, in registers."""


def _head(a: Any) -> tuple[int, int]:
    """What calls begin with: the dtype, and how many matrices there are."""
    return TYPES[a.dtype.name], prod(a.shape[:-2])  # type: ignore[return-value]


def _like(a: Any, *shape: Any) -> ShapedArray:
    return ShapedArray((*a.shape[:-2], *shape), a.dtype)


def _real(a: Any, *shape: Any) -> ShapedArray:
    return ShapedArray((*a.shape[:-2], *shape), dtypes.real_dtype(a.dtype))


def _ints(a: Any, *shape: Any) -> ShapedArray:
    return ShapedArray((*a.shape[:-2], *shape), INT)


def _triangle(x: Any, lower: bool) -> Any:
    """x with zeros on the other side of the diagonal."""
    row = broadcasted_iota(INT, x.shape, x.ndim - 2)
    column = broadcasted_iota(INT, x.shape, x.ndim - 1)
    kept = ge(row, column) if lower else ge(column, row)
    return where(kept, x, full(x.shape, 0, x.dtype))


def _or_nan(failed: Any, x: Any) -> Any:
    """NaN for the matrices (or vectors) of a stack that failed."""
    over = broadcast_in_dim(failed, x.shape, range(failed.ndim))
    return where(over, full(x.shape, np.nan, x.dtype), x)


def _failed(info: Any, a: Any) -> Any:
    """The libraries do not always say that a matrix is not finite."""
    whole = reduce_and(is_finite(a), (a.ndim - 2, a.ndim - 1))
    return bitwise_or(ne(info, 0), bitwise_not(whole))


def cholesky(a: Any) -> Any:
    # the upper factor of the transpose is the transpose of the lower factor
    factor, info = call("potrf", (*_head(a), a.shape[-1]), [a], [get_aval(a), _ints(a)])
    return _triangle(_or_nan(ne(info, 0), factor), True)


def triangular_solve(a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                     conjugate_a: bool, unit_diagonal: bool) -> Any:
    if conjugate_a and not transpose_a:
        a = conj(a)
    operation = (2 if conjugate_a else 1) if transpose_a else 0
    m, n = b.shape[-1], b.shape[-2]  # of the transpose, with the matrix on its other side
    numbers = (*_head(a), int(left_side), int(lower), operation, int(unit_diagonal), m, n)
    return call("trsm", numbers, [a, b], [get_aval(b)])[0]


def _exchanged(pivots: Any, size: int) -> Any:
    """The permutation that exchanges, numbered from 1, amount to."""
    if size <= MOST_EXCHANGED:
        return lu_pivots_to_permutation_p.bind(sub(pivots, 1), permutation_size=size)
    lead = pivots.shape[:-1]
    wide = np.dtype(np.float64)  # of the function for vectors of numbers: all are exact
    start = broadcasted_iota(wide, (*lead, size), len(lead))
    (order,) = call("laswp", (TYPES["float64"], int(prod(lead)), size, pivots.shape[-1]),
                    [start, pivots], [ShapedArray((*lead, size), wide)])
    return convert_element_type(order, INT)


def _factored(a: Any) -> tuple[Any, Any]:
    """L and U, and the exchanges numbered from 1."""
    m, n = a.shape[-2:]
    factors, pivots = call("getrf", (*_head(a), m, n), [swap_last(a)],
                           [_like(a, n, m), _ints(a, min(m, n))])
    return swap_last(factors), pivots


def lu(a: Any) -> list[Any]:
    factors, pivots = _factored(a)
    return [factors, sub(pivots, 1), _exchanged(pivots, a.shape[-2])]


def solve(a: Any, b: Any) -> Any:
    factors, pivots = _factored(a)
    b = take_rows(b, _exchanged(pivots, a.shape[-1]))
    plain = {"left_side": True, "transpose_a": False, "conjugate_a": False}
    b = triangular_solve(factors, b, lower=True, unit_diagonal=True, **plain)
    return triangular_solve(factors, b, lower=False, unit_diagonal=False, **plain)


def det(a: Any) -> Any:
    factors, pivots = _factored(a)
    return det_of_factors(factors, sub(pivots, 1))


def slogdet(a: Any) -> list[Any]:
    factors, pivots = _factored(a)
    return slogdet_of_factors(factors, sub(pivots, 1))


def qr(a: Any, *, full_matrices: bool) -> list[Any]:
    m, n = a.shape[-2:]
    k = min(m, n)
    wanted = m if full_matrices else k
    factors, scales = call("geqrf", (*_head(a), m, n), [swap_last(a)],
                           [_like(a, n, m), _like(a, k)])
    (q,) = call("orgqr", (*_head(a), m, n, wanted), [factors, scales], [_like(a, wanted, m)])
    upper = swap_last(factors)
    return [swap_last(q), _triangle(rows(upper, 0, wanted) if wanted < m else upper, False)]


def eigh(a: Any, *, vectors: bool) -> list[Any]:
    n = a.shape[-1]
    # of the transpose, which is the conjugate: it has the same values and conjugate vectors
    found, values, info = call("syevd", (*_head(a), n, int(vectors)), [a],
                               [get_aval(a), _real(a, n), _ints(a)])
    failed = _failed(info, a)
    values = _or_nan(failed, values)
    if not vectors:
        return [values]
    found = swap_last(found)
    return [values, _or_nan(failed, conj(found) if is_complex(a) else found)]


def svd(a: Any, *, full_matrices: bool, compute_uv: bool) -> list[Any]:
    m, n = a.shape[-2:]
    tall = m > n  # else the transpose, whose columns are there, is factored
    most, k = (m, n) if tall else (n, m)
    together = prod(a.shape[:-2]) > 1 and most <= LARGEST_JACOBI  # which has all columns of u
    thin = not (full_matrices or together)
    u, s, v, info = call(
        "gesvdj", (*_head(a), most, k, int(compute_uv), int(thin)), [swap_last(a) if tall else a],
        [_like(a, k if thin else most, most), _real(a, k), _like(a, k, k), _ints(a)])
    failed = _failed(info, a)
    s = _or_nan(failed, s)
    if not compute_uv:
        return [s]
    u = u if full_matrices or thin else rows(u, 0, k)
    v = conj(v) if is_complex(a) else v
    u, vh = (swap_last(u), v) if tall else (swap_last(v), u)
    return [s, _or_nan(failed, u), _or_nan(failed, vh)]


FUNCTIONS: dict[Primitive, Callable[..., Any]] = {
    cholesky_p: cholesky, triangular_solve_p: triangular_solve, lu_p: lu, solve_p: solve,
    det_p: det, slogdet_p: slogdet, qr_p: qr, eigh_p: eigh, svd_p: svd}
