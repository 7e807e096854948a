"""Connected parts, and sums, moments and extrema of the elements of each label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import default_float, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.axes import neighbours
from functrans.scipy.ndimage.morphology import _structure
from functrans.typing import Array, ArrayLike

Places = tuple[Array, ...] | list[tuple[Array, ...]]


def label(input: ArrayLike, structure: ArrayLike | None = None, output: None = None
          ) -> tuple[Array, Array]:
    """Numbers from 1 on for the connected parts of what is not 0, in order, and their count.

    `structure` says which neighbours are connected, by default those along axes. It runs under
    `jit` and `vmap`: labels spread with jumps over what they reached, until nothing changes.

    >>> import functrans as ft
    >>> parts, count = ft.scipy.ndimage.label([1, 1, 0, 1])
    >>> parts.tolist(), int(count)
    ([1, 1, 0, 2], 2)
    """
    one_of("ndimage.label", "output", output, (None,))
    x = jnp.asarray(input) != 0
    shape = _structure(x.ndim, 1) if structure is None else np.asarray(structure) != 0
    if shape.shape != (3,) * x.ndim or (shape != shape[(slice(None, None, -1),) * x.ndim]).any():
        raise ShapeError(f"functrans.scipy.ndimage.label: the structure has shape {shape.shape}.",
                         where=user_source(), why="it has 3 elements along each axis of the input, "
                         "and is the same from both sides.")
    size = x.size
    if not size:
        return jnp.zeros(x.shape, jnp.int32), jnp.zeros((), jnp.int32)
    inside = x.reshape(-1)
    footprint = shape.copy()
    footprint[(1,) * x.ndim] = True

    def spread(state: tuple[Array, Any]) -> tuple[Array, Any]:
        roots, _ = state
        grown = jnp.pad(roots.reshape(x.shape), 1, constant_values=size)
        least = jnp.min(neighbours(grown, footprint), axis=0).reshape(-1)
        least = jnp.where(inside, least, size)
        # the root that the old root has found is a root of all that had the old one
        joined = jnp.full(size + 1, size, roots.dtype).at[roots].min(least)
        joined = jnp.minimum(joined, jnp.arange(size + 1, dtype=roots.dtype))
        after = jnp.where(inside, jnp.minimum(least, joined[joined[roots]]), size)
        return after, jnp.any(after != roots)

    start = jnp.where(inside, jnp.arange(size, dtype=jnp.int32), size).astype(jnp.int32)
    roots, _ = lax.while_loop(lambda s: s[1], spread, (start, jnp.array(True)))
    first = inside & (roots == jnp.arange(size))
    numbers = jnp.cumsum(first).astype(jnp.int32)
    found = jnp.where(inside, numbers[jnp.minimum(roots, size - 1)], 0)
    return found.reshape(x.shape), numbers[-1]


def find_objects(input: ArrayLike, max_label: int = 0) -> list[tuple[slice, ...] | None]:
    """The slices of the box of each label from 1 on; None of labels that are not there.

    Raises ArgumentError for traced labels.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.find_objects(ft.numpy.array([0, 1, 1, 2]))
    [(slice(1, 3, None),), (slice(3, 4, None),)]
    """
    if is_traced(input):
        raise ArgumentError("functrans.scipy.ndimage.find_objects: labels are traced.",
                            where=user_source(), why="slices are Python's.",
                            fix="minimum_position and maximum_position")
    labels = np.asarray(input)
    count = max_label or int(labels.max(initial=0))
    found: list[tuple[slice, ...] | None] = []
    for i in range(1, count + 1):
        places = np.nonzero(labels == i)
        found.append(tuple(slice(int(p.min()), int(p.max()) + 1) for p in places)
                     if places[0].size else None)
    return found


class _Labelled:
    """The elements of an input by the number of their label in an index."""

    def __init__(self, name: str, input: ArrayLike, labels: ArrayLike | None,
                 index: ArrayLike | None, floating: bool = True) -> None:
        x = inexact(input)[0] if floating else jnp.asarray(input)
        self.shape = x.shape
        self.scalar = index is None or jnp.ndim(index) == 0
        if labels is None:
            if index is not None:
                raise ArgumentError(f"functrans.scipy.ndimage.{name}: index without labels.",
                                    where=user_source(), fix="labels=label(x)[0]")
            self.number = jnp.zeros(x.size, jnp.int32)
            self.count = 1
        else:
            known = jnp.broadcast_to(jnp.asarray(labels), x.shape).reshape(-1)
            if index is None:
                self.number, self.count = jnp.where(known > 0, 0, 1), 1
            else:
                wanted = jnp.atleast_1d(jnp.asarray(index))
                if wanted.ndim != 1:
                    raise ShapeError(f"functrans.scipy.ndimage.{name}: index has shape "
                                     f"{wanted.shape}.", where=user_source(), why="it is a label "
                                     "or a vector of them.")
                self.count = wanted.shape[0]
                order = jnp.argsort(wanted)
                ordered = wanted[order]
                at = jnp.clip(jnp.searchsorted(ordered, known), 0, max(self.count - 1, 0))
                self.number = jnp.where(ordered[at] == known, order[at], self.count)
        self.x = x.reshape(-1)

    def sums(self, values: Array) -> Array:
        return jnp.zeros(self.count + 1, values.dtype).at[self.number].add(values)[:self.count]

    def sizes(self) -> Array:
        return self.sums(jnp.ones(self.x.shape, default_float() if kind(
            self.x.dtype) not in "fc" else self.x.real.dtype))

    def extremes(self, largest: bool) -> Array:
        worst = _least(self.x.dtype) if largest else _most(self.x.dtype)
        none = jnp.full(self.count + 1, worst, self.x.dtype)
        found = none.at[self.number].max(self.x) if largest else none.at[self.number].min(self.x)
        there = self.sums(jnp.ones(self.x.shape, jnp.int32)) > 0
        return jnp.where(there, found[:self.count], 0)

    def places(self, largest: bool) -> Array:
        """The flat places of extremes, the first of equal ones."""
        best = jnp.append(self.extremes(largest), jnp.zeros(1, self.x.dtype))
        index = jnp.arange(self.x.shape[0], dtype=jnp.int32)
        where = jnp.where(self.x == best[self.number], index, self.x.shape[0])
        none = jnp.full(self.count + 1, self.x.shape[0], jnp.int32)
        found = none.at[self.number].min(where)[:self.count]
        return jnp.minimum(found, max(self.x.shape[0] - 1, 0))

    def out(self, values: Array) -> Array:
        return values[0] if self.scalar else values

    def positions(self, flat: Array) -> Places:
        each = jnp.unravel_index(flat, self.shape)
        if self.scalar:
            return tuple(v[0] for v in each)
        return [tuple(v[i] for v in each) for i in range(self.count)]


def _most(dtype: Any) -> Any:
    if kind(dtype) == "f":
        return np.inf
    return True if np.dtype(dtype).kind == "b" else np.iinfo(dtype).max


def _least(dtype: Any) -> Any:
    if kind(dtype) == "f":
        return -np.inf
    return False if np.dtype(dtype).kind == "b" else np.iinfo(dtype).min


def sum_labels(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
               ) -> Array:
    """The sum of the elements of each label in `index`, of all labels above 0, or of all.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.sum_labels([1.0, 2.0, 4.0], [1, 1, 2], [1, 2]).tolist()
    [3.0, 4.0]
    """
    parts = _Labelled("sum_labels", input, labels, index)
    return parts.out(parts.sums(parts.x))


sum = sum_labels


def mean(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
         ) -> Array:
    """The mean of the elements of each label; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.mean([1.0, 2.0, 4.0], [1, 1, 2], [1, 2]).tolist()
    [1.5, 4.0]
    """
    parts = _Labelled("mean", input, labels, index)
    return parts.out(parts.sums(parts.x) / parts.sizes())


def variance(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
             ) -> Array:
    """The variance of the elements of each label; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.variance([1.0, 3.0, 4.0], [1, 1, 2], [1, 2]).tolist()
    [1.0, 0.0]
    """
    parts = _Labelled("variance", input, labels, index)
    sizes = parts.sizes()
    means = jnp.append(parts.sums(parts.x) / sizes, jnp.zeros(1, parts.x.dtype))
    return parts.out(parts.sums((parts.x - means[parts.number]) ** 2) / sizes)


def standard_deviation(input: ArrayLike, labels: ArrayLike | None = None,
                       index: ArrayLike | None = None) -> Array:
    """The standard deviation of the elements of each label; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.standard_deviation([1.0, 3.0, 4.0], [1, 1, 2], [1, 2]).tolist()
    [1.0, 0.0]
    """
    return jnp.sqrt(variance(input, labels, index))


def minimum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
            ) -> Array:
    """The least of the elements of each label, 0 where there are none; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.minimum([1, 3, 4], [1, 1, 2], [1, 2]).tolist()
    [1, 4]
    """
    parts = _Labelled("minimum", input, labels, index, floating=False)
    return parts.out(parts.extremes(largest=False))


def maximum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
            ) -> Array:
    """The largest of the elements of each label, 0 where there are none; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.maximum([1, 3, 4], [1, 1, 2], [1, 2]).tolist()
    [3, 4]
    """
    parts = _Labelled("maximum", input, labels, index, floating=False)
    return parts.out(parts.extremes(largest=True))


def median(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
           ) -> Array:
    """The median of the elements of each label; see `sum_labels`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.median([1.0, 3.0, 9.0, 4.0], [1, 1, 1, 2], [1, 2]).tolist()
    [3.0, 4.0]
    """
    parts = _Labelled("median", input, labels, index)
    order = jnp.lexsort((parts.x, parts.number))
    values = parts.x[order]
    sizes = jnp.zeros(parts.count + 1, jnp.int32).at[parts.number].add(1)
    start = (jnp.cumsum(sizes) - sizes)[:parts.count]
    sizes = sizes[:parts.count]
    last = values.shape[0] - 1
    low, high = (values[jnp.clip(start + (sizes - a) // 2, 0, last)] for a in (1, 0))
    return parts.out(jnp.where(sizes > 0, 0.5 * (low + high), jnp.nan))


def minimum_position(input: ArrayLike, labels: ArrayLike | None = None,
                     index: ArrayLike | None = None) -> Places:
    """The place of the least element of each label, the first of equal ones; see `sum_labels`.

    >>> import functrans as ft
    >>> [int(v) for v in ft.scipy.ndimage.minimum_position([[3, 1], [2, 4]])]
    [0, 1]
    """
    parts = _Labelled("minimum_position", input, labels, index, floating=False)
    return parts.positions(parts.places(largest=False))


def maximum_position(input: ArrayLike, labels: ArrayLike | None = None,
                     index: ArrayLike | None = None) -> Places:
    """The place of the largest element of each label, the first of equal ones; see `sum_labels`.

    >>> import functrans as ft
    >>> [int(v) for v in ft.scipy.ndimage.maximum_position([[3, 1], [2, 4]])]
    [1, 1]
    """
    parts = _Labelled("maximum_position", input, labels, index, floating=False)
    return parts.positions(parts.places(largest=True))


def extrema(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
            ) -> tuple[Array, Array, Places, Places]:
    """The least and the largest elements of each label, and their places; see `sum_labels`.

    >>> import functrans as ft
    >>> low, high, _, _ = ft.scipy.ndimage.extrema([3, 1, 2])
    >>> int(low), int(high)
    (1, 3)
    """
    return (minimum(input, labels, index), maximum(input, labels, index),
            minimum_position(input, labels, index), maximum_position(input, labels, index))


def center_of_mass(input: ArrayLike, labels: ArrayLike | None = None,
                   index: ArrayLike | None = None) -> Places:
    """The mean place of the elements of each label, with these for weights; see `sum_labels`.

    >>> import functrans as ft
    >>> [float(v) for v in ft.scipy.ndimage.center_of_mass(ft.numpy.ones((2, 3)))]
    [0.5, 1.0]
    """
    parts = _Labelled("center_of_mass", input, labels, index)
    total = parts.sums(parts.x)
    found = []
    for a, n in enumerate(parts.shape):
        shape = tuple(n if i == a else 1 for i in range(len(parts.shape)))
        where = jnp.broadcast_to(jnp.arange(n).reshape(shape), parts.shape).reshape(-1)
        found.append(parts.sums(parts.x * where.astype(parts.x.dtype)) / total)
    if parts.scalar:
        return tuple(v[0] for v in found)
    return [tuple(v[i] for v in found) for i in range(parts.count)]


def labeled_comprehension(input: ArrayLike, labels: ArrayLike, index: ArrayLike,
                          func: Callable[..., Any], out_dtype: Any, default: ArrayLike,
                          pass_positions: bool = False) -> Array:
    """func of the elements of each label in `index`; `default` where there are none.

    Raises ArgumentError for traced labels: the sizes of their parts are not known.

    >>> import functrans as ft
    >>> f = ft.scipy.ndimage.labeled_comprehension
    >>> f(ft.numpy.array([1.0, 2.0, 4.0]), [1, 1, 2], [1, 2, 3], ft.numpy.max, float, -1).tolist()
    [2.0, 4.0, -1.0]
    """
    if is_traced(labels):
        raise ArgumentError("functrans.scipy.ndimage.labeled_comprehension: labels are traced.",
                            where=user_source(), why="the sizes of parts depend on them.",
                            fix="sum_labels, mean, median, maximum")
    x, known = jnp.asarray(input).reshape(-1), np.asarray(labels).reshape(-1)
    found = []
    for i in np.atleast_1d(np.asarray(index)):
        places = np.flatnonzero(known == i)
        args = (x[places], places) if pass_positions else (x[places],)
        found.append(jnp.asarray(func(*args) if len(places) else default).astype(out_dtype))
    return jnp.stack(found) if jnp.ndim(index) else found[0]
