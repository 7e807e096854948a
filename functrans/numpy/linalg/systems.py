"""Linear systems, inverses, determinants and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_tuple,
    broadcast,
    broadcast_shapes,
    cast,
    operand,
    promote_dtypes_inexact,
    scalar_like,
)
from functrans.numpy.linalg.factorizations import matrices
from functrans.numpy.manipulation import moveaxis
from functrans.numpy.products import diagonal, matmul
from functrans.numpy.reductions import max as _max
from functrans.numpy.reductions import sum
from functrans.primitives import linalg, matrix, spectral
from functrans.primitives import solve as systems
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike


class SlogdetResult(NamedTuple):
    """Sign of the determinants, and the logarithm of their absolute values.

    >>> jnp.linalg.slogdet(jnp.diag(jnp.array([-1.0, 1.0]))).sign
    Array(-1., dtype=float32)
    """

    sign: Array
    logabsdet: Array


def det(a: ArrayLike) -> Array:
    """The determinants of square matrices: (..., n, n) -> (...).

    Their first derivative is right for singular matrices too, up to n = 3 all derivatives are.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [0.0, 3.0]])).tolist()
    3.0
    """
    return systems.det(matrices("det", a, True))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants: (..., n, n) -> (...), (...).

    The logarithm is -inf, with infinite or NaN derivatives, where a matrix is singular. `method` is
    "lu", the default, or "qr".

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.slogdet(-jnp.eye(3)).sign.tolist()
    -1.0
    """
    if method not in (None, "lu", "qr"):
        raise ArgumentError(f"functrans.numpy.linalg.slogdet: method is 'lu' or 'qr', and not "
                            f"{method!r}.", where=user_source())
    x = matrices("slogdet", a, True)
    return SlogdetResult(*(_slogdet_by_qr(x) if method == "qr" else systems.slogdet(x)))


def _slogdet_by_qr(x: Array) -> tuple[Array, Array]:
    """The determinant of Q, which is a sign, times the product of the diagonal of R."""
    q, r = linalg.qr(x)
    diagonal_of_r = diagonal(r, axis1=-2, axis2=-1)
    size = lax.abs(diagonal_of_r)
    zero = lax.eq(size, lax.full_like(size, 0))
    unit = lax.div(diagonal_of_r, lax.convert_element_type(
        lax.select_n(zero, size, lax.full_like(size, 1)), diagonal_of_r.dtype))
    sign = lax.mul(systems.slogdet(q)[0], lax.reduce_prod(unit, (unit.ndim - 1,)))
    return sign, lax.reduce_sum(lax.log(size), (size.ndim - 1,))


def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices (..., n, n); infinite or NaN where one is singular.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return systems.inv(matrices("inv", a, True))


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x with a x = b, for a of shape (..., n, n) and b of shape (n,) or (..., n, k).

    Leading axes broadcast. Infinite or NaN where a is singular. Raises ShapeError when b has not as
    many rows as a.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.ones(2)).tolist()
    [0.5, 0.25]
    """
    a, b = promote_dtypes_inexact("linalg.solve", a, b)
    a = matrices("solve", a, True)
    vector = b.ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(f"functrans.numpy.linalg.solve: the right-hand side of shape {b.shape} "
                         f"does not fit matrices of shape {a.shape}.", where=user_source(),
                         why=f"it must have {a.shape[-1]} rows in its axis -2 (or be one vector).",
                         fix="b[..., None] for one vector per matrix")
    x = solve_stack(a, b)
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def solve_stack(a: Array, b: Array) -> Array:
    """x with a x = b, leading axes broadcast; one matrix for a stack b is factored only once."""
    if a.ndim == 2 and b.ndim > 2:
        last = b.ndim - 1
        by_row = moveaxis(b, -2, 0)
        x = systems.solve(a, lax.reshape(by_row, (b.shape[-2], -1 if b.size else 0)))
        return moveaxis(lax.reshape(x, by_row.shape), 0, last - 1)
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2], name="linalg.solve")
    return systems.solve(broadcast(a, (*lead, *a.shape[-2:])), broadcast(b, (*lead, *b.shape[-2:])))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first.

    Raises ShapeError when a, as a matrix with one row per element of b, is not square.

    >>> a = jnp.eye(4).reshape(2, 2, 4) * 2
    >>> jnp.linalg.tensorsolve(a, jnp.ones((2, 2)))
    Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    a, b = promote_dtypes_inexact("linalg.tensorsolve", a, b)
    if axes is not None:
        moved = axis_tuple(axes, a.ndim, "linalg.tensorsolve")
        a = lax.transpose(a, (*(d for d in range(a.ndim) if d not in moved), *moved))
    shape = a.shape[b.ndim:]
    if math.prod(shape) != b.size or a.size != b.size * b.size:
        raise ShapeError(f"functrans.numpy.linalg.tensorsolve: a of shape {a.shape} is no square "
                         f"system for b of shape {b.shape}.", where=user_source())
    x = solve(lax.reshape(a, (b.size, b.size)), lax.reshape(b, (b.size,)))
    return lax.reshape(x, shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a as a map from its last axes to its first `ind` ones.

    Raises ShapeError when both have not equally many elements.

    >>> a = jnp.eye(4).reshape(4, 2, 2) * 2
    >>> jnp.linalg.tensorinv(a, ind=1).shape
    (2, 2, 4)
    """
    x = operand("linalg.tensorinv", a)
    first, last = x.shape[:ind], x.shape[ind:]
    size = math.prod(first)
    if ind < 1 or size != math.prod(last):
        raise ShapeError(f"functrans.numpy.linalg.tensorinv: shape {x.shape} with ind={ind} is no "
                         "square matrix.", where=user_source())
    return lax.reshape(inv(lax.reshape(x, (size, size))), (*last, *first))


# Rank and what depends on it -----------------------------------------------------------------


def _epsilon(dtype: np.dtype) -> float:
    return float(dtypes.finfo(dtype).eps)


def _cutoff(s: Array, shape: tuple[Any, ...], rtol: ArrayLike | None) -> Array:
    """The singular value, per matrix, up to which s counts as zero."""
    if rtol is None:
        rtol = 10.0 * max(shape[-2:]) * _epsilon(s.dtype)
    tolerance = cast(operand("linalg.pinv", rtol), s.dtype)
    largest = _max(s, -1, initial=0)
    shape = broadcast_shapes(largest.shape, tolerance.shape, name="linalg.pinv")
    return lax.expand_dims(lax.mul(broadcast(largest, shape), broadcast(tolerance, shape)),
                           (len(shape),))


@custom_jvp
def _pinv(a: Array, rtol: Array | None) -> Array:
    u, s, vh = spectral.svd(a, full_matrices=False)
    return _pinv_of(u, s, vh, _cutoff(s, a.shape, rtol))


def _pinv_of(u: Array, s: Array, vh: Array, cutoff: Array) -> Array:
    large = lax.gt(s, broadcast(cutoff, s.shape))
    one = lax.full_like(s, 1)
    inverse = lax.select_n(large, lax.full_like(s, 0), lax.div(one, lax.select_n(large, one, s)))
    inverse = lax.convert_element_type(inverse, u.dtype)
    return matmul(matrix.scale_columns(matrix.adjoint(vh), inverse), matrix.adjoint(u))


@_pinv.defjvp
def _pinv_jvp(primals: Any, tangents: Any) -> Any:
    """Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973), equation 4.12: for constant rank."""
    (a, rtol), (t, _) = primals, tangents
    p = _pinv(a, rtol)
    th, ph = matrix.adjoint(t), matrix.adjoint(p)
    change = -matmul(p, matmul(t, p))
    rest = matmul(matmul(p, ph), th)
    change = change + rest - matmul(matmul(rest, a), p)
    rest = matmul(th, matmul(ph, p))
    return p, change + rest - matmul(p, matmul(a, rest))


def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverses of matrices: (..., m, n) -> (..., n, m).

    Singular values up to `rtol` (or `rcond`) times the largest count as zero; by default
    10 max(m, n) eps. The derivative is that at constant rank. `hermitian` is only a hint.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    x = matrices("pinv", a)
    tolerance = rtol if rtol is not None else rcond
    if tolerance is not None:
        tolerance = lax.stop_gradient(
            cast(operand("linalg.pinv", tolerance), dtypes.real_dtype(x.dtype)))
    return _pinv(x, tolerance)


def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                tol: ArrayLike | None = None) -> Array:
    """How many singular values of each matrix exceed rtol times the largest, or `tol`.

    rtol is max(m, n) eps by default; arrays of less than two dimensions have rank 1 unless all
    zero.

    >>> import functrans.numpy as jnp
    >>> int(jnp.linalg.matrix_rank(jnp.ones((3, 3))))
    1
    """
    x = operand("linalg.matrix_rank", M)
    if x.ndim < 2:
        nonzero = lax.ne(x, scalar_like(x, 0))
        return cast(lax.reduce_or(nonzero, tuple(range(x.ndim))), dtypes.default_int())
    x = matrices("matrix_rank", x)
    s = lax.abs(spectral.eigvalsh(x)) if hermitian else spectral.svd(x, compute_uv=False)
    if tol is not None:
        limit = cast(operand("linalg.matrix_rank", tol), s.dtype)
        limit = lax.expand_dims(limit, (limit.ndim,))
    else:
        limit = _cutoff(s, x.shape,
                        max(x.shape[-2:]) * _epsilon(s.dtype) if rtol is None else rtol)
    return sum(lax.gt(s, broadcast(limit, s.shape)), -1, dtypes.default_int())


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
          ) -> tuple[Array, Array, Array, Array]:
    """The x of least norm that minimises |b - a x|^2, with residuals, rank and singular values.

    a: (m, n), b: (m,) or (m, k); returns x, the sums of squares of residuals (k,), the rank and
    the singular values (min(m, n),). Singular values up to rcond times the largest, by default
    max(m, n) eps, count as zero. With `numpy_resid` residuals are empty where NumPy's are. The
    derivative is that at constant rank. Raises ShapeError when rows differ.

    >>> import functrans.numpy as jnp
    >>> x = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))[0]
    >>> round(float(x[0]), 4)
    2.0
    """
    a, b = promote_dtypes_inexact("linalg.lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise ShapeError(f"functrans.numpy.linalg.lstsq takes a matrix and right-hand sides of as "
                         f"many rows, and got shapes {a.shape} and {b.shape}.", where=user_source(),
                         fix="functrans.vmap maps it over stacks")
    m, n = a.shape
    rhs = lax.expand_dims(b, (1,)) if b.ndim == 1 else b
    s = spectral.svd(a, compute_uv=False)
    if rcond is None:
        rcond = max(m, n) * _epsilon(s.dtype)
    elif rcond < 0:
        rcond = _epsilon(s.dtype)
    rank = matrix_rank(a, rcond)
    x = matmul(_pinv(a, scalar_like(s, rcond)), rhs)
    off = lax.sub(rhs, matmul(a, x))
    residuals = sum(lax.square(lax.abs(off)), 0)
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = lax.full((0,), 0, s.dtype)
    return lax.squeeze(x, (1,)) if b.ndim == 1 else x, residuals, rank, s
