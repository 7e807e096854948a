"""Distances of elements from the nearest zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.axes import per_axis
from functrans.typing import Array, ArrayLike

Distances = Array | tuple[Array, Array]


def _along_axes(x: Array, join: Callable[[Array, Any, int], Array], zero: Any, far: Any
                ) -> tuple[Array, Array]:
    """The least joined distance, one axis after the other, and the places that have it."""
    best = jnp.where(x == 0, zero, far)
    where = jnp.stack(jnp.meshgrid(*(jnp.arange(n) for n in x.shape), indexing="ij"))
    for axis, n in enumerate(x.shape):
        lines = jnp.moveaxis(best, axis, -1)
        apart = np.abs(np.arange(n)[:, None] - np.arange(n))
        near = jnp.argmin(join(lines[..., None, :], apart, axis), axis=-1)
        chosen = jnp.take_along_axis(lines, near, axis=-1)
        steps = jnp.abs(near - jnp.arange(n))
        best = jnp.moveaxis(join(chosen, steps, axis), -1, axis)
        near = jnp.moveaxis(near, -1, axis)
        where = jnp.take_along_axis(where, near[None], axis=axis + 1)
    return best, where


def _results(found: list[tuple[bool, Array]], name: str) -> Distances:
    chosen = [v for wanted, v in found if wanted]
    if not chosen:
        raise ArgumentError(f"functrans.scipy.ndimage.{name} is asked for nothing.",
                            where=user_source(), fix="return_distances=True")
    return chosen[0] if len(chosen) == 1 else (chosen[0], chosen[1])


def distance_transform_edt(input: ArrayLike, sampling: Any = None, return_distances: bool = True,
                           return_indices: bool = False, distances: None = None,
                           indices: None = None) -> Distances:
    """The Euclidean distance of each element from the nearest 0, and the place of that.

    `sampling` is the distance of neighbours, a number or one for each axis. Where there is no 0
    the distance is infinite. It takes n steps for each element and axis of n.
    Source: Felzenszwalb and Huttenlocher, Theory of Computing 8 (2012), eq. 1.

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.distance_transform_edt([[1, 1, 0], [1, 1, 1]]).round(3))
    [[2.    1.    0.   ]
     [2.236 1.414 1.   ]]
    """
    for name, value in (("distances", distances), ("indices", indices)):
        one_of("ndimage.distance_transform_edt", name, value, (None,))
    x = jnp.asarray(input)
    spacing = per_axis("ndimage.distance_transform_edt", "sampling",
                       1.0 if sampling is None else sampling, range(x.ndim))
    kind = default_float()

    def join(squares: Array, steps: Any, axis: int) -> Array:
        apart: Array = jnp.asarray(steps).astype(kind) * spacing[axis]
        return squares + apart**2

    best, where = _along_axes(x, join, jnp.zeros((), kind), jnp.asarray(jnp.inf, kind))
    return _results([(return_distances, jnp.sqrt(best)), (return_indices, where)],
                    "distance_transform_edt")


def distance_transform_bf(input: ArrayLike, metric: str = "euclidean", sampling: Any = None,
                          return_distances: bool = True, return_indices: bool = False,
                          distances: None = None, indices: None = None) -> Distances:
    """The distance of each element from the nearest 0, and the place of that, the last of several.

    `metric` is "euclidean", "taxicab" or "chessboard"; `sampling` is the distance of neighbours
    for the first. Where there is no 0 the distance is infinite, or the largest number. Places are
    looked for among all elements; distances alone come from the transforms of the other names.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.distance_transform_bf([[1, 1, 0], [1, 1, 1]], "taxicab").tolist()
    [[2, 1, 0], [3, 2, 1]]
    """
    name = "distance_transform_bf"
    for argument, value in (("distances", distances), ("indices", indices)):
        one_of(f"ndimage.{name}", argument, value, (None,))
    how = {"cityblock": "taxicab", "manhattan": "taxicab"}.get(metric.lower(), metric.lower())
    one_of(f"ndimage.{name}", "metric", how, ("euclidean", "taxicab", "chessboard"))
    x = jnp.asarray(input)
    found: list[tuple[bool, Array]] = []
    if return_distances:
        if how == "euclidean":
            of_each: Any = distance_transform_edt(x, sampling)
        else:
            steps: Any = distance_transform_cdt(x, how)
            of_each = jnp.where(steps < 0, np.uint32(2**32 - 1), steps.astype(jnp.uint32))
        found.append((True, of_each))
    if return_indices:
        spacing = per_axis(f"ndimage.{name}", "sampling", 1.0 if sampling is None else sampling,
                           range(x.ndim))
        places = np.indices(x.shape).reshape(x.ndim, -1)
        is_zero = (x == 0).reshape(-1)

        def nearest(place: Array) -> Array:
            apart = jnp.abs(place[:, None] - places)
            if how == "euclidean":
                units = jnp.asarray(np.asarray(spacing, float) ** 2)[:, None]
                far = jnp.sum(apart.astype(units.dtype) ** 2 * units, axis=0)
            else:
                steps = jnp.sum(apart, 0) if how == "taxicab" else jnp.max(apart, 0)
                far = steps.astype(default_float())
            return x.size - 1 - jnp.argmin(jnp.flip(jnp.where(is_zero, far, jnp.inf)))

        which = lax.map(nearest, jnp.asarray(places.T)) if x.size else jnp.zeros(0, int)
        found.append((True, jnp.asarray(places)[:, which].reshape(x.ndim, *x.shape)))
    return _results(found, name)


def distance_transform_cdt(input: ArrayLike, metric: str = "chessboard",
                           return_distances: bool = True, return_indices: bool = False
                           ) -> Distances:
    """The number of steps of each element to the nearest 0, and the place of that.

    `metric` is "chessboard" (steps go along diagonals too) or "taxicab". Where there is no 0 the
    number is -1.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.distance_transform_cdt([[1, 1, 0], [1, 1, 1]], "taxicab").tolist()
    [[2, 1, 0], [3, 2, 1]]
    """
    names = {"cityblock": "taxicab", "manhattan": "taxicab"}
    how = names.get(metric, metric)
    one_of("ndimage.distance_transform_cdt", "metric", how, ("chessboard", "taxicab"))
    x = jnp.asarray(input)
    far = np.int32(2**30)

    def join(found: Array, steps: Any, axis: int) -> Array:
        count = jnp.asarray(steps).astype(jnp.int32)
        return found + count if how == "taxicab" else jnp.maximum(found, count)

    best, where = _along_axes(x, join, np.int32(0), far)
    return _results([(return_distances, jnp.where(best >= far, -1, best)),
                     (return_indices, where)], "distance_transform_cdt")
