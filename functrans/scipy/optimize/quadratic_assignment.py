"""quadratic_assignment: the order of a graph's nodes that makes it most like another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, known_values, one_of, real
from functrans.scipy.named_result import OptimizeResult
from functrans.scipy.optimize.assignment import linear_sum_assignment
from functrans.scipy.optimize.global_minima import key_of
from functrans.scipy.optimize.implicit import option
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike


def quadratic_assignment(A: ArrayLike, B: ArrayLike, method: str = "faq",
                         options: Mapping[str, Any] | None = None) -> OptimizeResult:
    """A permutation with a small sum of A[i, j] B[p[i], p[j]], `col_ind`, and that sum, `fun`.

    `method` is "faq", Frank and Wolfe's steps among doubly stochastic matrices, or "2opt", swaps of
    two for as long as one helps. Options are `maximize`, `rng` (a key, or a seed), `partial_match`
    (pairs (i, p[i]) that are known, (m, 2)); of "faq" `P0` ("barycenter", "randomized" or a
    matrix), `shuffle_input`, `maxiter` (30) and `tol` (0.03); of "2opt" `partial_guess`. Neither
    need find the best one. It runs under `jit` and `vmap`, with known pairs; `fun` has derivatives
    in the matrices. Raises ShapeError for matrices that are not square and of one size.
    Source: Vogelstein et al., PLoS ONE 10 (2015).

    >>> import functrans as ft
    >>> A = ft.numpy.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    >>> B = ft.numpy.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]])
    >>> found = ft.scipy.optimize.quadratic_assignment(A, B)
    >>> found.col_ind.tolist(), float(found.fun)
    ([0, 1, 2], 40.0)
    """
    one_of("optimize.quadratic_assignment", "method", str(method).lower(), ("faq", "2opt"))
    a, b = real("optimize.quadratic_assignment", A, B)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.shape != a.shape:
        raise ShapeError(f"functrans.scipy.optimize.quadratic_assignment: A has shape {a.shape}, B "
                         f"{b.shape}.", where=user_source(),
                         why="both are square and of one size.")
    common = {"maximize": False, "rng": None, "partial_match": None}
    given = dict(options or {})
    still = lax.stop_gradient(a), lax.stop_gradient(b)
    if str(method).lower() == "faq":
        known = option("quadratic_assignment", given, {
            **common, "P0": "barycenter", "shuffle_input": False, "maxiter": 30, "tol": 0.03})
        order, nit = _by_relaxation(*still, known)
    else:
        known = option("quadratic_assignment", given, {**common, "partial_guess": None})
        order, nit = _by_swaps(*still, known)
    return OptimizeResult(col_ind=order, fun=jnp.sum(a * b[order][:, order]), nit=nit)


def _pairs(name: str, pairs: Any, n: int) -> Any:
    """Known pairs (m, 2), which are different in both columns."""
    if pairs is None:
        return np.zeros((0, 2), int)
    known = np.atleast_2d(known_values("optimize.quadratic_assignment", name, jnp.asarray(pairs),
                                       "how many there are is known.", "a NumPy array"))
    known = known.astype(int) if known.size else np.zeros((0, 2), int)
    if known.shape[1] != 2 or (known < 0).any() or (known >= n).any() or any(
            len(set(known[:, k])) != len(known) for k in (0, 1)):
        raise ArgumentError(f"functrans.scipy.optimize.quadratic_assignment: {name} are "
                            f"{known.tolist()}.", where=user_source(),
                            why=f"they are pairs of numbers below {n}, each once in its column.")
    return known


def _by_relaxation(a: Array, b: Array, known: dict[str, Any]) -> tuple[Array, Array]:
    n = a.shape[0]
    pairs = _pairs("partial_match", known["partial_match"], n)
    rows = np.concatenate([pairs[:, 0], np.setdiff1d(np.arange(n), pairs[:, 0])])
    columns = jnp.asarray(np.concatenate([pairs[:, 1], np.setdiff1d(np.arange(n), pairs[:, 1])]))
    m = len(pairs)
    free = n - m
    if not free:
        return columns[jnp.asarray(np.argsort(rows))], jnp.array(0)
    key = key_of("quadratic_assignment", known["rng"])
    if known["shuffle_input"]:
        key, used = random.split(key)
        columns = jnp.concatenate([columns[:m], random.permutation(used, columns[m:])])
    x, y = a[rows][:, rows], b[columns][:, columns]
    x12, x21, x22 = x[:m, m:], x[m:, :m], x[m:, m:]
    y12, y21, y22 = y[:m, m:], y[m:, :m], y[m:, m:]
    fixed = matmul(x21, y21.T) + matmul(x12.T, y12)
    largest = bool(known["maximize"])
    sign = -1.0 if largest else 1.0
    eye = jnp.eye(free, dtype=x.dtype)
    start = _first_matrix(known["P0"], free, key, x.dtype)
    limit = known_size("optimize.quadratic_assignment", "maxiter", known["maxiter"])

    def unfinished(s: Any) -> Any:
        return (s[1] > known["tol"]) & (s[2] < limit)

    def improve(s: Any) -> Any:
        p, _, count = s
        slope = fixed + matmul(matmul(x22, p), y22.T) + matmul(matmul(x22.T, p), y22)
        _, chosen = linear_sum_assignment(slope, largest)
        q = eye[chosen]
        r = p - q
        # along the line the sum is a parabola
        ar, br = matmul(x22.T, r), matmul(y22, r.T)
        bend = jnp.sum(ar.T * br)
        tilt = (jnp.sum(matmul(r.T, x21) * y21) + jnp.sum(matmul(r.T, x12.T) * y12.T)
                + jnp.sum(ar * y22.T[chosen]) + jnp.sum(x22 * br[chosen]))
        inner = -tilt / jnp.where(bend == 0, 1, 2 * bend)
        within = (bend * sign > 0) & (inner >= 0) & (inner <= 1)
        share = jnp.where(within, inner, jnp.where((tilt + bend) * sign < 0, 1, 0))
        new = share * p + (1 - share) * q
        return new, jnp.linalg.norm(p - new) / math.sqrt(free), count + 1

    p, _, count = lax.while_loop(unfinished, improve,
                                 (start, jnp.full((), math.inf, x.dtype), jnp.array(0)))
    _, chosen = linear_sum_assignment(p, True)
    order = jnp.concatenate([columns[:m], columns[m:][chosen]])
    return jnp.zeros(n, order.dtype).at[rows].set(order), count


def _first_matrix(given: Any, n: int, key: Array, dtype: Any) -> Array:
    flat = jnp.full((n, n), 1 / n, dtype)
    if isinstance(given, str):
        one_of("optimize.quadratic_assignment", "P0", given, ("barycenter", "randomized"))
        if given == "barycenter":
            return flat
        table = random.uniform(key, (n, n), dtype)
        for _ in range(10):  # Sinkhorn's steps to sums of one
            table = table / jnp.sum(table, axis=0)
            table = table / jnp.sum(table, axis=1, keepdims=True)
        return (flat + table) / 2
    matrix = real("optimize.quadratic_assignment", given)[0].astype(dtype)
    if matrix.shape != (n, n):
        raise ShapeError(f"functrans.scipy.optimize.quadratic_assignment: P0 has shape "
                         f"{matrix.shape}.", where=user_source(),
                         why=f"it is ({n}, {n}): a row for each node that is not matched.")
    return matrix


def _by_swaps(a: Array, b: Array, known: dict[str, Any]) -> tuple[Array, Array]:
    n = a.shape[0]
    match = _pairs("partial_match", known["partial_match"], n)
    guess = _pairs("partial_guess", known["partial_guess"], n)
    both = np.concatenate([match, guess])
    both = _pairs("partial_match and partial_guess", both if len(both) else None, n)
    rows = np.setdiff1d(np.arange(n), both[:, 0])
    left = random.permutation(key_of("quadratic_assignment", known["rng"]),
                              jnp.asarray(np.setdiff1d(np.arange(n), both[:, 1])))
    order = jnp.zeros(n, left.dtype).at[both[:, 0]].set(jnp.asarray(both[:, 1], left.dtype))
    order = order.at[rows].set(left)
    movable = np.isin(np.arange(n), match[:, 0], invert=True)
    allowed = jnp.asarray(np.triu(movable[:, None] & movable[None], 1))
    sign = -1.0 if known["maximize"] else 1.0
    eps = 10 * jnp.finfo(a.dtype).eps

    def gains(order: Array) -> Array:
        """How much each swap of two adds to the sum."""
        c = b[order][:, order]
        total = jnp.zeros_like(a)
        for u, v in ((a, c), (a.T, c.T)):
            w = matmul(u.T, v)
            d = jnp.diag(w)
            total = total + w + w.T - d[:, None] - d[None]
            uu, vv = jnp.diag(u), jnp.diag(v)
            # the terms of the two themselves are counted by themselves
            total = total - (uu[:, None] - u) * (v - vv[:, None]) - (u.T - uu[None]) * (
                vv[None] - v.T)
        aa, cc = jnp.diag(a), jnp.diag(c)
        own = (aa[:, None] - aa[None]) * (cc[None] - cc[:, None]) + (a - a.T) * (c.T - c)
        return total + own

    scale = jnp.sum(jnp.abs(a)) * jnp.max(jnp.abs(b))

    def swapped(s: Any) -> Any:
        order, _, count = s
        helps = allowed & (sign * gains(order) < -eps * scale)
        first = jnp.argmax(helps.reshape(-1))
        i, j = first // n, first % n
        some = jnp.any(helps)
        one, two = order[i], order[j]
        moved = order.at[i].set(jnp.where(some, two, one)).at[j].set(jnp.where(some, one, two))
        return jnp.where(some, moved, order), some, count + 1

    order, _, count = lax.while_loop(lambda s: s[1], swapped,
                                     (order, jnp.array(n > 1), jnp.array(0)))
    return order, count
