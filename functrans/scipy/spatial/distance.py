"""Distances between vectors: of two, of all pairs of two sets, and of all pairs within one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, of_rank, real
from functrans.scipy.products import matmul, vdot
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine",
           "dice", "directed_hausdorff", "euclidean", "hamming", "is_valid_dm", "is_valid_y",
           "jaccard", "jensenshannon", "mahalanobis", "minkowski", "num_obs_dm", "num_obs_y",
           "pdist", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean",
           "squareform", "yule"]


def _root(x: Array) -> Array:
    """The root, whose derivative at 0 is 0: that of a distance where there is none."""
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 where both are 0."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _pair(name: str, u: ArrayLike, v: ArrayLike, *more: Any) -> list[Array]:
    found = real(f"spatial.distance.{name}", u, v, *more)
    for x in found[:2]:
        of_rank(f"spatial.distance.{name}", "a point", x, 1)
    if found[0].shape != found[1].shape:
        raise ShapeError(f"functrans.scipy.spatial.distance.{name}: the points have shapes "
                         f"{found[0].shape} and {found[1].shape}.", where=user_source())
    return found


def _weights(like: Array, w: ArrayLike | None) -> Array:
    return jnp.ones_like(like) if w is None else inexact(w)[0].astype(like.dtype)


def sqeuclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """sum w (u - v)**2.

    >>> float(sqeuclidean([0.0, 3.0], [4.0, 0.0]))
    25.0
    """
    x, y = _pair("sqeuclidean", u, v)
    return jnp.sum(_weights(x, w) * (x - y) ** 2)


def euclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """The root of sum w (u - v)**2; its derivative between equal points is 0.

    >>> float(euclidean([0.0, 3.0], [4.0, 0.0]))
    5.0
    """
    return _root(sqeuclidean(u, v, w))


def seuclidean(u: ArrayLike, v: ArrayLike, V: ArrayLike) -> Array:
    """The Euclidean distance with variances V of the components.

    >>> float(seuclidean([0.0, 3.0], [4.0, 0.0], [1.0, 1.0]))
    5.0
    """
    x, y, variances = _pair("seuclidean", u, v, V)
    return _root(jnp.sum((x - y) ** 2 / variances))


def mahalanobis(u: ArrayLike, v: ArrayLike, VI: ArrayLike) -> Array:
    """The root of (u - v) VI (u - v), with the inverse VI of a covariance.

    >>> float(mahalanobis([0.0, 3.0], [4.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]))
    5.0
    """
    x, y, inverse = _pair("mahalanobis", u, v, VI)
    return _root(vdot(matmul(x - y, inverse), x - y))


def cityblock(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """sum w |u - v|.

    >>> float(cityblock([0.0, 3.0], [4.0, 0.0]))
    7.0
    """
    x, y = _pair("cityblock", u, v)
    return jnp.sum(_weights(x, w) * jnp.abs(x - y))


def chebyshev(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """The largest |u - v|, among those with a weight above 0.

    >>> float(chebyshev([0.0, 3.0], [4.0, 0.0]))
    4.0
    """
    x, y = _pair("chebyshev", u, v)
    return jnp.max(jnp.where(_weights(x, w) > 0, jnp.abs(x - y), 0))


def minkowski(u: ArrayLike, v: ArrayLike, p: ArrayLike = 2, w: ArrayLike | None = None) -> Array:
    """(sum w |u - v|**p)**(1 / p).

    >>> float(minkowski([0.0, 3.0], [4.0, 0.0], 1))
    7.0
    """
    x, y, order = _pair("minkowski", u, v, p)
    if isinstance(p, (int, float)) and np.isinf(p):
        return chebyshev(x, y, w)
    distance = jnp.abs(x - y)
    some = distance > 0
    total = jnp.sum(_weights(x, w) * jnp.where(some, jnp.where(some, distance, 1) ** order, 0))
    return jnp.where(total > 0, jnp.where(total > 0, total, 1) ** (1 / order), 0)


def correlation(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None, centered: bool = True
                ) -> Array:
    """1 less the correlation of the components of u and v.

    >>> float(correlation([0.0, 1.0, 2.0], [0.0, 2.0, 4.0]).round(4))
    0.0
    """
    x, y = _pair("correlation", u, v)
    weights = _weights(x, w)
    weights = weights / jnp.sum(weights)
    if centered:
        x, y = x - jnp.sum(weights * x), y - jnp.sum(weights * y)
    norms = jnp.sqrt(jnp.sum(weights * x * x) * jnp.sum(weights * y * y))
    return jnp.clip(1 - jnp.sum(weights * x * y) / norms, 0, 2)


def cosine(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """1 less the cosine of the angle between u and v.

    >>> float(cosine([1.0, 0.0], [0.0, 1.0]))
    1.0
    """
    return correlation(u, v, w, centered=False)


def hamming(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """The share of components that differ.

    >>> float(hamming([1.0, 0.0], [0.0, 0.0]))
    0.5
    """
    x, y = _pair("hamming", u, v)
    weights = _weights(x, w)
    return jnp.sum(weights * (x != y)) / jnp.sum(weights)


def jaccard(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Of the components that are not 0 in both, the share of those that are 0 in one.

    >>> float(jaccard([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]))
    0.5
    """
    x, y = _pair("jaccard", u, v)
    weights = _weights(x, w)
    some = (x != 0) | (y != 0)
    return _ratio(jnp.sum(weights * ((x != 0) != (y != 0))), jnp.sum(weights * some))


def _counts(name: str, u: ArrayLike, v: ArrayLike, w: ArrayLike | None) -> tuple[Array, ...]:
    """The weights where both are not 0, the first alone, the second alone, and neither."""
    x, y = _pair(name, u, v)
    weights, a, b = _weights(x, w), x != 0, y != 0
    return tuple(jnp.sum(weights * which) for which in (a & b, a & ~b, ~a & b, ~a & ~b))


def dice(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """(tf + ft) / (2 tt + tf + ft), where tf counts components that are 0 in v alone.

    >>> round(float(dice([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])), 4)
    0.3333
    """
    both, first, second, _ = _counts("dice", u, v, w)
    return (first + second) / (2 * both + first + second)


def rogerstanimoto(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """2 (tf + ft) / (tt + ff + 2 (tf + ft)); see `dice`.

    >>> float(rogerstanimoto([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]))
    0.5
    """
    both, first, second, none = _counts("rogerstanimoto", u, v, w)
    off = 2 * (first + second)
    return off / (both + none + off)


def russellrao(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """The share of components that are 0 in u or v.

    >>> round(float(russellrao([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])), 4)
    0.6667
    """
    both, *others = _counts("russellrao", u, v, w)
    return (others[0] + others[1] + others[2]) / (both + others[0] + others[1] + others[2])


def sokalsneath(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """2 (tf + ft) / (tt + 2 (tf + ft)); see `dice`.

    >>> round(float(sokalsneath([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])), 4)
    0.6667
    """
    both, first, second, _ = _counts("sokalsneath", u, v, w)
    off = 2 * (first + second)
    return off / (both + off)


def yule(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """2 tf ft / (tt ff + tf ft), and 0 where tf ft is; see `dice`.

    >>> float(yule([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]))
    1.0
    """
    both, first, second, none = _counts("yule", u, v, w)
    half = first * second
    return _ratio(2 * half, both * none + half)


def canberra(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """sum w |u - v| / (|u| + |v|), where 0 / 0 is 0.

    >>> float(canberra([1.0, 0.0], [3.0, 0.0]))
    0.5
    """
    x, y = _pair("canberra", u, v)
    return jnp.sum(_weights(x, w) * _ratio(jnp.abs(x - y), jnp.abs(x) + jnp.abs(y)))


def braycurtis(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """sum w |u - v| / sum w |u + v|.

    >>> float(braycurtis([1.0, 0.0], [3.0, 0.0]))
    0.5
    """
    x, y = _pair("braycurtis", u, v)
    weights = _weights(x, w)
    return jnp.sum(weights * jnp.abs(x - y)) / jnp.sum(weights * jnp.abs(x + y))


def jensenshannon(p: ArrayLike, q: ArrayLike, base: ArrayLike | None = None, *, axis: int = 0,
                  keepdims: bool = False) -> Array:
    """The root of the divergence of Jensen and Shannon of two distributions.

    >>> float(jensenshannon([1.0, 0.0], [0.0, 1.0], 2.0))
    1.0
    """
    x, y = real("spatial.distance.jensenshannon", p, q)
    x, y = (v / jnp.sum(v, axis=axis, keepdims=True) for v in (x, y))
    m = (x + y) / 2

    def divergence(a: Array) -> Array:
        some = a > 0
        return jnp.where(some, a * jnp.log(jnp.where(some, a, 1) / jnp.where(some, m, 1)), 0)

    total = jnp.sum(divergence(x) + divergence(y), axis=axis, keepdims=keepdims) / 2
    return _root(total if base is None else total / jnp.log(base))


_METRICS: Final[Mapping[str, Callable[..., Array]]] = MappingProxyType({
    "braycurtis": braycurtis, "canberra": canberra, "chebyshev": chebyshev,
    "cityblock": cityblock, "correlation": correlation, "cosine": cosine, "dice": dice,
    "euclidean": euclidean,
    "hamming": hamming, "jaccard": jaccard, "jensenshannon": jensenshannon,
    "mahalanobis": mahalanobis, "minkowski": minkowski, "rogerstanimoto": rogerstanimoto,
    "russellrao": russellrao, "seuclidean": seuclidean,
    "sokalsneath": sokalsneath, "sqeuclidean": sqeuclidean, "yule": yule})


def _metric(name: str, metric: str | Callable[..., Any], xa: Array, xb: Array,
            options: dict[str, Any]) -> Callable[[Array, Array], Array]:
    if callable(metric):
        given = metric
        return lambda u, v: jnp.asarray(given(u, v, **options)).astype(xa.dtype)
    if metric not in _METRICS:
        raise ArgumentError(f"functrans.scipy.spatial.distance.{name}: there is no metric "
                            f"{shown(metric)}.", where=user_source(), fix=", ".join(_METRICS))
    both = xa if xb is xa else jnp.concatenate([xa, xb])
    if metric == "seuclidean" and "V" not in options:
        options = {**options, "V": jnp.var(both, axis=0, ddof=1)}
    if metric == "mahalanobis" and "VI" not in options:
        options = {**options, "VI": jnp.linalg.inv(jnp.atleast_2d(jnp.cov(both.T))).T}
    return lambda u, v: _METRICS[metric](u, v, **options)


def cdist(XA: ArrayLike, XB: ArrayLike, metric: str | Callable[..., Any] = "euclidean", *,
          out: None = None, **kwargs: Any) -> Array:
    """The distances of all rows of XA from all rows of XB, as a matrix.

    `metric` is a name of this module, or a function of two rows; `kwargs` are its options.

    >>> cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [[5.0, 1.0]]
    """
    if out is not None:
        raise ArgumentError("functrans.scipy.spatial.distance.cdist does not take out.",
                            where=user_source(), why="arrays are immutable.")
    xa, xb = real("spatial.distance.cdist", XA, XB)
    for name, x in (("XA", xa), ("XB", xb)):
        of_rank("spatial.distance.cdist", name, x, 2)
    if xa.shape[1] != xb.shape[1]:
        raise ShapeError(f"functrans.scipy.spatial.distance.cdist: XA has shape {xa.shape}, XB "
                         f"{xb.shape}.", where=user_source(), why="rows have one size.")
    of = _metric("cdist", metric, xa, xb, kwargs)
    return vmap(lambda u: vmap(lambda v: of(u, v))(xb))(xa)


def pdist(X: ArrayLike, metric: str | Callable[..., Any] = "euclidean", *, out: None = None,
          **kwargs: Any) -> Array:
    """The distances of all pairs of rows of X, in the order of the upper triangle of their matrix.

    >>> print(pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]).round(4))
    [5.     1.     4.2426]
    """
    if out is not None:
        raise ArgumentError("functrans.scipy.spatial.distance.pdist does not take out.",
                            where=user_source(), why="arrays are immutable.")
    (x,) = real("spatial.distance.pdist", X)
    of_rank("spatial.distance.pdist", "X", x, 2)
    of = _metric("pdist", metric, x, x, kwargs)
    rows, columns = np.triu_indices(x.shape[0], 1)
    if not len(rows):
        return jnp.zeros(0, x.dtype)
    return vmap(of)(x[rows], x[columns])


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """The symmetric matrix of the distances of pairs, or the distances of such a matrix.

    >>> squareform([1.0, 2.0, 3.0]).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    """
    x = jnp.asarray(X)
    if x.ndim == 2 and force.lower() not in ("tomatrix",):
        if x.shape[0] != x.shape[1]:
            raise ShapeError(f"functrans.scipy.spatial.distance.squareform: X has shape {x.shape}.",
                             where=user_source(), why="it is square.")
        return x[np.triu_indices(x.shape[0], 1)]
    if x.ndim != 1 or force.lower() == "tovector":
        raise ShapeError(f"functrans.scipy.spatial.distance.squareform: X has shape {x.shape}.",
                         where=user_source())
    n = int(np.ceil(np.sqrt(2 * x.shape[0]))) if x.shape[0] else 1
    if n * (n - 1) // 2 != x.shape[0]:
        raise ShapeError(f"functrans.scipy.spatial.distance.squareform: X has {x.shape[0]} "
                         "distances.", where=user_source(), why="n points have n (n - 1) / 2.")
    rows, columns = np.triu_indices(n, 1)
    out = jnp.zeros((n, n), x.dtype)
    return out.at[rows, columns].set(x).at[columns, rows].set(x)


def directed_hausdorff(u: ArrayLike, v: ArrayLike, seed: Any = None) -> tuple[Array, Array, Array]:
    """The largest distance of a row of u from its nearest row of v, and the numbers of both rows.

    >>> d, i, j = directed_hausdorff([[0.0, 0.0], [3.0, 4.0]], [[0.0, 0.0]])
    >>> float(d), int(i), int(j)
    (5.0, 1, 0)
    """
    table = cdist(u, v, "sqeuclidean")
    near = jnp.argmin(table, axis=1)
    nearest = jnp.min(table, axis=1)
    i = jnp.argmax(nearest)
    return _root(nearest[i]), i, near[i]


def num_obs_dm(d: ArrayLike) -> int:
    """The number of points of a matrix of distances.

    >>> num_obs_dm([[0.0, 1.0], [1.0, 0.0]])
    2
    """
    return int(jnp.shape(of_rank("spatial.distance.num_obs_dm", "d", jnp.asarray(d), 2))[0])


def num_obs_y(Y: ArrayLike) -> int:
    """The number of points of the distances of pairs.

    >>> num_obs_y([1.0, 2.0, 3.0])
    3
    """
    count = of_rank("spatial.distance.num_obs_y", "Y", jnp.asarray(Y), 1).shape[0]
    n = int(np.ceil(np.sqrt(2 * count)))
    if not count or n * (n - 1) // 2 != count:
        raise ShapeError(f"functrans.scipy.spatial.distance.num_obs_y: Y has {count} distances.",
                         where=user_source(), why="n points have n (n - 1) / 2.")
    return n


def is_valid_y(y: ArrayLike) -> bool:
    """Whether a vector has as many elements as there are pairs of some points.

    >>> is_valid_y([1.0, 2.0, 3.0]), is_valid_y([1.0, 2.0])
    (True, False)
    """
    shape = jnp.shape(y)
    n = int(np.ceil(np.sqrt(2 * shape[0]))) if len(shape) == 1 and shape[0] else 0
    return bool(n) and n * (n - 1) // 2 == shape[0]


def is_valid_dm(D: ArrayLike, tol: float = 0.0) -> bool:
    """Whether D, whose values are known, is square and symmetric with zeros on its diagonal.

    >>> is_valid_dm([[0.0, 1.0], [1.0, 0.0]]), is_valid_dm([[0.0, 1.0], [2.0, 0.0]])
    (True, False)
    """
    d = np.asarray(jnp.asarray(D))
    if d.ndim != 2 or d.shape[0] != d.shape[1]:
        return False
    return bool((np.abs(d - d.T) <= tol).all() and (np.abs(np.diag(d)) <= tol).all())


publish(globals(), __all__)
