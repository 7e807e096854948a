"""Vector quantization: the nearest codes of observations, and codes by k-means."""

from __future__ import annotations

import math
from typing import Any

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.ops import segment_sum
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.products import matmul
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["kmeans", "kmeans2", "vq", "whiten"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The index of the nearest code of each observation, and its Euclidean distance.

    Both have their features along the last of two axes; with one axis there is one feature.
    Raises ShapeError where they differ.

    >>> import functrans as ft
    >>> book = [[1.0, 2.0], [4.0, 4.0]]
    >>> codes, distances = ft.scipy.cluster.vq.vq([[1.0, 1.0], [4.0, 4.0]], book)
    >>> codes.tolist(), distances.tolist()
    ([0, 1], [1.0, 0.0])
    """
    x, codes = inexact(obs, code_book)
    if x.ndim != codes.ndim or x.ndim not in (1, 2):
        raise ShapeError(f"functrans.scipy.cluster.vq.vq: obs has shape {x.shape}, code_book "
                         f"{codes.shape}.", where=user_source(), why="both have one or two axes.")
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    if x.shape[1] != codes.shape[1] or not codes.shape[0]:
        raise ShapeError(f"functrans.scipy.cluster.vq.vq: obs has shape {x.shape}, code_book "
                         f"{codes.shape}.", where=user_source(), why="both have the same features.")
    squares = jnp.sum((x[:, None] - codes) ** 2, axis=-1)
    code = jnp.argmin(squares, axis=-1)
    square = jnp.sum((x - codes[code]) ** 2, axis=-1)
    # at a code the distance has no derivative; 0 stands for it
    return code, jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def whiten(obs: ArrayLike, check_finite: bool | None = None) -> Array:
    """The features of observations, each divided by its standard deviation.

    >>> import functrans as ft
    >>> ft.scipy.cluster.vq.whiten([[1.0, 5.0], [3.0, 5.0]]).tolist()
    [[1.0, 5.0], [3.0, 5.0]]
    """
    (x,) = inexact(obs)
    deviation = jnp.sqrt(jnp.mean((x - jnp.mean(x, axis=0)) ** 2, axis=0))
    return x / jnp.where(deviation == 0, 1, deviation)


def _assigned(x: Array, codes: Array) -> tuple[Array, Array, Array]:
    """The codes of observations, their mean distance, and the means of the clusters."""
    code, distance = vq(x, codes)
    count = codes.shape[0]
    totals = segment_sum(x, code, count)
    sizes = segment_sum(jnp.ones(x.shape[0], x.dtype), code, count)
    sizes = sizes.reshape(-1, *(1,) * (x.ndim - 1))
    # a code that is nearest to none stays where it is
    return code, jnp.mean(distance), jnp.where(sizes > 0, totals / jnp.maximum(sizes, 1), codes)


def kmeans(obs: ArrayLike, k_or_guess: ArrayLike, iter: int = 20, thresh: float = 1e-5,
           check_finite: bool = True, *, key: Array | None = None) -> tuple[Array, Array]:
    """Codes with a small mean distance from the observations to the nearest one, and that distance.

    From a guess of the codes, means are taken until the distance changes by at most `thresh`. For a
    number of codes, that is done from `iter` choices of observations, which `key` draws, and the
    best is returned. A code that is nearest to no observation stays as it is.
    Source: Lloyd, IEEE Trans. Inform. Theory 28 (1982).

    >>> import functrans as ft
    >>> codes, distance = ft.scipy.cluster.vq.kmeans([0.0, 1.0, 8.0, 9.0], [0.0, 8.0])
    >>> codes.tolist(), float(distance)
    ([0.5, 8.5], 0.5)
    """
    (x,) = inexact(obs)
    if jnp.ndim(k_or_guess) or not isinstance(k_or_guess, int):
        x, guess = inexact(x, k_or_guess)
        return _means(x, guess, thresh)
    count = known_size("cluster.vq.kmeans", "k_or_guess", k_or_guess)
    rounds = known_size("cluster.vq.kmeans", "iter", iter)
    keys = random.split(_key("kmeans", key), rounds)
    starts = vmap(lambda k: random.choice(k, x.shape[0], (_fits("kmeans", count, x),),
                                          replace=False))(keys)
    codes, distances = vmap(lambda start: _means(x, x[start], thresh))(starts)
    best = jnp.argmin(distances)
    return codes[best], distances[best]


def _means(x: Array, codes: Array, thresh: float) -> tuple[Array, Array]:
    def unfinished(state: Any) -> Any:
        _, now, before, _ = state
        return jnp.abs(before - now) > thresh

    def improve(state: Any) -> Any:
        _, now, _, means = state
        _, after, next_means = _assigned(x, means)
        return means, after, now, next_means

    _, distance, means = _assigned(x, codes)
    start = (codes, distance, jnp.full_like(distance, math.inf), means)
    codes, distance, _, _ = lax.while_loop(unfinished, improve, start)
    return codes, distance


def kmeans2(data: ArrayLike, k: ArrayLike, iter: int = 10, thresh: float = 1e-5,
            minit: str = "random", missing: str = "warn", check_finite: bool = True, *,
            key: Array | None = None) -> tuple[Array, Array]:
    """The codes after `iter` rounds of k-means, and the code of each observation.

    `minit` says where it begins: "points" (observations that `key` draws), "random" (a normal
    distribution with their mean and covariance), "++" (observations far from each other), or
    "matrix", where `k` are the codes.

    >>> import functrans as ft
    >>> codes, labels = ft.scipy.cluster.vq.kmeans2([0.0, 1.0, 8.0, 9.0], [0.0, 8.0],
    ...                                             minit="matrix")
    >>> codes.tolist(), labels.tolist()
    ([0.5, 8.5], [0, 0, 1, 1])
    """
    one_of("cluster.vq.kmeans2", "minit", minit, ("random", "points", "++", "matrix"))
    one_of("cluster.vq.kmeans2", "missing", missing, ("warn", "raise"))
    rounds = known_size("cluster.vq.kmeans2", "iter", iter)
    (x,) = inexact(data)
    if minit == "matrix" or jnp.ndim(k):
        x, codes = inexact(x, k)
    else:
        count = _fits("kmeans2", known_size("cluster.vq.kmeans2", "k", k), x)
        codes = _START[minit](x, count, _key("kmeans2", key))
    codes = lax.fori_loop(0, rounds, lambda _, c: _assigned(x, c)[2], codes)
    # the labels are those that the last means were taken of, as in SciPy
    return codes, vq(x, codes)[0]


def _fits(name: str, count: int, x: Array) -> int:
    if count > x.shape[0]:
        raise ArgumentError(f"functrans.scipy.cluster.vq.{name}: there are {count} codes for "
                            f"{x.shape[0]} observations.", where=user_source())
    return count


def _key(name: str, key: Array | None) -> Array:
    if key is None:
        raise ArgumentError(f"functrans.scipy.cluster.vq.{name} draws where it begins.",
                            where=user_source(), fix="key=ft.random.key(0)")
    return key


def _points(x: Array, count: int, key: Array) -> Array:
    return x[random.choice(key, x.shape[0], (count,), replace=False)]


def _normal(x: Array, count: int, key: Array) -> Array:
    if x.ndim == 1:
        return jnp.mean(x) + jnp.std(x, ddof=1) * random.normal(key, (count,), x.dtype)
    root = jnp.linalg.svd((x - jnp.mean(x, axis=0)) / math.sqrt(x.shape[0] - 1),
                          full_matrices=False)
    draws = random.normal(key, (count, root[1].shape[0]), x.dtype)
    return jnp.mean(x, axis=0) + matmul(draws * root[1], root[2])


def _far(x: Array, count: int, key: Array) -> Array:
    """Arthur and Vassilvitskii, k-means++ (2007): by the square of the distance to the nearest."""
    flat = x.reshape(x.shape[0], -1)
    first, *others = random.split(key, count)
    codes = [flat[random.randint(first, (), 0, x.shape[0])]]
    nearest = jnp.full(x.shape[0], math.inf, x.dtype)
    for k in others:
        nearest = jnp.minimum(nearest, jnp.sum((flat - codes[-1]) ** 2, axis=-1))
        total = jnp.cumsum(nearest)
        draw = random.uniform(k, (), x.dtype) * total[-1]
        codes.append(flat[jnp.minimum(jnp.searchsorted(total, draw, side="right"),
                                      x.shape[0] - 1)])
    return jnp.stack(codes).reshape(count, *x.shape[1:])


_START = {"points": _points, "random": _normal, "++": _far}

publish(globals(), __all__)
