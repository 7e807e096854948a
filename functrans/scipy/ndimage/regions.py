"""Regions of images: histograms and places of values, and watersheds."""

from __future__ import annotations

import heapq

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, known_values, one_of
from functrans.scipy.ndimage.morphology import generate_binary_structure
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def histogram(input: ArrayLike, min: float, max: float, bins: int, labels: ArrayLike | None = None,
              index: ArrayLike | None = None) -> Array:
    """How many elements are in each of `bins` equal intervals from min to max, which it includes.

    With `labels` those count whose label is positive, or a row for each label in `index`. It works
    under `jit`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.histogram(ft.numpy.array([0.0, 0.2, 0.9, 1.0]), 0.0, 1.0, 2).tolist()
    [2, 2]
    """
    count = known_size("ndimage.histogram", "bins", bins)
    x = jnp.asarray(input)
    edges = jnp.linspace(min, max, count + 1, dtype=jnp.promote_types(
        dtypes.to_inexact_dtype(x.dtype), dtypes.default_float()))
    flat = x.reshape(-1)
    where = jnp.searchsorted(edges, flat.astype(edges.dtype), side="right") - 1
    where = jnp.where(flat == edges[-1], count - 1, where)
    inside = (flat >= edges[0]) & (flat <= edges[-1])

    def counted(chosen: Array) -> Array:
        weights = (inside & chosen).astype(int)
        return jnp.zeros(count, weights.dtype).at[jnp.clip(where, 0, count - 1)].add(weights)

    if labels is None:
        if index is not None:
            raise ArgumentError("functrans.scipy.ndimage.histogram: index without labels.",
                                where=user_source(), fix="labels=...")
        return counted(jnp.ones(flat.shape, bool))
    of = jnp.broadcast_to(jnp.asarray(labels), x.shape).reshape(-1)
    if index is None:
        return counted(of > 0)
    wanted = jnp.asarray(index)
    rows: Array = vmap(lambda i: counted(of == i))(wanted.reshape(-1))
    return rows.reshape(*wanted.shape, count)


def value_indices(arr: ArrayLike, *, ignore_value: int | None = None
                  ) -> dict[int, tuple[Array, ...]]:
    """The places of each value of an integer array: a dictionary of tuples of indices.

    How many there are depends on values: not under `jit`. Raises DTypeError for other dtypes.

    >>> import functrans as ft
    >>> found = ft.scipy.ndimage.value_indices(ft.numpy.array([[0, 2], [2, 0]]), ignore_value=0)
    >>> {k: [v.tolist() for v in places] for k, places in found.items()}
    {2: [[0, 1], [1, 0]]}
    """
    x = known_values("ndimage.value_indices", "arr", arr, "how many places there are depends on "
                     "it.", "jnp.nonzero(arr == value, size=10)")
    if x.dtype.kind not in "iu":
        raise DTypeError(f"functrans.scipy.ndimage.value_indices: arr is {x.dtype}.",
                         where=user_source(), why="values are integers.", fix="arr.astype(int)")
    flat = x.reshape(-1)
    order = np.argsort(flat, kind="stable")
    values, starts = np.unique(flat[order], return_index=True)
    parts = np.split(order, starts[1:])
    return {int(v): tuple(jnp.asarray(i) for i in np.unravel_index(part, x.shape))
            for v, part in zip(values.tolist(), parts) if len(part) and v != ignore_value}


def watershed_ift(input: ArrayLike, markers: ArrayLike, structure: ArrayLike | None = None,
                  output: None = None) -> Array:
    """The labels of markers, spread over an image along paths of the least largest step.

    `input` is of 8 or 16 bits without sign, `markers` of integers: positive ones are objects and
    are spread first, negative ones background, 0 none. Neighbours are where `structure` (3 along
    each axis) is true: along the axes by default. Of equal paths SciPy may take others. It
    goes from element to element in the order of costs, on the host: not under `jit`. Raises
    DTypeError and ShapeError.
    Source: Falcão, Stolfi and Lotufo, IEEE Trans. Pattern Anal. Mach. Intell. 26 (2004).

    >>> import functrans as ft
    >>> image = np.array([[0, 0, 9, 1, 0]], np.uint8)
    >>> ft.scipy.ndimage.watershed_ift(image, np.array([[1, 0, 0, 0, 2]])).tolist()
    [[1, 1, 2, 2, 2]]
    """
    name = "ndimage.watershed_ift"
    one_of(name, "output", output, (None,))
    why, fix = "labels go from element to element.", "watershed_ift(image, markers)  # before jit"
    image, seeds = (known_values(name, n, v, why, fix) for n, v in (
        ("input", input), ("markers", markers)))
    if image.dtype not in (np.uint8, np.uint16) or seeds.dtype.kind != "i":
        raise DTypeError(f"functrans.scipy.{name}: input is {image.dtype}, markers {seeds.dtype}.",
                         where=user_source(), why="steps are counted: uint8 or uint16, and "
                         "integers with a sign.", fix="image.astype(np.uint8)")
    near = np.asarray(generate_binary_structure(image.ndim, 1) if structure is None else structure
                      ) != 0
    if seeds.shape != image.shape or near.shape != (3,) * image.ndim:
        raise ShapeError(f"functrans.scipy.{name}: input has shape {image.shape}, markers "
                         f"{seeds.shape}, structure {near.shape}.", where=user_source(),
                         why="both are of one shape, and the structure has 3 along each axis.")
    offsets = [o for o in np.argwhere(near) - 1 if o.any()]
    wide = np.pad(image.astype(np.int64), 1)
    steps = [int(np.ravel_multi_index(tuple(np.array(o) + 1), wide.shape)
                 - np.ravel_multi_index((1,) * image.ndim, wide.shape)) for o in offsets]
    values, labels = wide.reshape(-1).tolist(), np.pad(seeds, 1).reshape(-1).tolist()
    done = np.pad(np.zeros(image.shape, bool), 1, constant_values=True).reshape(-1).tolist()
    most = int(image.max(initial=0)) + 1
    costs = [0 if v else most for v in labels]
    queue: list[tuple[int, int, int]] = []
    order = 0
    for i in np.flatnonzero(np.pad(seeds, 1).reshape(-1)).tolist():
        order += 1  # objects at the front of their cost, the last one first
        queue.append((0, -order if labels[i] > 0 else order, i))
    heapq.heapify(queue)
    while queue:
        cost, _, i = heapq.heappop(queue)
        if done[i] or cost != costs[i]:
            continue
        done[i] = True
        for step in steps:
            j = i + step
            if done[j]:
                continue
            through = abs(values[i] - values[j])
            through = through if through > cost else cost
            if through < costs[j]:
                costs[j], labels[j] = through, labels[i]
                order += 1
                heapq.heappush(queue, (through, -order if labels[i] > 0 else order, j))
    inner = (slice(1, -1),) * image.ndim
    found = np.array(labels).reshape(wide.shape)[inner].astype(seeds.dtype)
    return jnp.asarray(found)
