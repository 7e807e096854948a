"""What the rules of linear algebra are written with: products, triangles and diagonals.

Matrices are the last two axes; all operands of a function have the same leading axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans._runtime import get_trace, wrap
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Size, is_static
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Primitive
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, conj, div, mul, neg, real, sub
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import (
    align_batch,
    broadcast_in_dim,
    prod,
    reduce_sum,
    transpose,
)
from functrans.primitives.compare import bitwise_and, ge, le, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dot import dot_general
from functrans.primitives.index import GatherDimensionNumbers, gather
from functrans.primitives.precision import Precision, most_precise
from functrans.primitives.shape import (
    broadcasted_iota,
    concatenate,
    expand_dims,
    reshape,
    slice,
)

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["MatrixPrimitive", "adjoint", "antihermitian", "block", "columns", "conjugate",
           "diagonal", "eye", "from_lower", "inverse_differences", "is_complex", "matmul",
           "real_part", "rows", "scale_columns", "scale_rows", "swap_last", "take_rows",
           "trace_of_product", "tril", "triu"]


class MatrixPrimitive(Primitive, abstract=True):
    """A function of stacks of matrices: axes before the last two are independent problems."""

    square: ClassVar[bool] = True

    def check(self, a: ShapedArray) -> None:
        """Raise unless `a` holds floating or complex matrices, square where that is needed."""
        if a.ndim < 2 or (self.square and a.shape[-1] != a.shape[-2]):
            wanted = "square matrices" if self.square else "matrices"
            raise ShapeError(f"{self.name} takes {wanted}, got {a}.", where=user_source(),
                             why="the last two axes of the operand are rows and columns.")
        if dtypes.kind(a.dtype) not in "fc":
            raise DTypeError(f"{self.name} does not take {a.dtype}.", where=user_source(),
                             why="it is defined for floating and complex matrices.",
                             fix='x.astype("float32")')
        if a.dtype == dtypes.complex32:
            raise DTypeError(f"{self.name} does not take {a.dtype}.", where=user_source(),
                             why="complex32 is for storage, elementwise work and transforms: a "
                                 "factorization loses more digits than it has.",
                             fix='x.astype("complex64")')

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        out = self.bind(*align_batch(operands, axes), **params)
        return (out, [0] * len(out)) if self.multiple_results else (out, 0)


def is_complex(x: Any) -> bool:
    """Whether x has a complex dtype."""
    return dtypes.kind(get_aval(x).dtype) == "c"


def conjugate(x: Any) -> Array:
    """The complex conjugate; real x as it is."""
    return conj(x) if is_complex(x) else x


def real_part(x: Any) -> Any:
    """The real part, in a real dtype; real x as it is."""
    return real(x) if is_complex(x) else x


def swap_last(x: Any) -> Array:
    """x with rows and columns exchanged."""
    n = x.ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Array:
    """x with rows and columns exchanged, conjugated."""
    return swap_last(conjugate(x))


def matmul(x: Any, y: Any) -> Array:
    """The matrix product x y, at "high" precision at least.

    In TensorFloat-32 the gradient of a Cholesky factor would be 0.3 % off where the condition of
    the matrix is 1e6, and what follows from solves by substitution is no better than that.
    """
    lead = tuple(range(x.ndim - 2))
    return dot_general(x, y, (((x.ndim - 1,), (x.ndim - 2,)), (lead, lead)),
                       precision=most_precise(None, Precision.HIGH))


def trace_of_product(x: Any, y: Any) -> Any:
    """The trace of x y, in O(n^2)."""
    n = x.ndim
    return reduce_sum(mul(swap_last(x), y), (n - 2, n - 1))


def _grid(shape: Sequence[Size], dimension: int) -> Any:
    return broadcasted_iota(np.int32, shape, dimension)


@lru_cache(maxsize=64)
def _constant_band(rows: int, columns: int, low: int | None, high: int | None) -> Any:
    i, j = np.ogrid[:rows, :columns]
    inside = np.ones((rows, columns), np.bool_)
    if low is not None:
        inside &= j - i >= low
    if high is not None:
        inside &= j - i <= high
    return wrap(inside)


def _band(shape: Sequence[Size], low: int | None, high: int | None) -> Any:
    """Where column - row is from low to high (None: without limit), of matrices of `shape`.

    A constant where nothing is traced: gradients of small matrices are made of such operations.
    """
    core, n = tuple(shape[-2:]), len(shape)
    if get_trace() is None and is_static(core) and prod(core) <= 2**16:
        inside = _constant_band(*core, low, high)
    else:
        row, column = _grid(core, 0), _grid(core, 1)
        inside = None if low is None else ge(column, add(row, low) if low else row)
        if high is not None:
            below = le(column, add(row, high) if high else row)
            inside = below if inside is None else bitwise_and(inside, below)
    return inside if n == 2 else broadcast_in_dim(inside, shape, (n - 2, n - 1))


def tril(x: Any, k: int = 0) -> Array:
    """x, and zeros above diagonal k."""
    return select_n(_band(x.shape, None, k), zeros(get_aval(x).strong()), x)


def triu(x: Any, k: int = 0) -> Any:
    """x, and zeros below diagonal k."""
    return select_n(_band(x.shape, k, None), zeros(get_aval(x).strong()), x)


def eye(shape: Sequence[Size], dtype: Any) -> Array:
    """Identity matrices (ones on the main diagonal) of `shape`, which has the leading axes too."""
    return convert_element_type(_band(shape, 0, 0), dtype)


def diagonal(x: Any) -> Any:
    """The main diagonals, as the last axis."""
    *lead, m, n = x.shape
    k = min(m, n)
    flat = reshape(x, (*lead, m * n))
    if not k:
        return slice(flat, (0,) * flat.ndim, (*lead, 0))
    ones = (1,) * len(lead)
    return slice(flat, (0,) * flat.ndim, (*lead, (k - 1) * (n + 1) + 1), (*ones, n + 1))


def scale_rows(s: Any, x: Any) -> Any:
    """diag(s) x, for s of one number per row."""
    return mul(broadcast_in_dim(s, x.shape, range(x.ndim - 1)), x)


def scale_columns(x: Any, s: Any) -> Any:
    """x diag(s), for s of one number per column."""
    return mul(x, broadcast_in_dim(s, x.shape, (*range(x.ndim - 2), x.ndim - 1)))


def rows(x: Any, start: Size, stop: Size) -> Any:
    """The rows from start to before stop."""
    return slice(x, (*(0,) * (x.ndim - 2), start, 0), (*x.shape[:-2], stop, x.shape[-1]))


def columns(x: Any, start: Size, stop: Size) -> Array:
    """The columns from start to before stop."""
    return slice(x, (*(0,) * (x.ndim - 1), start), (*x.shape[:-1], stop))


def block(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The matrix [[a, b], [c, d]]."""
    n = a.ndim
    return concatenate([concatenate([a, b], n - 1), concatenate([c, d], n - 1)], n - 2)


def from_lower(x: Any) -> Any:
    """The Hermitian matrix whose lower triangle is that of x; a diagonal counts by its real part.

    Decompositions of Hermitian matrices read one triangle; a tangent is read the same way.
    """
    mirrored = adjoint(x)
    if is_complex(x):
        real_diagonal = select_n(_band(x.shape, 0, 0), x, mul(add(x, mirrored), 0.5))
        return select_n(_band(x.shape, None, 0), mirrored, real_diagonal)
    return select_n(_band(x.shape, None, 0), mirrored, x)


def inverse_differences(w: Any) -> Any:
    """The matrix 1 / (w_j - w_i) with zeros on the diagonal; infinite where two are equal."""
    n, size = w.ndim, w.shape[-1]
    shape = (*w.shape, size)
    of_column = broadcast_in_dim(w, shape, (*range(n - 1), n))
    of_row = broadcast_in_dim(w, shape, range(n))
    identity = eye(shape, w.dtype)
    apart = add(sub(of_column, of_row), identity)
    return sub(div(1.0, apart), identity)


def antihermitian(x: Any) -> Any:
    """(x - adjoint(x)) / 2."""
    return mul(add(x, neg(adjoint(x))), 0.5)


def take_rows(x: Any, order: Any) -> Any:
    """The rows of each matrix in the order of the last axis of `order`."""
    n = x.ndim
    lead = tuple(range(n - 2))
    numbers = GatherDimensionNumbers((n - 1,), (n - 2,), (n - 2,), lead, lead)
    return gather(x, expand_dims(order, (order.ndim,)), numbers,
                  (*(1,) * (n - 1), x.shape[-1]), mode="promise_in_bounds")
