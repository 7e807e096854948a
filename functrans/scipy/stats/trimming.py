"""Samples without their ends, and small parts of tests by ranks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of, real
from functrans.scipy.stats.scales import tie_sizes
from functrans.scipy.stats.statistics import sample
from functrans.typing import Array, ArrayLike

__all__ = ["directional_stats", "sigmaclip", "tiecorrect", "trim1", "trimboth"]


class SigmaclipResult(NamedTuple):
    """The elements that are left, and the limits of the last step."""

    clipped: Array
    lower: Array
    upper: Array


class DirectionalStats(NamedTuple):
    """The mean direction of vectors, and the length of their mean."""

    mean_direction: Array
    mean_resultant_length: Array


def sigmaclip(a: ArrayLike, low: float = 4.0, high: float = 4.0, *, size: int | None = None
              ) -> SigmaclipResult:
    """The elements that are within standard deviations of the mean, until none is left out.

    How many these are depends on values: under `jit` `size` is given, and NaN fills what is left
    of it.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.sigmaclip([1.0, 2.0, 3.0, 2.0, 90.0], 1.5, 1.5)
    >>> found.clipped.tolist()
    [1.0, 2.0, 3.0, 2.0]
    """
    (x,) = real("stats.sigmaclip", a)
    x = x.reshape(-1)

    def limits(inside: Array) -> tuple[Array, Array]:
        mean, spread = jnp.mean(x, where=inside), jnp.std(x, where=inside)
        return mean - spread * low, mean + spread * high

    def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
        inside, _ = state
        lower, upper = limits(inside)
        following = inside & (x >= lower) & (x <= upper)
        return following, jnp.any(following != inside)

    start = again((jnp.ones(x.shape, bool), jnp.asarray(True)))
    last, _ = lax.while_loop(lambda state: state[1], again, start)
    lower, upper = limits(last)
    if size is None:
        still = lax.stop_gradient(last)
        if is_traced(still):
            raise ArgumentError("functrans.scipy.stats.sigmaclip: a is traced, and there is no "
                                "size.", where=user_source(), why="how many elements are left "
                                "depends on its values.", fix=f"sigmaclip(a, size={x.shape[0]})")
        clipped = x[np.nonzero(np.asarray(still))[0]]
    else:
        count = known_size("stats.sigmaclip", "size", size)
        places = jnp.nonzero(last, size=count, fill_value=x.shape[0])[0]
        clipped = jnp.take(x, places, mode="fill", fill_value=math.nan)
    return SigmaclipResult(clipped, lower, upper)


def _trimmed(name: str, a: ArrayLike, proportiontocut: float, axis: int | None, left: bool,
             right: bool) -> Array:
    x = jnp.asarray(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"scipy.stats.{name}: axis {axis} is not one of the {x.ndim} axes.",
                         where=user_source())
    n = x.shape[axis]
    cut = int(proportiontocut * n)
    if not 0 <= cut * (left + right) < max(n, 1):
        raise ArgumentError(f"scipy.stats.{name}: proportiontocut is {shown(proportiontocut)}.",
                            where=user_source(), why="nothing would be left.",
                            fix=f"{name}(a, 0.1)")
    return lax.slice_in_dim(jnp.sort(x, axis), cut * left, n - cut * right, axis=axis % x.ndim)


def trimboth(a: ArrayLike, proportiontocut: float, axis: int | None = 0) -> Array:
    """The elements along an axis, in order, without a part of them at both ends.

    >>> import functrans as ft
    >>> ft.scipy.stats.trimboth([5, 1, 2, 9, 3], 0.2).tolist()
    [2, 3, 5]
    """
    return _trimmed("trimboth", a, proportiontocut, axis, True, True)


def trim1(a: ArrayLike, proportiontocut: float, tail: str = "right", axis: int | None = 0) -> Array:
    """The elements along an axis, in order, without a part of them at the "right" or "left" end.

    >>> import functrans as ft
    >>> ft.scipy.stats.trim1([5, 1, 2, 9, 3], 0.2).tolist()
    [1, 2, 3, 5]
    """
    one_of("stats.trim1", "tail", tail, ("right", "left"))
    return _trimmed("trim1", a, proportiontocut, axis, tail == "left", tail == "right")


def tiecorrect(rankvals: ArrayLike) -> Array:
    """The factor of Kruskal's and Mann and Whitney's tests for ties: 1 where there are none.

    1 - sum(t**3 - t) / (n**3 - n) over the groups of t equal ranks.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.tiecorrect([1.0, 2.5, 2.5, 4.0])), 4)
    0.9
    """
    (x,) = inexact(rankvals)
    x = x.reshape(-1)
    n = x.shape[0]
    if n < 2:
        return jnp.ones((), x.dtype)
    return 1 - jnp.sum(tie_sizes(x) ** 2 - 1) / (n**3 - n)


def directional_stats(samples: ArrayLike, *, axis: int = 0, normalize: bool = True
                      ) -> DirectionalStats:
    """The mean direction of vectors along the last axis, and the length of the mean, along `axis`.

    With `normalize` vectors are first made of length 1.
    Source: Mardia and Jupp, Directional Statistics (2000), p. 163.

    >>> import functrans as ft
    >>> found = ft.scipy.stats.directional_stats([[1.0, 0.0], [0.0, 2.0]])
    >>> print(found.mean_direction.round(4), found.mean_resultant_length.round(4))
    [0.7071 0.7071] 0.7071
    """
    (x,) = real("stats.directional_stats", samples)
    if x.ndim < 2:
        raise ShapeError(f"scipy.stats.directional_stats: the samples have shape {x.shape}.",
                         where=user_source(), why="vectors stand along the last axis.")
    _, where = sample("directional_stats", x, axis)
    moved = jnp.moveaxis(x, where, 0)
    if normalize:
        moved = moved / jnp.linalg.norm(moved, axis=-1, keepdims=True)
    mean = jnp.mean(moved, 0)
    length = jnp.linalg.norm(mean, axis=-1, keepdims=True)
    return DirectionalStats(mean / length, length[..., 0])


publish(globals(), __all__)
