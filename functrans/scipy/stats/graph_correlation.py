"""The multiscale graph correlation, of distances to the nearest points.

The scale of the largest correlation is found by the values: samples are known, and all is computed
on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, known_values
from functrans.scipy.ndimage import label
from functrans.scipy.spatial.distance import cdist
from functrans.scipy.stats.bounded import beta
from functrans.scipy.stats.methods import Rng, key_of
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["multiscale_graphcorr"]


class MGCResult(NamedTuple):
    """The correlation of the best scale, its p-value, and what else was found.

    `mgc_dict` has "mgc_map" (the correlation of each scale), "opt_scale" and "null_dist".
    """

    statistic: Array
    pvalue: Array
    mgc_dict: dict[str, Any]


def _euclidean(x: Array) -> Array:
    return cdist(x, x)


def _ranks(distances: np.ndarray) -> np.ndarray:
    """The rank of each distance in its column, from 0 on, equal ones alike."""
    columns = [np.unique(c, return_inverse=True)[1] for c in distances.T]
    return np.stack(columns, 1)


def _centred(distances: np.ndarray) -> np.ndarray:
    n = distances.shape[0]
    off: np.ndarray = distances - distances.sum(0) / (n - 1)
    np.fill_diagonal(off, 0)
    return off


def _covariances(a: np.ndarray, b: np.ndarray, at_a: np.ndarray, at_b: np.ndarray) -> np.ndarray:
    """The covariance of the pairs up to each rank of both."""
    rows, columns = at_a.max() + 1, at_b.max() + 1
    place = (at_a * columns + at_b).reshape(-1)
    sums = np.bincount(place, (a * b).reshape(-1), rows * columns).reshape(rows, columns)
    sums = np.cumsum(np.cumsum(sums, 0), 1)
    one = np.cumsum(np.bincount(at_a.reshape(-1), a.reshape(-1), rows))
    two = np.cumsum(np.bincount(at_b.reshape(-1), b.reshape(-1), columns))
    out: np.ndarray = sums - one[:, None] * two / a.shape[0] ** 2
    return out


def _variances(a: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.diagonal(_covariances(a, a.T, at, at.T)).copy()


class _Neighbours:
    """The distances of one sample, centred and ranked, and the variances of all ranks."""

    def __init__(self, distances: np.ndarray) -> None:
        self.off, self.ranks = _centred(distances), _ranks(distances)
        self.variances = _variances(self.off, self.ranks)


def _map(x: _Neighbours, off: np.ndarray, ranks: np.ndarray, variances: np.ndarray) -> np.ndarray:
    covariances = _covariances(x.off, off.T, x.ranks, ranks.T)
    bottom = np.sqrt(np.maximum(x.variances, 0)[:, None] * np.maximum(variances, 0))
    found = np.where(bottom > 0, covariances / np.where(bottom > 0, bottom, 1), 0)
    return np.minimum(found, 1)


@lru_cache(maxsize=16)
def _level(size: int) -> float:
    """The correlation that a scale of independent points is rarely above."""
    shape = (size - 1) * (size - 4) / 4 - 0.5
    return 2 * float(beta.ppf(np.float64(1 - 0.02 / (size - 1)), shape, shape)) - 1


def _best(found: np.ndarray, size: int) -> tuple[float, Any]:
    """The correlation of the best scale in the largest region of significant ones."""
    m, n = found.shape
    if m == 1 or n == 1:
        return float(found[-1, -1]), m * n
    region = found > max(_level(size), found[-1, -1])
    statistic, scale = float(found[-1, -1]), [m, n]
    if region.any():
        numbers = np.asarray(label(region)[0])
        counts = np.bincount(numbers.reshape(-1))[1:]
        region = numbers == np.argmax(counts) + 1
        if region.sum() >= math.ceil(0.02 * max(m, n)) * min(m, n):
            top = float(found[region].max())
            if top >= statistic:
                last = int(np.max(np.flatnonzero((found >= top) & region)))
                statistic, scale = top, [last // n + 1, last % n + 1]
    return statistic, scale


def _points(name: str, x: ArrayLike) -> np.ndarray:
    known = np.asarray(known_values("stats.multiscale_graphcorr", name, x, "the best scale depends "
                                    "on its values.", "call it outside of jit"), float)
    known = known[:, None] if known.ndim == 1 else known
    if known.ndim != 2 or known.shape[0] < 5 or not np.isfinite(known).all():
        raise ShapeError(f"scipy.stats.multiscale_graphcorr: {name} has shape {known.shape}.",
                         where=user_source(), why="it has five points or more along its first "
                         "axis, which are finite.")
    return known


def multiscale_graphcorr(x: ArrayLike, y: ArrayLike,
                         compute_distance: Callable[..., Any] | None = _euclidean,
                         reps: int = 1000, workers: int = 1, is_twosamp: bool = False,
                         random_state: Rng = None, *, rng: Rng = None) -> MGCResult:
    """Whether points (n, p) and (n, q) depend on each other, also by no line: MGC.

    The correlation of distances to the nearest k and l points, of the best k and l. Samples (n, p)
    and (m, p) are compared with each other, as those of one size with `is_twosamp`. Without
    `compute_distance` x and y are distances. The p-value is that of `reps` permutations, drawn by
    `rng`, a key or an int (or `random_state`). `workers` is 1.
    Source: Vogelstein et al., Discovering and Deciphering Relationships across Disparate Data
    Modalities (2019).

    >>> import numpy as np, functrans as ft
    >>> x = np.linspace(0.0, 1.0, 20)
    >>> found = ft.scipy.stats.multiscale_graphcorr(x, (x - 0.5) ** 2, reps=50)
    >>> bool(found.statistic > 0.3), bool(found.pvalue < 0.05)
    (True, True)
    """
    count = known_size("stats.multiscale_graphcorr", "reps", reps, 0)
    a, b = _points("x", x), _points("y", y)
    if a.shape[0] != b.shape[0] and a.shape[1] == b.shape[1]:
        is_twosamp = True
    elif a.shape[0] != b.shape[0]:
        raise ShapeError(f"scipy.stats.multiscale_graphcorr: x has shape {a.shape}, y {b.shape}.",
                         where=user_source(), why="they have as many points, or as many columns.")
    if is_twosamp:
        if compute_distance is None:
            raise ArgumentError("scipy.stats.multiscale_graphcorr: two samples are compared, and "
                                "compute_distance is None.", where=user_source(),
                                why="the distances between the samples are needed.")
        a, b = np.concatenate([a, b]), np.repeat([0.0, 1.0], [len(a), len(b)])[:, None]
    if compute_distance is not None:
        a, b = (np.asarray(compute_distance(jnp.asarray(v)), float) for v in (a, b))
    one, two = _Neighbours(a), _Neighbours(b)
    size = a.shape[0]
    found = _map(one, two.off, two.ranks, two.variances)
    statistic, scale = _best(found, size)
    keys = random.split(key_of("multiscale_graphcorr", random_state if rng is None else rng),
                        max(count, 1))
    null = []
    for order in np.asarray(vmap(lambda key: random.permutation(key, size))(keys))[:count]:
        index = np.ix_(order, order)
        # sums over all pairs are those of the sample that is not permuted
        null.append(_best(_map(one, two.off[index], two.ranks[index], two.variances), size)[0])
    p = (1 + sum(v >= statistic for v in null)) / (1 + count)
    return MGCResult(jnp.asarray(statistic), jnp.asarray(p), {
        "mgc_map": jnp.asarray(found), "opt_scale": scale, "null_dist": jnp.asarray(null)})


publish(globals(), __all__)
