"""The polar decomposition by the dynamically weighted Halley iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.lax.loops import while_loop
from functrans.lax.operations import stop_gradient
from functrans.primitives.arithmetic import abs, add, div, max, min, mul, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import reduce_sum
from functrans.primitives.compare import bitwise_and, bitwise_not, eq, le, lt, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.linalg import qr, symmetrize
from functrans.primitives.matrix import adjoint, eye, matmul, rows
from functrans.primitives.reduce import reduce_max
from functrans.primitives.shape import concatenate
from functrans.primitives.solve import solve
from functrans.primitives.sylvester import sylvester
from functrans.primitives.transcendental import cbrt, sqrt
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike

__all__ = ["polar_tangents", "qdwh"]


def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[int, int] | None = None
         ) -> tuple[Array, Array, Array, Array]:
    """U with orthonormal columns and Hermitian H with x = U H, the steps, and if they converged.

    x is one matrix (m, n) of full rank, m >= n; at most `max_iterations` (10) steps, until the
    iterate changes by less than (4 eps)^(1/3) of its size. `is_hermitian` is a hint. Source: Y.
    Nakatsukasa, Z. Bai and F. Gygi, Optimizing Halley's iteration for computing the matrix polar
    decomposition, SIAM J. Matrix Anal. Appl. 31 (2010). Raises ShapeError for wide matrices, and
    ArgumentError for `dynamic_shape`: sizes that a call decides are symbolic here.

    >>> import functrans as ft
    >>> u, h, steps, converged = ft.lax.linalg.qdwh(ft.numpy.array([[0.0, 2.0], [-1.0, 0.0]]))
    >>> bool(converged), ft.numpy.diag(h).round(4).tolist()
    (True, [1.0, 2.0])
    """
    x = to_array(x, "qdwh: x")
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ShapeError(f"qdwh takes a matrix with at least as many rows as columns, got shape "
                         f"{x.shape}.", where=user_source(), fix="qdwh(x.T.conj()), or ft.vmap")
    if dynamic_shape is not None:
        raise ArgumentError("qdwh takes no dynamic_shape.", where=user_source(),
                            fix="qdwh(x[:m, :n])")
    limit = 10 if max_iterations is None else int(max_iterations)
    precision = float(dtypes.finfo(dtypes.real_dtype(x.dtype)).eps) if eps is None else float(eps)
    u, steps, converged = _iterate(stop_gradient(x), limit, precision)
    u, h = _polar(x, u)
    return u, h, steps, converged


@custom_jvp
def _polar(x: Any, u: Any) -> tuple[Any, Any]:
    return u, symmetrize(matmul(adjoint(u), x))


@_polar.defjvp
def _polar_jvp(primals: Any, tangents: Any) -> Any:
    (x, u), (t, _) = primals, tangents
    u, h = _polar(x, u)
    return (u, h), polar_tangents(u, h, t)


def polar_tangents(u: Any, h: Any, t: Any) -> tuple[Any, Any]:
    """The tangents of U and H where x = U H changes by t.

    W = U* dU is antihermitian and solves H W + W H = U* t - t* U; what t has outside of the space
    of U turns it out. H is positive definite.
    """
    inner = matmul(adjoint(u), t)
    turn = sylvester(h, h, sub(inner, adjoint(inner)))
    moved = matmul(u, turn)
    m, n = u.shape[-2:]
    if m > n:
        outside = sub(t, matmul(u, inner))
        moved = add(moved, adjoint(solve(h, adjoint(outside))))
    return moved, symmetrize(sub(inner, matmul(turn, h)))


def _iterate(x: Any, limit: int, eps: float) -> tuple[Any, Any, Any]:
    """The iterate, how many steps made it, and whether the last one changed little."""
    real, n = dtypes.real_dtype(x.dtype), x.shape[-1]
    if 0 in x.shape:
        return x, full((), 0, np.int32), full((), True, np.bool_)
    sizes = abs(x)
    bound = sqrt(mul(reduce_max(reduce_sum(sizes, (0,)), (0,)),
                     reduce_max(reduce_sum(sizes, (1,)), (0,))))
    zero = eq(bound, full((), 0, real))
    scale = convert_element_type(select_n(zero, bound, full((), 1, real)), x.dtype)
    identity = eye((n, n), x.dtype)
    tolerance = (4 * eps) ** (1 / 3)

    def step(state: Any) -> Any:
        u, low, count, _ = state
        square = mul(low, low)
        inner = div(mul(4.0, sub(div(1.0, square), 1.0)), square)
        inner = cbrt(max(inner, full((), 0, real)))
        root = sqrt(add(1.0, inner))
        rest = add(sub(8.0, mul(4.0, inner)), div(mul(8.0, sub(2.0, square)), mul(square, root)))
        a = add(root, div(sqrt(max(rest, full((), 0, real))), 2.0))
        b = div(mul(sub(a, 1.0), sub(a, 1.0)), 4.0)
        c = sub(add(a, b), 1.0)
        # u (1 + c u* u)^-1 by QR of [sqrt(c) u; 1], which is stable for any c
        wide = [convert_element_type(v, x.dtype)
                for v in (sqrt(c), div(b, c), div(sub(a, div(b, c)), sqrt(c)))]
        q, _ = qr(concatenate([mul(u, wide[0]), identity], 0), full_matrices=False)
        m = u.shape[0]
        product = matmul(rows(q, 0, m), adjoint(rows(q, m, m + n)))
        new = add(mul(u, wide[1]), mul(product, wide[2]))
        moved = le(_norm(sub(new, u)), mul(_norm(new), tolerance))
        low = div(mul(low, add(a, mul(b, square))), add(1.0, mul(c, square)))
        low = min(low, full((), 1, real))
        done = bitwise_and(moved, lt(abs(sub(low, 1.0)), full((), 10 * eps, real)))
        return new, low, add(count, 1), done

    def unfinished(state: Any) -> Any:
        return bitwise_and(bitwise_not(state[3]), lt(state[2], limit))

    first = (div(x, scale), full((), eps, real), full((), 0, np.int32), full((), False, np.bool_))
    u, _, steps, done = while_loop(unfinished, step, first)
    return u, steps, done


def _norm(x: Any) -> Any:
    sizes = abs(x)
    return sqrt(reduce_sum(mul(sizes, sizes), (0, 1)))
