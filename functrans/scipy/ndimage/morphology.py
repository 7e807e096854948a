"""Erosion, dilation and what is made of them, of masks and of grey values; distances to zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, one_of
from functrans.scipy.axes import neighbours, per_axis
from functrans.scipy.ndimage.filters import Modes, Sizes, around
from functrans.scipy.ndimage.ranks import around_each
from functrans.typing import Array, ArrayLike

Mask = np.ndarray[Any, Any]


def generate_binary_structure(rank: int, connectivity: int) -> Array:
    """The elements of a cube of 3 that are at most `connectivity` steps along axes from its centre.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.generate_binary_structure(2, 1).astype(int).tolist()
    [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    """
    return jnp.asarray(_structure(rank, connectivity))


def _structure(rank: int, connectivity: int) -> Mask:
    steps = np.abs(np.indices((3,) * rank) - 1).sum(axis=0)
    return np.asarray(steps <= max(int(connectivity), 1))


def iterate_structure(structure: ArrayLike, iterations: int) -> Array:
    """A structure dilated by itself, `iterations` - 1 times.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.iterate_structure([True, True, True], 2).astype(int).tolist()
    [1, 1, 1, 1, 1]
    """
    shape = np.asarray(structure, bool)
    count = known_size("ndimage.iterate_structure", "iterations", iterations, 1)
    width = [(count - 1) * (n // 2) for n in shape.shape]
    grown = jnp.asarray(np.pad(shape, [(w, w) for w in width]))
    return grown if count == 1 else binary_dilation(grown, shape, count - 1)


def _known_structure(name: str, x: Array, structure: Any) -> Mask:
    shape = _structure(x.ndim, 1) if structure is None else np.asarray(structure) != 0
    if shape.ndim != x.ndim or not shape.size:
        raise ShapeError(f"functrans.scipy.ndimage.{name}: the structure has shape {shape.shape}, "
                         f"the input {x.shape}.", where=user_source(), why="both have the same "
                         "axes.")
    return shape


def _eroded(name: str, x: Array, shape: Mask, origins: list[Any], border: bool) -> Array:
    widths = [around(name, n, o) for n, o in zip(shape.shape, origins)]
    grown = jnp.pad(x, widths, constant_values=border)
    return jnp.all(neighbours(grown, shape), axis=0) if shape.any() else jnp.ones_like(x)


def _repeated(name: str, step: Callable[[Array], Array], x: Array, iterations: int, mask: Any
              ) -> Array:
    if mask is not None:
        inside, once = jnp.asarray(mask) != 0, step

        def step(v: Array) -> Array:
            return jnp.where(inside, once(v), v)

    if iterations >= 1:
        for _ in range(int(iterations)):
            x = step(x)
        return x
    start = (x, step(x))
    return lax.while_loop(lambda s: jnp.any(s[0] != s[1]), lambda s: (s[1], step(s[1])), start)[1]


def binary_erosion(input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1,
                   mask: ArrayLike | None = None, output: None = None, border_value: int = 0,
                   origin: Sizes = 0) -> Array:
    """Where all elements of the structure around an element are not 0.

    The structure is a cross by default; `iterations` below 1 go on until nothing changes, and where
    `mask` is 0 nothing does.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_erosion([1, 1, 1, 0]).astype(int).tolist()
    [0, 1, 0, 0]
    """
    one_of("ndimage.binary_erosion", "output", output, (None,))
    x = jnp.asarray(input) != 0
    shape = _known_structure("binary_erosion", x, structure)
    origins = per_axis("ndimage.binary_erosion", "origin", origin, range(x.ndim))
    return _repeated("binary_erosion", lambda v: _eroded(
        "binary_erosion", v, shape, origins, bool(border_value)), x, iterations, mask)


def binary_dilation(input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1,
                    mask: ArrayLike | None = None, output: None = None, border_value: int = 0,
                    origin: Sizes = 0) -> Array:
    """Where an element of the reversed structure around an element is not 0; see `binary_erosion`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_dilation([0, 1, 0, 0]).astype(int).tolist()
    [1, 1, 1, 0]
    """
    one_of("ndimage.binary_dilation", "output", output, (None,))
    x = jnp.asarray(input) != 0
    shape = _known_structure("binary_dilation", x, structure)
    shape = shape[(slice(None, None, -1),) * x.ndim]
    origins = [-o - (1 - n % 2) for o, n in zip(per_axis(
        "ndimage.binary_dilation", "origin", origin, range(x.ndim)), shape.shape)]
    # what is dilated is what the complement is not eroded to
    return _repeated("binary_dilation", lambda v: ~_eroded(
        "binary_dilation", ~v, shape, origins, not border_value), x, iterations, mask)


def binary_opening(input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1,
                   output: None = None, origin: Sizes = 0, mask: ArrayLike | None = None,
                   border_value: int = 0) -> Array:
    """An erosion and then a dilation, which removes what the structure does not fit in.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_opening([1, 1, 1, 0, 1]).astype(int).tolist()
    [1, 1, 1, 0, 0]
    """
    x = binary_erosion(input, structure, iterations, mask, output, border_value, origin)
    return binary_dilation(x, structure, iterations, mask, output, border_value, origin)


def binary_closing(input: ArrayLike, structure: ArrayLike | None = None, iterations: int = 1,
                   output: None = None, origin: Sizes = 0, mask: ArrayLike | None = None,
                   border_value: int = 0) -> Array:
    """A dilation and then an erosion, which fills what the structure does not fit in.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_closing([0, 1, 0, 1, 0]).astype(int).tolist()
    [0, 1, 1, 1, 0]
    """
    x = binary_dilation(input, structure, iterations, mask, output, border_value, origin)
    return binary_erosion(x, structure, iterations, mask, output, border_value, origin)


def binary_hit_or_miss(input: ArrayLike, structure1: ArrayLike | None = None,
                       structure2: ArrayLike | None = None, output: None = None,
                       origin1: Sizes = 0, origin2: Sizes | None = None) -> Array:
    """Where the first structure is all 1 and the second all 0; that is by default all others.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_hit_or_miss([0, 1, 0, 1, 1], [0, 1, 0]).astype(int).tolist()
    [0, 1, 0, 0, 0]
    """
    x = jnp.asarray(input) != 0
    first = _known_structure("binary_hit_or_miss", x, structure1)
    second = ~first if structure2 is None else _known_structure("binary_hit_or_miss", x,
                                                                structure2)
    other = origin1 if origin2 is None else origin2
    hit = binary_erosion(x, first, origin=origin1, output=output)
    return hit & ~binary_dilation(x, second[(slice(None, None, -1),) * x.ndim],
                                  origin=_opposite(second, other))


def _opposite(shape: Mask, origin: Sizes) -> list[int]:
    origins = per_axis("ndimage.binary_hit_or_miss", "origin2", origin, range(shape.ndim))
    return [-o - (1 - n % 2) for o, n in zip(origins, shape.shape)]


def binary_propagation(input: ArrayLike, structure: ArrayLike | None = None,
                       mask: ArrayLike | None = None, output: None = None, border_value: int = 0,
                       origin: Sizes = 0) -> Array:
    """Dilations within `mask` until nothing changes.

    >>> import functrans as ft
    >>> found = ft.scipy.ndimage.binary_propagation([1, 0, 0, 0, 0], mask=[1, 1, 1, 0, 1])
    >>> found.astype(int).tolist()
    [1, 1, 1, 0, 0]
    """
    return binary_dilation(input, structure, -1, mask, output, border_value, origin)


def binary_fill_holes(input: ArrayLike, structure: ArrayLike | None = None, output: None = None,
                      origin: Sizes = 0) -> Array:
    """The elements that are 1, or that steps through zeros do not reach from outside.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.binary_fill_holes([0, 1, 0, 1, 0]).astype(int).tolist()
    [0, 1, 1, 1, 0]
    """
    x = jnp.asarray(input) != 0
    outside = binary_dilation(jnp.zeros_like(x), structure, -1, ~x, output, 1, origin)
    return ~outside


# Grey values ---------------------------------------------------------------------------------


def _extreme(name: str, erodes: bool, input: ArrayLike, size: Any, footprint: Any, structure: Any,
             output: Any, mode: Modes, cval: ArrayLike, origin: Sizes) -> Array:
    one_of(f"ndimage.{name}", "output", output, (None,))
    x = jnp.asarray(input)
    if size is None and footprint is None and structure is None:
        raise ArgumentError(f"functrans.scipy.ndimage.{name} needs size, footprint or structure.",
                            where=user_source(), fix="size=3")
    heights = None if structure is None else np.asarray(structure)
    if footprint is None and heights is not None:
        footprint = np.ones(heights.shape, bool)
    if footprint is None:
        footprint = np.ones([int(n) for n in per_axis(f"ndimage.{name}", "size", size,
                                                      range(x.ndim))], bool)
    shape = np.asarray(footprint) != 0
    origins = per_axis(f"ndimage.{name}", "origin", origin, range(x.ndim))
    if not erodes:
        shape = shape[(slice(None, None, -1),) * shape.ndim]
        heights = None if heights is None else heights[(slice(None, None, -1),) * heights.ndim]
        origins = [-o - (1 - n % 2) for o, n in zip(origins, shape.shape)]
    found = around_each(name, x, None, shape, mode, cval, origins)
    if heights is not None:
        steps = jnp.asarray(heights[shape].reshape(-1, *(1,) * x.ndim)).astype(x.dtype)
        found = found - steps if erodes else found + steps
    return jnp.min(found, axis=0) if erodes else jnp.max(found, axis=0)


def grey_erosion(input: ArrayLike, size: Any = None, footprint: Any = None, structure: Any = None,
                 output: None = None, mode: Modes = "reflect", cval: ArrayLike = 0.0,
                 origin: Sizes = 0) -> Array:
    """The least element around each, less the heights of `structure`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.grey_erosion(ft.numpy.array([3, 1, 2, 5]), size=3).tolist()
    [1, 1, 1, 2]
    """
    return _extreme("grey_erosion", True, input, size, footprint, structure, output, mode, cval,
                    origin)


def grey_dilation(input: ArrayLike, size: Any = None, footprint: Any = None,
                  structure: Any = None, output: None = None, mode: Modes = "reflect",
                  cval: ArrayLike = 0.0, origin: Sizes = 0) -> Array:
    """The largest element around each, plus the heights of the reversed `structure`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.grey_dilation(ft.numpy.array([3, 1, 2, 5]), size=3).tolist()
    [3, 3, 5, 5]
    """
    return _extreme("grey_dilation", False, input, size, footprint, structure, output, mode, cval,
                    origin)


def grey_opening(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A `grey_erosion` and then a `grey_dilation`, with the same arguments.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.grey_opening(ft.numpy.array([1, 5, 1, 1]), size=2).tolist()
    [1, 1, 1, 1]
    """
    return grey_dilation(grey_erosion(input, *args, **kwargs), *args, **kwargs)


def grey_closing(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """A `grey_dilation` and then a `grey_erosion`, with the same arguments.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.grey_closing(ft.numpy.array([5, 1, 5, 5]), size=2).tolist()
    [5, 5, 5, 5]
    """
    return grey_erosion(grey_dilation(input, *args, **kwargs), *args, **kwargs)


def morphological_gradient(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """The difference of `grey_dilation` and `grey_erosion`, with the same arguments.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.morphological_gradient(ft.numpy.array([3, 1, 2]), size=3).tolist()
    [2, 2, 1]
    """
    return grey_dilation(input, *args, **kwargs) - grey_erosion(input, *args, **kwargs)


def morphological_laplace(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """`grey_dilation` and `grey_erosion` less the input twice.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.morphological_laplace(ft.numpy.array([3, 1, 2]), size=3).tolist()
    [-2, 2, -1]
    """
    x = jnp.asarray(input)
    return grey_dilation(x, *args, **kwargs) + grey_erosion(x, *args, **kwargs) - 2 * x


def white_tophat(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """The input less its `grey_opening`; of masks, where they differ.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.white_tophat(ft.numpy.array([1, 5, 1, 1]), size=2).tolist()
    [0, 4, 0, 0]
    """
    x = jnp.asarray(input)
    opened = grey_opening(x, *args, **kwargs)
    return x ^ opened if x.dtype == bool else x - opened


def black_tophat(input: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """The `grey_closing` less the input; of masks, where they differ.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.black_tophat(ft.numpy.array([5, 1, 5, 5]), size=2).tolist()
    [0, 4, 0, 0]
    """
    x = jnp.asarray(input)
    closed = grey_closing(x, *args, **kwargs)
    return x ^ closed if x.dtype == bool else closed - x
