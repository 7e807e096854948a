"""solve_bvp: ordinary differential equations with conditions at both ends.

Collocation by cubics at a mesh that is refined where the residual is large. The mesh has a
capacity: nodes beyond its number are at its end, where intervals have no length and say that the
values are the same. Source: Kierzenka and Shampine, ACM TOMS 27 (2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree_registry import register_pytree_node
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, real
from functrans.scipy.integrate.condensed import Blocks, solve_blocks
from functrans.scipy.products import matmul, pinv
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.derivatives import jacfwd
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.transforms.staged import closure_convert
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

_NEWTON, _TRIALS = 12, 5
_LOBATTO = 0.5 * math.sqrt(3 / 7)


class MeshSolution:
    """The solution of `solve_bvp` as a function: cubics between the nodes; a tree.

    Its values at x have shape (n, *x.shape); with `nu` = 1 they are those of the derivative.

    >>> mesh = ft.scipy.integrate.solve_bvp(lambda x, y: 0 * y + 2.0, lambda a, b: a,
    ...                                     jnp.array([0.0, 1.0]), jnp.zeros((1, 2))).sol
    >>> print(mesh(0.5).round(3), mesh(0.5, nu=1).round(3))
    [1.] [2.]
    """

    def __init__(self, x: Array, c: tuple[Array, Array]) -> None:
        self.x, self.c = x, c

    def __call__(self, x: ArrayLike, nu: int = 0) -> Array:
        (at,) = inexact(x)
        flat = at.reshape(-1).astype(self.x.dtype)
        y, slopes = self.c
        found = _hermite(self.x, y, slopes, flat)[min(known_size("integrate.solve_bvp.sol", "nu",
                                                                 nu, 0), 1)]
        return found.T.reshape(y.shape[1], *at.shape)


register_pytree_node(MeshSolution, lambda s: ((s.x, s.c), None),
                     lambda _, parts: MeshSolution(*parts))


class BvpResult(NamedTuple):
    """A solution: y and its derivative yp, (n, m), at the nodes x; parameters p; `sol` is it all.

    `status` is 0 where it converged, 1 where there were not enough nodes, 2 where Newton's method
    met a singular Jacobian. Under `jit` there are `max_nodes` nodes, of which the last are at the
    end, and `rms_residuals` of 0 between them.

    >>> found = ft.scipy.integrate.solve_bvp(lambda x, y: y, lambda a, b: b - 1.0,
    ...                                      jnp.linspace(0, 1, 5), jnp.ones((1, 5)))
    >>> print(found.y[0, 0].round(2), found.success)
    0.37 True
    """

    sol: MeshSolution
    p: Array | None
    x: Array
    y: Array
    yp: Array
    rms_residuals: Array
    niter: Array
    status: Array
    success: Array


class _Mesh(NamedTuple):
    x: Array
    y: Array  # (capacity, n)
    p: Array
    nodes: Array
    rms: Array
    niter: Array
    singular: Array
    short: Array  # of nodes
    met: Array  # the conditions at the ends


def solve_bvp(fun: Callable[..., Any], bc: Callable[..., Any], x: ArrayLike, y: ArrayLike,
              p: ArrayLike | None = None, S: ArrayLike | None = None,
              fun_jac: Callable[..., Any] | None = None, bc_jac: Callable[..., Any] | None = None,
              tol: float = 1e-3, max_nodes: int = 1000, verbose: int = 0,
              bc_tol: float | None = None) -> BvpResult:
    """The solution of y' = `fun(x, y)` with `bc(y(a), y(b)) = 0`, from a guess y at nodes x.

    fun takes nodes (m,) and values (n, m) and returns (n, m), bc takes two vectors and returns one
    of n. With k unknown parameters, whose guess is `p`, they are `fun(x, y, p)` and `bc(ya, yb,
    p)`, and bc returns n + k values. With a matrix `S` the equation is y' = fun + S y / (x - a).
    Jacobians are automatic: `fun_jac` and `bc_jac` are not called. The mesh is refined until the
    relative residual of each interval is at most `tol`, with `max_nodes` nodes at most.

    y and p are differentiated by the implicit function theorem, at the nodes that were found, in
    what fun and bc close over. Under `jit` and `vmap` there are `max_nodes` nodes from the start.
    Raises ShapeError where shapes do not fit, ArgumentError for nodes that do not rise.
    Source: Kierzenka and Shampine, ACM TOMS 27 (2001).

    >>> import functrans as ft
    >>> jnp = ft.numpy
    >>> x = jnp.linspace(0, 1, 5)
    >>> found = ft.scipy.integrate.solve_bvp(
    ...     lambda x, y: jnp.stack([y[1], -jnp.exp(y[0])]),
    ...     lambda a, b: jnp.stack([a[0], b[0]]), x, jnp.zeros((2, 5)))
    >>> print(found.sol(0.5)[0].round(3))
    0.141
    """
    for given, name in ((fun, "fun"), (bc, "bc")):
        check_callable(given, f"scipy.integrate.solve_bvp: {name}")
    nodes, guess, *rest = real("integrate.solve_bvp", x, y, *([] if p is None else [p]))
    first = rest[0].reshape(-1) if rest else jnp.zeros(0, nodes.dtype)
    if nodes.ndim != 1 or nodes.size < 2 or guess.ndim != 2 or guess.shape[1] != nodes.size:
        raise ShapeError(f"functrans.scipy.integrate.solve_bvp: x has shape {nodes.shape}, y "
                         f"{guess.shape}.", where=user_source(),
                         why="x has m nodes, at least two, and y is (n, m).")
    known = lax.stop_gradient(nodes) if isinstance(nodes, Tracer) else nodes
    if not is_traced(known) and (np.diff(np.asarray(known)) <= 0).any():
        raise ArgumentError("functrans.scipy.integrate.solve_bvp: the nodes x do not rise.",
                            where=user_source(), fix="jnp.sort(x)")
    most = known_size("integrate.solve_bvp", "max_nodes", max_nodes, nodes.size)
    n, k, dtype = guess.shape[0], first.size, nodes.dtype
    singular = None if S is None else _term(S, n, dtype)
    start = nodes[0]

    def slope(x: Array, y: Array, p: Array) -> Array:
        found = jnp.asarray(fun(x[None], y[:, None], *([p] if k or rest else [])))
        if found.size != n:
            raise ShapeError(f"functrans.scipy.integrate.solve_bvp: fun returns shape "
                             f"{found.shape} at one node.", where=user_source(),
                             why=f"it returns (n, m), here ({n}, 1).")
        value = found.reshape(n).astype(dtype)
        if singular is not None:
            matrix, at_start = singular
            off = x - start
            inner = value + matmul(matrix, y) / jnp.where(off == 0, 1, off)
            value = jnp.where(off == 0, matmul(at_start, value), inner)
        return value

    def ends(a: Array, b: Array, p: Array) -> Array:
        found = jnp.asarray(bc(a, b, *([p] if k or rest else [])))
        if found.size != n + k:
            raise ShapeError(f"functrans.scipy.integrate.solve_bvp: bc returns shape "
                             f"{found.shape}.", where=user_source(),
                             why=f"there are {n} equations and {k} parameters.")
        return found.reshape(-1).astype(dtype)

    of_slope, c1 = closure_convert(slope, start, guess[:, 0], first)
    of_ends, c2 = closure_convert(ends, guess[:, 0], guess[:, -1], first)
    consts = (tuple(c1), tuple(c2))
    limit = float(tol) if float(tol) > 100 * float(finfo(dtype).eps) else \
        100 * float(finfo(dtype).eps)
    close = limit if bc_tol is None else float(bc_tol)
    # within jit each operation is staged, whether what it works on is known or not
    traced = is_traced(of_slope(start, guess[:, 0], first, *c1) + jnp.sum(nodes))
    begin = [lax.stop_gradient(v) for v in (nodes, guess.T, first)]

    def system_of(consts: Any) -> _Collocation:
        return _Collocation(lambda *a: of_slope(*a, *consts[0]), lambda *a: of_ends(*a, *consts[1]))

    def refined(consts: Any, capacity: int, mesh: _Mesh) -> _Mesh:
        system = system_of(consts)
        found: _Mesh = lax.while_loop(
            lambda m: ((m.niter == mesh.niter) | _unfinished(m, limit)) & (m.niter < 60),
            lambda m: _improved(system, m, limit, close, capacity), mesh)
        return found

    @custom_jvp
    def found(consts: Any) -> Any:
        capacity = most if traced else min(most, max(16, 2 * nodes.size))
        mesh = refined(consts, capacity, _padded(begin, capacity, nodes.size))
        while not traced and capacity < most and bool(mesh.short):
            capacity = min(most, 2 * capacity)
            count = int(mesh.nodes)
            mesh = refined(consts, capacity, _padded(
                [mesh.x[:count], mesh.y[:count], mesh.p], capacity, count, mesh.niter))
        # numbers and flags in the dtype of x: all of it has tangents, which are zero
        flags = jnp.stack([v.astype(dtype) for v in (mesh.nodes, *mesh[5:])])
        return mesh.y, mesh.p, mesh.x, mesh.rms, flags

    @found.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (consts,), (moves,) = primals, tangents
        y, p, x, *more = found(consts)
        _, pushed = jvp(lambda c: system_of(c).residuals(x, y, p), (consts,), (moves,))
        moved = solve_blocks(system_of(consts).blocks(x, y, p), *(-v for v in pushed))
        return (y, p, x, *more), (*moved, *map(jnp.zeros_like, (x, *more)))

    y_found, p_found, x_found, rms, flags = found(consts)
    rms, flags = lax.stop_gradient(rms), lax.stop_gradient(flags)
    mesh = _Mesh(x_found, y_found, p_found, flags[0].astype(jnp.int32), rms,
                 flags[1].astype(jnp.int32), *(f > 0 for f in flags[2:]))
    count = most if traced else int(mesh.nodes)
    at, values = mesh.x[:count], mesh.y[:count]
    slopes = vmap(slope, (0, 0, None))(at, values, mesh.p)
    lost = mesh.singular | ~jnp.all(jnp.isfinite(values))
    status = jnp.where(lost, 2, jnp.where(mesh.short | ~mesh.met | jnp.any(mesh.rms > limit), 1, 0))
    return BvpResult(MeshSolution(at, (values, slopes)), mesh.p.reshape(rest[0].shape) if rest
                     else None, at, values.T, slopes.T, mesh.rms[:count - 1], mesh.niter, status,
                     status == 0)


def _term(S: ArrayLike, n: int, dtype: Any) -> tuple[Array, Array]:
    (matrix,) = inexact(S)
    if matrix.shape != (n, n):
        raise ShapeError(f"functrans.scipy.integrate.solve_bvp: S has shape {matrix.shape}.",
                         where=user_source(), why=f"it is ({n}, {n}).")
    matrix = matrix.astype(dtype)
    return matrix, pinv(jnp.eye(n, dtype=dtype) - matrix)


def _padded(parts: Any, capacity: int, count: int, niter: Any = 0) -> _Mesh:
    x, y, p = parts
    extra = capacity - count
    x = jnp.concatenate([x, jnp.broadcast_to(x[-1], (extra,))])
    y = jnp.concatenate([y, jnp.broadcast_to(y[-1], (extra, y.shape[1]))])
    none = jnp.array(False)
    return _Mesh(x, y, p, jnp.array(count), jnp.zeros(capacity - 1, x.dtype), jnp.asarray(niter),
                 none, none, none)


def _unfinished(mesh: _Mesh, tol: float) -> Array:
    return ~mesh.singular & ~mesh.short & (jnp.any(mesh.rms > tol) | ~mesh.met)


def _hermite(x: Array, y: Array, slopes: Array, at: Array) -> tuple[Array, Array]:
    """Values and derivatives of the cubics at places."""
    last = x.size - 2
    i = jnp.clip(jnp.searchsorted(x, lax.stop_gradient(at), side="right") - 1, 0, last)
    # an interval without length is left for the one before it
    i = jnp.minimum(i, jnp.maximum(jnp.searchsorted(x, x[-1], side="left") - 1, 0))
    h = (x[i + 1] - x[i])[:, None]
    t = (at - x[i])[:, None] / h
    rise = (y[i + 1] - y[i]) / h
    f0, f1 = slopes[i], slopes[i + 1]
    bend, turn = 3 * rise - 2 * f0 - f1, f0 + f1 - 2 * rise
    return (y[i] + h * t * (f0 + t * (bend + t * turn)),
            f0 + t * (2 * bend + 3 * t * turn))


class _Collocation:
    """The equations of a mesh."""

    def __init__(self, slope: Callable[..., Array], ends: Callable[..., Array]) -> None:
        self.slope, self.ends = slope, ends

    def interval(self, x0: Array, x1: Array, y0: Array, y1: Array, p: Array
                 ) -> tuple[Array, Array]:
        """The residual of the rule of Lobatto, and the derivative in the middle."""
        h = x1 - x0
        f0, f1 = self.slope(x0, y0, p), self.slope(x1, y1, p)
        middle = (y0 + y1) / 2 - h / 8 * (f1 - f0)
        f = self.slope(x0 + h / 2, middle, p)
        return y1 - y0 - h / 6 * (f0 + f1 + 4 * f), f

    def residuals(self, x: Array, y: Array, p: Array) -> tuple[Array, Array]:
        """Of the intervals and of the ends."""
        return self._of(x, y, p)[0], self.ends(y[0], y[-1], p)

    def _of(self, x: Array, y: Array, p: Array) -> tuple[Array, Array]:
        found: tuple[Array, Array] = vmap(self.interval, (0, 0, 0, 0, None))(
            x[:-1], x[1:], y[:-1], y[1:], p)
        return found

    def relative(self, x: Array, y: Array, p: Array) -> tuple[Array, Array, Array]:
        """Residuals, those of the intervals in parts of what is small, and of the ends."""
        collocation, middle = self._of(x, y, p)
        h = (x[1:] - x[:-1])[:, None]
        small = jnp.abs(collocation) / (jnp.where(h > 0, h, 1) * (1 + jnp.abs(middle)))
        return collocation, small, self.ends(y[0], y[-1], p)

    def blocks(self, x: Array, y: Array, p: Array) -> Blocks:
        """The Jacobian."""
        def one(x0: Array, x1: Array, y0: Array, y1: Array) -> Any:
            return jacfwd(lambda *a: self.interval(x0, x1, *a)[0], argnums=(0, 1, 2))(y0, y1, p)

        left, right, of_p = vmap(one)(x[:-1], x[1:], y[:-1], y[1:])
        at_ends = jacfwd(self.ends, argnums=(0, 1, 2))(y[0], y[-1], p)
        return Blocks(left, right, of_p, *at_ends)

    def rms(self, x: Array, y: Array, p: Array) -> Array:
        """The root mean square of the relative residual of each interval."""
        slopes = vmap(self.slope, (0, 0, None))(x, y, p)
        h = x[1:] - x[:-1]
        middle = x[:-1] + h / 2
        collocation, f = self._of(x, y, p)
        width = jnp.where(h > 0, h, 1)[:, None]
        parts = [(32 / 45, 1.5 * collocation / width / (1 + jnp.abs(f)))]
        for side in (-1, 1):
            at = middle + side * _LOBATTO * h
            value, rate = _between(x, y, slopes, at)
            f = vmap(self.slope, (0, 0, None))(at, value, p)
            parts.append((49 / 90, (rate - f) / (1 + jnp.abs(f))))
        total = sum(w * jnp.sum(r * r, axis=1) for w, r in parts)
        return jnp.where(h > 0, jnp.sqrt(0.5 * jnp.where(h > 0, total, 0)), 0)


def _between(x: Array, y: Array, slopes: Array, at: Array) -> tuple[Array, Array]:
    """The cubics at one place of each interval."""
    h = (x[1:] - x[:-1])[:, None]
    h = jnp.where(h > 0, h, 1)
    t = (at - x[:-1])[:, None] / h
    rise = (y[1:] - y[:-1]) / h
    f0, f1 = slopes[:-1], slopes[1:]
    bend, turn = 3 * rise - 2 * f0 - f1, f0 + f1 - 2 * rise
    return (y[:-1] + h * t * (f0 + t * (bend + t * turn)), f0 + t * (2 * bend + 3 * t * turn))


def _newton(system: _Collocation, mesh: _Mesh, tol: float, close: float
            ) -> tuple[Array, Array, Array]:
    """Damped steps of Newton's method, which are judged by the length of the next one."""
    x = mesh.x
    goal = 2 / 3 * 5e-2 * tol

    def step(y: Array, p: Array) -> tuple[Array, Array]:
        collocation, at_ends = system.residuals(x, y, p)
        return solve_blocks(system.blocks(x, y, p), -collocation, -at_ends)

    def met(y: Array, p: Array) -> Array:
        _, small, at_ends = system.relative(x, y, p)
        return jnp.all(small <= goal) & jnp.all(jnp.abs(at_ends) <= close)

    def length(dy: Array, dp: Array) -> Array:
        return jnp.sum(dy * dy) + jnp.sum(dp * dp)

    def unfinished(s: Any) -> Any:
        y, p, dy, dp, count = s
        return ~met(y, p) & (count < _NEWTON) & jnp.isfinite(length(dy, dp))

    def improve(s: Any) -> Any:
        y, p, dy, dp, count = s
        cost = length(dy, dp)

        def too_long(t: Any) -> Any:
            part, _, _, dy2, dp2, tries = t
            after = length(dy2, dp2)
            return ~(after < (1 - 0.4 * part) * cost) & (tries < _TRIALS) & (cost > 0)

        def shorter(t: Any) -> Any:
            part, *_, tries = t
            return tried(part / 2, tries + 1)

        def tried(part: Any, tries: Any) -> Any:
            y2, p2 = y + part * dy, p + part * dp
            return (part, y2, p2, *step(y2, p2), tries)

        _, y2, p2, dy2, dp2, _ = lax.while_loop(too_long, shorter,
                                                tried(jnp.ones((), x.dtype), jnp.array(0)))
        return y2, p2, dy2, dp2, count + 1

    y, p, dy, dp, _ = lax.while_loop(unfinished, improve,
                                     (mesh.y, mesh.p, *step(mesh.y, mesh.p), jnp.array(0)))
    return y, p, ~jnp.isfinite(length(dy, dp))


def _improved(system: _Collocation, mesh: _Mesh, tol: float, close: float, capacity: int) -> _Mesh:
    """The solution on this mesh, and a finer mesh where it is needed."""
    y, p, singular = _newton(system, mesh, tol, close)
    x = mesh.x
    rms = system.rms(x, y, p)
    rms = jnp.where(jnp.isnan(rms), jnp.inf, rms)
    met = jnp.max(jnp.abs(system.ends(y[0], y[-1], p))) <= close
    more = jnp.where(rms > 100 * tol, 2, jnp.where(rms > tol, 1, 0))
    total = mesh.nodes + jnp.sum(more)
    short = total > capacity
    refine = ~singular & ~short & (jnp.sum(more) > 0)
    h, end = x[1:] - x[:-1], x[-1]
    one = jnp.where(more == 2, x[:-1] + h / 3, jnp.where(more == 1, x[:-1] + h / 2, end))
    two = jnp.where(more == 2, x[:-1] + 2 * h / 3, end)
    finer = jnp.sort(jnp.concatenate([x, one, two]))[:capacity]
    slopes = vmap(system.slope, (0, 0, None))(x, y, p)
    values, _ = _hermite(x, y, slopes, finer)
    return _Mesh(jnp.where(refine, finer, x), jnp.where(refine, values, y), p,
                 jnp.where(refine, total, mesh.nodes), rms, mesh.niter + 1, singular, short, met)
