"""How evenly points fill the unit cube."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, one_of, real
from functrans.scipy.spatial.distance import cdist
from functrans.typing import Array, ArrayLike

__all__ = ["discrepancy", "geometric_discrepancy", "scale", "update_discrepancy"]


def _points(name: str, sample: ArrayLike) -> Array:
    (x,) = real(f"stats.qmc.{name}", sample)
    if x.ndim != 2:
        raise ShapeError(f"scipy.stats.qmc.{name}: the sample has shape {x.shape}.",
                         where=user_source(), why="it is (points, dimensions).")
    _check_inside(name, x)
    return x


def _check_inside(name: str, x: Array) -> None:
    still = lax.stop_gradient(x)
    if not is_traced(still) and bool(np.any(np.asarray((still < 0) | (still > 1)))):
        raise ArgumentError(f"scipy.stats.qmc.{name}: points are outside of the unit cube.",
                            where=user_source(), fix="scale(sample, low, high, reverse=True)")


def scale(sample: ArrayLike, l_bounds: ArrayLike, u_bounds: ArrayLike, *, reverse: bool = False
          ) -> Array:
    """Points of the unit cube in the box between bounds; those of the box in the cube, `reverse`.

    >>> from functrans.scipy.stats import qmc
    >>> qmc.scale([[0.5, 0.25]], [0, 10], [2, 30]).tolist()
    [[1.0, 15.0]]
    """
    x, low, high = inexact(sample, l_bounds, u_bounds)
    if x.ndim != 2:
        raise ShapeError(f"scipy.stats.qmc.scale: the sample has shape {x.shape}.",
                         where=user_source(), why="it is (points, dimensions).")
    try:
        np.broadcast_shapes(low.shape, (x.shape[1],))
        np.broadcast_shapes(high.shape, (x.shape[1],))
    except ValueError:
        raise ShapeError(f"scipy.stats.qmc.scale: the bounds have shapes {low.shape} and "
                         f"{high.shape}, the points {x.shape[1]} dimensions.",
                         where=user_source()) from None
    gap = lax.stop_gradient(high - low)
    if not is_traced(gap) and bool(np.any(np.asarray(gap) <= 0)):
        raise ArgumentError("scipy.stats.qmc.scale: a lower bound is not below the upper one.",
                            where=user_source())
    if not reverse:
        _check_inside("scale", x)
        return x * (high - low) + low
    still = lax.stop_gradient((x < low) | (x > high))
    if not is_traced(still) and bool(np.any(np.asarray(still))):
        raise ArgumentError("scipy.stats.qmc.scale: points are outside of the bounds.",
                            where=user_source())
    return (x - low) / (high - low)


def discrepancy(sample: ArrayLike, *, iterative: bool = False, method: str = "CD",
                workers: int = 1) -> Array:
    """How far the shares of points in boxes are from their volumes: 0 is even.

    `method` is "CD" (centered), "WD" (wrapped around), "MD" (a mixture of both) or "L2-star".
    `iterative` is for `update_discrepancy`. It has derivatives in the points; `workers` changes
    nothing. Source: Fang, Li and Sudjianto, Design and Modeling for Computer Experiments (2006);
    Warnock (1972).

    >>> from functrans.scipy.stats import qmc
    >>> round(float(qmc.discrepancy([[0.25, 0.25], [0.75, 0.75]])), 5)
    0.06228
    """
    one_of("stats.qmc.discrepancy", "method", method, ("CD", "WD", "MD", "L2-star"))
    x = _points("discrepancy", sample)
    n, d = x.shape
    n = n + 1 if iterative else n
    a, b = x[:, None], x[None]
    off, apart = jnp.abs(x - 0.5), jnp.abs(a - b)
    if method == "CD":
        one = jnp.prod(1 + 0.5 * off - 0.5 * off**2, -1)
        return (13 / 12) ** d - 2 / n * jnp.sum(one) + jnp.sum(_centred(x, x)) / n**2
    if method == "WD":
        return -(4 / 3) ** d + jnp.sum(jnp.prod(1.5 - apart + apart**2, -1)) / n**2
    if method == "MD":
        one = jnp.prod(5 / 3 - 0.25 * off - 0.25 * off**2, -1)
        two = jnp.prod(1.875 - 0.25 * off[:, None] - 0.25 * off[None] - 0.75 * apart
                       + 0.5 * apart**2, -1)
        return (19 / 12) ** d - 2 / n * jnp.sum(one) + jnp.sum(two) / n**2
    one = jnp.prod(1 - x**2, -1)
    two = jnp.prod(1 - jnp.maximum(a, b), -1)
    return jnp.sqrt(3.0**-d - 2 ** (1 - d) / n * jnp.sum(one) + jnp.sum(two) / n**2)


def _centred(x: Array, y: Array) -> Array:
    """The terms of pairs of the centered discrepancy, (points of x, points of y)."""
    off, other = jnp.abs(x - 0.5)[:, None], jnp.abs(y - 0.5)[None]
    return jnp.prod(1 + 0.5 * off + 0.5 * other - 0.5 * jnp.abs(x[:, None] - y[None]), -1)


def update_discrepancy(x_new: ArrayLike, sample: ArrayLike, initial_disc: ArrayLike) -> Array:
    """The centered discrepancy with one more point, from that with `iterative`.

    >>> from functrans.scipy.stats import qmc
    >>> first = qmc.discrepancy([[0.25, 0.25]], iterative=True)
    >>> round(float(qmc.update_discrepancy([0.75, 0.75], [[0.25, 0.25]], first)), 5)
    0.06228
    """
    x = _points("update_discrepancy", sample)
    new, before = inexact(x_new, initial_disc)
    if new.shape != x.shape[1:] or before.ndim:
        raise ShapeError(f"scipy.stats.qmc.update_discrepancy: x_new has shape {new.shape}, "
                         f"initial_disc {before.shape}, the points {x.shape[1]} dimensions.",
                         where=user_source())
    _check_inside("update_discrepancy", new)
    n = x.shape[0] + 1
    off = jnp.abs(new - 0.5)
    one = jnp.prod(1 + 0.5 * off - 0.5 * off**2)
    return before - 2 / n * one + (2 * jnp.sum(_centred(x, new[None])) + jnp.prod(1 + off)) / n**2


def geometric_discrepancy(sample: ArrayLike, method: str = "mindist", metric: str = "euclidean"
                          ) -> Array:
    """The least distance of two points ("mindist"), or the mean edge of their least tree ("mst").

    The larger, the more even. `metric` is that of `spatial.distance.cdist`.
    Source: Franco, Vasseur, Corre and Sergent (2009), minimum spanning trees.

    >>> from functrans.scipy.stats import qmc
    >>> float(qmc.geometric_discrepancy([[0.0, 0.0], [0.0, 1.0], [0.5, 1.0]]))
    0.5
    """
    one_of("stats.qmc.geometric_discrepancy", "method", method, ("mindist", "mst"))
    x = _points("geometric_discrepancy", sample)
    n = x.shape[0]
    if n < 2:
        raise ShapeError(f"scipy.stats.qmc.geometric_discrepancy: there are {n} points.",
                         where=user_source(), why="two or more have a distance.")
    apart = cdist(x, x, metric)
    if method == "mindist":
        rows, columns = np.triu_indices(n, 1)
        return jnp.min(apart[rows, columns])

    def grow(_: Array, state: Any) -> Any:
        total, near, inside = state
        nearest = jnp.argmin(jnp.where(inside, jnp.inf, near))
        return total + near[nearest], jnp.minimum(near, apart[nearest]), \
            inside.at[nearest].set(True)

    start = jnp.zeros((), apart.dtype), apart[0], jnp.arange(n) == 0
    found: Array = lax.fori_loop(0, n - 1, grow, start)[0]
    return found / (n - 1)


def exchanged(key: Array, x: Array, steps: int = 10_000, patience: int = 100) -> Array:
    """Points after exchanges of coordinates between two of them that lower the discrepancy.

    Ends after `patience` exchanges that did not; each costs one pass over the points.
    """
    n, d = x.shape

    def unfinished(state: Any) -> Array:
        _, _, step, unchanged = state
        going: Array = (step < steps) & (unchanged < patience)
        return going

    def attempt(state: Any) -> Any:
        x, total, step, unchanged = state
        keys = random.split(random.fold_in(key, step), 2)
        column = random.randint(keys[0], (), 0, d)
        pair = random.choice(keys[1], n, (2,), replace=False)
        new = x.at[pair, column].set(x[pair[::-1], column])
        changed = _of_pair(new, pair) - _of_pair(x, pair)
        better = changed < 0
        return (jnp.where(better, new, x), jnp.where(better, total + changed, total), step + 1,
                jnp.where(better, 0, unchanged + 1))

    def _of_pair(x: Array, pair: Array) -> Array:
        """What depends on the coordinates of two points in the discrepancy."""
        own = x[pair]
        off = jnp.abs(own - 0.5)
        one = jnp.prod(1 + 0.5 * off - 0.5 * off**2, -1)
        # pairs of both are in both rows
        with_all = 2 * jnp.sum(_centred(own, x)) - jnp.sum(_centred(own, own))
        return -2 / n * jnp.sum(one) + with_all / n**2

    start = x, jnp.zeros((), x.dtype), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    out: Array = lax.while_loop(unfinished, attempt, start)[0]
    return out


publish(globals(), __all__)
