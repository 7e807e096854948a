"""shgo: minima from all points of a sample that are lower than their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import known_size, known_values, refused
from functrans.scipy.named_result import OptimizeResult
from functrans.scipy.optimize.constraints import sides_of
from functrans.scipy.optimize.global_minima import box_of
from functrans.scipy.optimize.implicit import Function, option, scalar_value, with_args
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.spatial.simplices import delaunay
from functrans.transforms.vmap import vmap
from functrans.typing import Array

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
_LOST = 1e-6  # how far a point may miss its constraints
Table = np.ndarray[Any, Any]


def shgo(func: Function, bounds: Any, args: tuple[Any, ...] = (), constraints: Any = None,
         n: int = 100, iters: int = 1, callback: None = None,
         minimizer_kwargs: Mapping[str, Any] | None = None,
         options: Mapping[str, Any] | None = None,
         sampling_method: str | Callable[[int, int], Any] = "simplicial", *, workers: int = 1
         ) -> OptimizeResult:
    """All minima of `func(x, *args)` in a box, and the lowest of them, under constraints.

    n * iters points are sampled: "simplicial" ones on a grid whose cubes are cut into simplices,
    of "halton" those of Halton's sequence, or of a function `(n, dims) -> (n, dims)` those it gives
    in the unit box, with Delaunay's simplices. From each that is lower than its neighbours
    `minimize` is started, within the bounds and constraints, with `minimizer_kwargs`: `xl` are the
    minima it finds and `funl` their values, the lowest first.

    Under `jit` and `vmap` there are `options={"size": ...}` starts, the lowest ones (16 by default,
    and as many as there are where values are known); rows of `xl` without a start are NaN.
    x is differentiated as the minimum it is. Raises ArgumentError for unknown options.
    Source: Endres, Sandrock and Focke, J. Global Optim. 72 (2018).

    >>> import functrans as ft
    >>> f = lambda x: ((x ** 2 - 1) ** 2).sum() + 0.1 * x.sum()
    >>> found = ft.scipy.optimize.shgo(f, [(-2.0, 2.0), (-2.0, 2.0)])
    >>> print(found.x.round(2), found.xl.shape)
    [-1.01 -1.01] (4, 2)
    """
    if callback is not None:
        raise refused("optimize.shgo", "callback", "all minima are sought at once.",
                      "functrans.debug.callback within func")
    of_args = with_args("shgo", func, args)
    known = option("shgo", dict(options or {}), {
        "size": None, "jac": None, "hess": None, "local_iter": False, "symmetry": None,
        "infty_constraints": True, "minimize_every_iter": True})
    lower, upper = box_of("shgo", bounds)
    d = lower.size
    count = known_size("optimize.shgo", "n", n) * known_size("optimize.shgo", "iters", iters)
    unit, neighbors = _sampled(sampling_method, count, d)
    points = lower + (upper - lower) * jnp.asarray(unit).astype(lower.dtype)
    if constraints is None:
        constraints = ()

    def height(x: Array) -> Array:
        found = scalar_value("shgo", of_args, x)
        lost = _missed(constraints, x)
        return jnp.where((lost > _LOST) | jnp.isnan(found), math.inf, found)

    heights = lax.stop_gradient(vmap(height)(points))
    around = jnp.where(jnp.asarray(neighbors) >= 0, heights[neighbors], math.inf)
    low = jnp.isfinite(heights) & jnp.all(heights[:, None] <= around, axis=1)
    low = low | ((jnp.arange(len(unit)) == jnp.argmin(heights)) & jnp.isfinite(heights))
    # where nothing is feasible, the search begins at the middle of the box
    low = jnp.where(jnp.any(low), low, jnp.arange(len(unit)) == len(unit) // 2)
    order = jnp.argsort(jnp.where(low, heights, math.inf), stable=True)
    order = order[jnp.argsort(~low[order], stable=True)]
    size = known["size"]
    if size is None:
        size = 16 if is_traced(low) else int(jnp.sum(low))
    size = min(known_size("optimize.shgo", "options['size']", size), len(unit))
    starts, used = points[order[:size]], low[order[:size]]
    how = {"method": "SLSQP", **dict(minimizer_kwargs or {})}
    how.pop("args", None)
    more = {"constraints": constraints} if not _is_empty(constraints) else {}

    def local(x: Array) -> Any:
        return minimize(of_args, x, bounds=(lower, upper), **{**more, **how})

    ends = vmap(local)(starts)
    missed = vmap(lambda x: _missed(constraints, x))(ends.x)
    good = used & jnp.isfinite(ends.fun) & (missed <= 1e-4)
    rank = jnp.argsort(lax.stop_gradient(jnp.where(good, ends.fun, math.inf)), stable=True)
    kept = good[rank]
    xl = jnp.where(kept[:, None], ends.x[rank], math.nan)
    funl = jnp.where(kept, ends.fun[rank], math.nan)
    if not is_traced(kept):
        found = max(int(jnp.sum(kept)), 1)
        xl, funl = xl[:found], funl[:found]
    spent = jnp.sum(jnp.where(used, ends.nfev, 0))
    return OptimizeResult(x=xl[0], fun=funl[0], xl=xl, funl=funl, success=kept[0],
                          nfev=spent + len(unit), nlfev=spent,
                          nljev=jnp.sum(jnp.where(used, ends.njev, 0)), nit=iters)


def _is_empty(constraints: Any) -> bool:
    return isinstance(constraints, (list, tuple)) and not hasattr(
        constraints, "_fields") and not constraints


def _missed(constraints: Any, x: Array) -> Array:
    """How far the constraints are from being met."""
    if _is_empty(constraints):
        return jnp.zeros((), x.dtype)
    sides = sides_of(constraints, x, x.shape)
    return jnp.maximum(jnp.max(jnp.abs(sides.equal(x)), initial=0),
                       jnp.max(-sides.above(x), initial=0))


def _sampled(how: Any, count: int, d: int) -> tuple[Table, Table]:
    """Points of the unit box, and the numbers of each one's neighbours, -1 where there is none."""
    if how == "simplicial":
        return _grid(count, d)
    if how == "halton":
        unit = halton(count, d)
    elif callable(how):
        unit = known_values("optimize.shgo", "the sample", how(count, d),
                            "its neighbours are sought outside of jit.", "a NumPy array"
                            ).astype(float)
        if unit.ndim != 2 or unit.shape[1] != d:
            raise ShapeError(f"functrans.scipy.optimize.shgo: sampling_method returned shape "
                             f"{unit.shape}.", where=user_source(), why=f"it is (n, {d}).")
    else:
        raise ArgumentError(f"functrans.scipy.optimize.shgo: sampling_method is {how!r}.",
                            where=user_source(),
                            fix="'simplicial', 'halton', or a function (n, dims) -> points in "
                                "[0, 1], (n, dims)")
    if d == 1:
        order = np.argsort(unit[:, 0])
        neighbors = np.full((len(unit), 2), -1)
        neighbors[order[1:], 0], neighbors[order[:-1], 1] = order[:-1], order[1:]
        return unit, neighbors
    if len(unit) < d + 2:
        raise ArgumentError(f"functrans.scipy.optimize.shgo: there are {len(unit)} points.",
                            where=user_source(), why=f"a simplex has {d + 1}.", fix="a larger n")
    pairs = set()
    for simplex in delaunay(unit):
        pairs |= {(i, j) for i, j in product(simplex.tolist(), repeat=2) if i != j}
    return unit, _table(sorted(pairs), len(unit))


def _table(pairs: Sequence[tuple[int, int]], n: int) -> Table:
    lists: list[list[int]] = [[] for _ in range(n)]
    for i, j in pairs:
        lists[i].append(j)
    width = max(map(len, lists))
    return np.array([found + [-1] * (width - len(found)) for found in lists])


def _grid(count: int, d: int) -> tuple[Table, Table]:
    """A grid of at least `count` points, and its neighbours in Kuhn's simplices of each cube."""
    if 3**d > 200_000:
        raise ArgumentError(f"functrans.scipy.optimize.shgo: a grid in {d} dimensions.",
                            where=user_source(), why=f"it has at least {3**d:,} points.",
                            fix="sampling_method=function, or differential_evolution")
    side = 3
    while side**d < count:
        side += 1
    places = np.stack(np.meshgrid(*[np.arange(side)] * d, indexing="ij"), -1).reshape(-1, d)
    moves = np.array([m for m in product((0, 1), repeat=d) if any(m)])
    weights = side ** np.arange(d)[::-1]
    neighbors = []
    for move in np.concatenate([moves, -moves]):
        there = places + move
        inside = ((there >= 0) & (there < side)).all(axis=1)
        neighbors.append(np.where(inside, there @ weights, -1))
    return places / (side - 1), np.stack(neighbors, axis=1)


def halton(count: int, d: int) -> Table:
    """The points of Halton's sequence after the first: digits in prime bases, mirrored."""
    if d > len(_PRIMES):
        raise ArgumentError(f"functrans.scipy.optimize.shgo: {d} dimensions of Halton's sequence.",
                            where=user_source(), why=f"there are {len(_PRIMES)} primes.")
    found = np.zeros((count, d))
    for k, base in enumerate(_PRIMES[:d]):
        left, factor = np.arange(1, count + 1), 1 / base
        while left.any():
            found[:, k] += factor * (left % base)
            left, factor = left // base, factor / base
    return found
