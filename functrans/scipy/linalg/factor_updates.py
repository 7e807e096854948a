"""Factors of a matrix to which rows or columns are added, from which they are taken; L D L*."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import matrix
from functrans.scipy.arguments import known_size, of_rank, one_of, refused
from functrans.scipy.linalg.decompositions import qr
from functrans.typing import Array, ArrayLike

_ALPHA = (1 + math.sqrt(17)) / 8  # bounds the growth of elements


def _whole(name: str, Q: ArrayLike, R: ArrayLike, *more: ArrayLike) -> tuple[Array, bool, Any]:
    """The matrix Q R, whether Q is square, and the other operands in its dtype."""
    q, r, *rest = promote_dtypes_inexact(f"linalg.{name}", Q, R, *more)
    of_rank(f"linalg.{name}", "Q", q, 2)
    of_rank(f"linalg.{name}", "R", r, 2)
    if q.shape[1] != r.shape[0]:
        raise ShapeError(f"functrans.scipy.linalg.{name}: Q has shape {q.shape}, R {r.shape}.",
                         where=user_source(), why="they are the factors of one matrix.")
    return matrix.matmul(q, r), q.shape[0] == q.shape[1], rest


def _factored(a: Array, square: bool) -> tuple[Array, Array]:
    q, r = qr(a, mode="full" if square else "economic")
    return q, r


def _place(name: str, k: int, size: int, most: int) -> int:
    """k, which may count from the end."""
    place = known_size(f"linalg.{name}", "k", k, -size)
    place = place + size if place < 0 else place
    if place > most:
        raise ShapeError(f"functrans.scipy.linalg.{name}: k is {k}.", where=user_source(),
                         why=f"there are {size}.")
    return place


def qr_insert(Q: ArrayLike, R: ArrayLike, u: ArrayLike, k: int, which: str = "row",
              rcond: float | None = None, overwrite_qru: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:
    """Q and R of the matrix Q R with u inserted before row (or column, `which="col"`) k.

    u is one row or column, or several: (p, n), of columns (m, p). The matrix is factored anew, as
    economically as Q was. Signs may be other than SciPy's. Raises ShapeError where shapes do not
    fit.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> q, r = ft.scipy.linalg.qr_insert(jnp.eye(2), jnp.eye(2), jnp.array([1.0, 2.0]), 1)
    >>> print(abs(q @ r).round(3))
    [[1. 0.]
     [1. 2.]
     [0. 1.]]
    """
    one_of("linalg.qr_insert", "which", which, ("row", "col"))
    if rcond is not None:
        raise refused("linalg.qr_insert", "rcond", "the matrix is factored anew.")
    a, square, (new,) = _whole("qr_insert", Q, R, u)
    axis = 0 if which == "row" else 1
    place = _place("qr_insert", k, a.shape[axis], a.shape[axis])
    new = lax.expand_dims(new, (axis,)) if new.ndim == 1 else new
    if new.ndim != 2 or new.shape[1 - axis] != a.shape[1 - axis]:
        raise ShapeError(f"functrans.scipy.linalg.qr_insert: u has shape {new.shape}, the matrix "
                         f"{a.shape}.", where=user_source(), why=f"u is a {which} of it.")
    before, after = (a[:place], a[place:]) if axis == 0 else (a[:, :place], a[:, place:])
    return _factored(jnp.concatenate([before, new, after], axis=axis), square)


def qr_delete(Q: ArrayLike, R: ArrayLike, k: int, p: int = 1, which: str = "row",
              overwrite_qr: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Q and R of the matrix Q R without p rows (or columns, `which="col"`) from number k on.

    See `qr_insert`.

    >>> import functrans as ft
    >>> q, r = ft.scipy.linalg.qr_delete(ft.numpy.eye(3), ft.numpy.eye(3), 0, which="col")
    >>> print(abs(q @ r))
    [[0. 0.]
     [1. 0.]
     [0. 1.]]
    """
    one_of("linalg.qr_delete", "which", which, ("row", "col"))
    a, square, _ = _whole("qr_delete", Q, R)
    axis = 0 if which == "row" else 1
    count = known_size("linalg.qr_delete", "p", p)
    place = _place("qr_delete", k, a.shape[axis], a.shape[axis] - count)
    kept = np.delete(np.arange(a.shape[axis]), slice(place, place + count))
    return _factored(a[kept] if axis == 0 else a[:, kept], square)


def qr_update(Q: ArrayLike, R: ArrayLike, u: ArrayLike, v: ArrayLike, overwrite_qruv: bool = False,
              check_finite: bool = True) -> tuple[Array, Array]:
    """Q and R of the matrix Q R + u v*, for vectors, or matrices (m, k) and (n, k).

    See `qr_insert`.

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> q, r = ft.scipy.linalg.qr_update(jnp.eye(2), jnp.eye(2), jnp.ones(2), jnp.ones(2))
    >>> print((q @ r).round(3))
    [[2. 1.]
     [1. 2.]]
    """
    a, square, (left, right) = _whole("qr_update", Q, R, u, v)
    left, right = (lax.expand_dims(x, (1,)) if x.ndim == 1 else x for x in (left, right))
    if left.shape[:1] != a.shape[:1] or right.shape[:1] != a.shape[1:] or \
            left.shape[1:] != right.shape[1:]:
        raise ShapeError(f"functrans.scipy.linalg.qr_update: u has shape {left.shape}, v "
                         f"{right.shape}, the matrix {a.shape}.", where=user_source(),
                         why="u v* is added to it.")
    return _factored(a + matrix.matmul(left, matrix.adjoint(right)), square)


class _Reduced(NamedTuple):
    a: Array  # what is left to factor, in the order of pivots
    lower: Array
    d: Array
    order: Array
    k: Array


def ldl(A: ArrayLike, lower: bool = True, hermitian: bool = True, overwrite_a: bool = False,
        check_finite: bool = True) -> tuple[Array, Array, Array]:
    """L, D and a permutation with A = L D L*, for a symmetric or Hermitian matrix.

    D has blocks of 1 and 2, rows `L[perm]` are lower triangular with a unit diagonal; with
    `lower=False` upper triangular. A complex A is Hermitian, or symmetric (A = L D L') where
    `hermitian` is False. Only the triangle is read that `lower` says. Differentiated for as long as
    pivots stay.
    Source: Bunch and Kaufman, Math. Comp. 31 (1977).

    >>> import functrans as ft
    >>> l, d, perm = ft.scipy.linalg.ldl(ft.numpy.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> d.tolist(), perm.tolist()
    ([[2.0, 0.0], [0.0, 2.5]], [0, 1])
    """
    a = of_rank("linalg.ldl", "A", matrices("ldl", A, True), 2)
    n = a.shape[0]
    conjugated = hermitian and matrix.is_complex(a)
    flip = not lower
    a = a[::-1, ::-1] if flip else a
    strict = matrix.tril(a, -1)
    other = matrix.adjoint(strict) if conjugated else strict.T
    diagonal = jnp.diag(a)
    diagonal = jnp.real(diagonal).astype(a.dtype) if conjugated else diagonal
    a = strict + other + jnp.diag(diagonal)
    places = jnp.arange(n)

    def conj(x: Array) -> Array:
        return jnp.conj(x) if conjugated else x

    def length(x: Array) -> Array:
        """As LAPACK compares complex numbers."""
        size = jnp.abs(jnp.real(x)) + jnp.abs(jnp.imag(x)) if matrix.is_complex(x) else jnp.abs(x)
        return lax.stop_gradient(size)

    def largest(x: Array, used: Array) -> tuple[Array, Array]:
        size = jnp.where(used, length(x), -1)
        place = jnp.argmax(size)
        return place, jnp.maximum(size[place], 0)

    def swapped(x: Array, i: Array, j: Array) -> Array:
        one, two = x[i], x[j]
        return x.at[i].set(two).at[j].set(one)

    def eliminate(s: _Reduced) -> _Reduced:
        a, low, d, order, k = s
        akk = length(a[k, k])
        r, below = largest(a[:, k], places > k)
        _, beside = largest(a[r], (places >= k) & (places != r))
        arr = length(a[r, r])
        stays = (akk >= _ALPHA * below) | (akk * beside >= _ALPHA * below * below)
        double = ~stays & (arr < _ALPHA * beside) & (k + 1 < n)
        pivot = jnp.where(stays, k, r)
        at = jnp.where(double, k + 1, k)
        a = swapped(swapped(a, at, pivot).T, at, pivot).T
        low = jnp.where(places[None] < k, swapped(low, at, pivot), low)
        order = swapped(order, at, pivot)
        k2 = jnp.minimum(k + 1, n - 1)
        # one column
        empty = a[k, k] == 0
        column = jnp.where(places > k, a[:, k] / jnp.where(empty, 1, a[k, k]), 0)
        column = jnp.where(empty, 0, column)
        single_a = a - jnp.outer(column, conj(jnp.where(places > k, a[:, k], 0)))
        # two columns
        block = jnp.stack([a[k, k], a[k, k2], a[k2, k], a[k2, k2]])
        det = block[0] * block[3] - block[1] * block[2]
        det = jnp.where(double, jnp.where(det == 0, 1, det), 1)
        under = places > k + 1
        c1, c2 = jnp.where(under, a[:, k], 0), jnp.where(under, a[:, k2], 0)
        l1 = (c1 * block[3] - c2 * block[2]) / det
        l2 = (c2 * block[0] - c1 * block[1]) / det
        double_a = a - jnp.outer(l1, conj(c1)) - jnp.outer(l2, conj(c2))
        single_low = low.at[:, k].add(column)
        double_low = low.at[:, k].add(l1).at[:, k2].add(l2)
        single_d = d.at[k, k].set(a[k, k])
        double_d = single_d.at[k2, k2].set(block[3]).at[k, k2].set(block[1]).at[k2, k].set(block[2])
        return _Reduced(jnp.where(double, double_a, single_a),
                        jnp.where(double, double_low, single_low),
                        jnp.where(double, double_d, single_d), order,
                        k + jnp.where(double, 2, 1).astype(k.dtype))

    begin = _Reduced(a, jnp.eye(n, dtype=a.dtype), jnp.zeros_like(a), places, jnp.array(0))
    if not n:
        return a, a, places
    # at most n steps; those after the last do nothing
    end = lax.fori_loop(0, n, lambda _, s: lax.cond(s.k < n, eliminate, lambda s: s, s), begin)
    found = jnp.zeros_like(a).at[end.order].set(end.lower)
    if flip:
        return found[::-1, ::-1], end.d[::-1, ::-1], n - 1 - end.order[::-1]
    return found, end.d, end.order
