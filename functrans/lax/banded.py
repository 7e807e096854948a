"""Systems of banded matrices, by elimination with partial pivoting in a number of steps that is n.

A band is `rows` of shape (..., n, lower + upper + 1): rows[i, k] is the element (i, i - lower + k)
of the matrix, and zero where that is none.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.lax.loops import scan
from functrans.lax.solving import custom_linear_solve
from functrans.primitives.arithmetic import abs, add, div, mul, sub
from functrans.primitives.base import full, zeros
from functrans.primitives.broadcast import broadcast_in_dim, move_axis
from functrans.primitives.compare import eq, gt, lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.matrix import real_part
from functrans.primitives.reduce import reduce_max
from functrans.primitives.shape import concatenate, pad, slice_in_dim, squeeze
from functrans.typing import Array

__all__ = ["band_product", "band_transpose", "solve_band", "tridiagonal_solve"]


def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *,
                      perturb_singular: bool = False) -> Array:
    """x with A x = b for A with diagonals dl (below, dl[0] unused), d and du (above, last unused).

    Diagonals have shape (..., n), b (..., n, k). By elimination with partial pivoting, in n steps;
    derivatives are those of the solution. Infinite or NaN where A is singular; with
    `perturb_singular` pivots below eps times the largest are replaced by that, so that the result
    is finite, as inverse iteration needs it. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> d, off = jnp.full(3, 2.0), jnp.zeros(3)
    >>> ft.lax.linalg.tridiagonal_solve(off, d, off, jnp.ones((3, 1))).tolist()
    [[0.5], [0.5], [0.5]]
    """
    dl, d, du, b = (to_array(x, "tridiagonal_solve: an operand") for x in (dl, d, du, b))
    if not dl.shape == d.shape == du.shape == b.shape[:-1] or not d.ndim:
        raise ShapeError(f"tridiagonal_solve: diagonals of shapes {dl.shape}, {d.shape} and "
                         f"{du.shape} do not fit right-hand sides of shape {b.shape}.",
                         where=user_source(), why="diagonals have shape (..., n), b (..., n, k).")
    if not dl.dtype == d.dtype == du.dtype == b.dtype or dtypes.kind(b.dtype) not in "fc" \
            or b.dtype == dtypes.complex32:
        raise DTypeError(f"tridiagonal_solve: operands of {dl.dtype}, {d.dtype}, {du.dtype} and "
                         f"{b.dtype}.", where=user_source(),
                         why="they have one floating or complex dtype, which is not complex32.")
    rows = concatenate([_column(x) for x in (_shifted(dl, 0, 1), d, _shifted(du, 1, 0))], d.ndim)
    return solve_band(rows, 1, 1, b, perturb_singular)


def _column(x: Array) -> Array:
    return broadcast_in_dim(x, (*x.shape, 1), range(x.ndim))


def _shifted(x: Array, drop_last: int, drop_first: int) -> Array:
    """x with its first or its last element replaced by zero, as what is there is not read."""
    n, axis = x.shape[-1], x.ndim - 1
    if n == 0:
        return x
    part = slice_in_dim(x, drop_first, n - drop_last, axis=axis)
    edge = full((*x.shape[:-1], 1), 0, x.dtype)
    return concatenate([edge, part] if drop_first else [part, edge], axis)


def band_product(rows: Any, lower: int, x: Any) -> Any:
    """The banded matrix times x (..., n, k)."""
    out = zeros(get_aval(x).strong())
    for k in range(rows.shape[-1]):
        element = _side(slice_in_dim(rows, k, k + 1, axis=rows.ndim - 1), x)
        out = add(out, mul(element, _moved(x, k - lower)))
    return out


def _side(column: Any, like: Any) -> Any:
    """A column (..., n, 1) for every right-hand side."""
    return broadcast_in_dim(column, like.shape, range(like.ndim))


def _moved(x: Any, by: int) -> Any:
    """Row i of the result is row i + by of x; zero where there is none."""
    if builtins.abs(by) >= x.shape[-2]:
        return zeros(get_aval(x).strong())
    config = [(0, 0, 0)] * (x.ndim - 2) + [(-by, by, 0), (0, 0, 0)]
    return pad(x, np.asarray(0, x.dtype), config)


def band_transpose(rows: Any, lower: int) -> Any:
    """The rows of the transposed matrix, whose lower width is the upper one of this."""
    width = rows.shape[-1]
    columns = [_moved(slice_in_dim(rows, k, k + 1, axis=rows.ndim - 1), lower - k)
               for k in reversed(range(width))]
    return concatenate(columns, rows.ndim - 1)


def solve_band(rows: Any, lower: int, upper: int, b: Any, perturb: bool = False) -> Array:
    """x with A x = b (..., n, k) for a band, differentiated as a solution."""
    if 0 in b.shape:
        return zeros(get_aval(b).strong())
    swapped = band_transpose(rows, lower)
    solution: Array = custom_linear_solve(
        lambda x: band_product(rows, lower, x), b,
        lambda _, y: _eliminate(rows, lower, upper, y, perturb),
        lambda _, y: _eliminate(swapped, upper, lower, y, perturb))
    return solution


def _eliminate(rows: Any, lower: int, upper: int, b: Any, perturb: bool) -> Any:
    """Golub and Van Loan, section 4.3: of `lower` + 1 rows at a time one becomes final."""
    axis, n, width = b.ndim - 2, b.shape[-2], rows.shape[-1]
    rows, b = move_axis(rows, axis, 0), move_axis(b, axis, 0)
    # windows begin at the column that is eliminated: the first rows of the band begin before it
    waiting = []
    for r in range(lower):
        row = _take(rows, r) if r < n else full(rows.shape[1:], 0, rows.dtype)
        waiting.append((_left(row, lower - r),
                        _take(b, r) if r < n else full(b.shape[1:], 0, b.dtype)))
    ends = [(-lower, lower, 0)]
    zero = np.asarray(0, b.dtype)
    coming = (pad(rows, zero, ends + [(0, 0, 0)] * (rows.ndim - 1)),
              pad(b, zero, ends + [(0, 0, 0)] * (b.ndim - 1)))

    def forward(carry: Any, row: Any) -> Any:
        lines = [*carry, row]
        first, rest = lines[0], lines[1:]
        others = []
        for other in rest:
            larger = gt(abs(_pivot(other[0])), abs(_pivot(first[0])))
            first, other = ([select_n(_wide(larger, x), x, y) for x, y in zip(p, q, strict=True)]
                            for p, q in ((first, other), (other, first)))
            others.append(other)
        pivot = _pivot(first[0])
        none = eq(pivot, full(pivot.shape, 0, pivot.dtype))
        divisor = select_n(none, pivot, full(pivot.shape, 1, pivot.dtype))
        carried = []
        for line, right in others:
            ratio = div(_pivot(line), divisor)
            carried.append((_left(sub(line, mul(_wide(ratio, line), first[0])), 1),
                            sub(right, mul(_wide(ratio, right), first[1]))))
        return carried, tuple(first)

    _, (upper_rows, rights) = scan(forward, waiting, coming)
    if perturb:
        upper_rows = _perturbed(upper_rows)

    def backward(below: Any, row: Any) -> Any:
        line, right = row
        for k, x in enumerate(below):
            element = slice_in_dim(line, k + 1, k + 2, axis=line.ndim - 1)
            right = sub(right, mul(broadcast_in_dim(element, right.shape, range(right.ndim)), x))
        x = div(right, _wide(_pivot(line), right))
        return (x, *below[:-1]) if below else (), x

    last = tuple(full(b.shape[1:], 0, b.dtype) for _ in range(width - 1))
    _, x = scan(backward, last, (upper_rows, rights), reverse=True)
    return move_axis(x, 0, axis)


def _take(x: Any, i: int) -> Any:
    return squeeze(slice_in_dim(x, i, i + 1, axis=0), (0,))


def _left(row: Any, by: int) -> Any:
    """A row whose window begins `by` columns later."""
    return pad(row, np.asarray(0, row.dtype), [(0, 0, 0)] * (row.ndim - 1) + [(-by, by, 0)])


def _pivot(row: Any) -> Any:
    return squeeze(slice_in_dim(row, 0, 1, axis=row.ndim - 1), (row.ndim - 1,))


def _wide(x: Any, like: Any) -> Any:
    return broadcast_in_dim(x, like.shape, range(x.ndim))


def _perturbed(rows: Any) -> Any:
    """Pivots of at least eps times the largest element in size."""
    real = dtypes.real_dtype(rows.dtype)
    sizes = abs(rows)
    least = mul(reduce_max(sizes, (0, sizes.ndim - 1)), float(dtypes.finfo(real).eps))
    tiny = full(least.shape, dtypes.finfo(real).tiny, real)
    least = select_n(gt(least, tiny), tiny, least)
    first = slice_in_dim(rows, 0, 1, axis=rows.ndim - 1)
    bound = broadcast_in_dim(least, first.shape, range(1, least.ndim + 1))
    size = abs(first)
    small = lt(size, bound)
    negative = convert_element_type(lt(real_part(first), full(first.shape, 0, real)), first.dtype)
    sign = sub(full(first.shape, 1, first.dtype), mul(negative, 2.0))
    replaced = select_n(small, first, mul(sign, convert_element_type(bound, first.dtype)))
    return concatenate([replaced, slice_in_dim(rows, 1, rows.shape[-1], axis=rows.ndim - 1)],
                       rows.ndim - 1)
