"""Filters of the Fourier transforms of arrays, and functions of neighbourhoods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.axes import per_axis
from functrans.scipy.ndimage.filters import Modes, Sizes
from functrans.scipy.ndimage.geometry import map_coordinates
from functrans.scipy.ndimage.ranks import around_each
from functrans.scipy.special import j1
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


def _filtered(name: str, input: ArrayLike, value: Any, n: int, axis: int, output: None,
              factor: Callable[[Array, Any], Array]) -> Array:
    """The input times a factor for each axis, of its frequencies and its parameter."""
    one_of(f"ndimage.{name}", "output", output, (None,))
    (x,) = inexact(input)
    real_axis = axis_index(axis, x.ndim, name)
    for a, (size, v) in enumerate(zip(x.shape, per_axis(f"ndimage.{name}", "the parameter", value,
                                                        range(x.ndim)))):
        halved = n > 0 and a == real_axis
        where = np.arange(size) / n if halved else np.fft.fftfreq(size)
        along = factor(jnp.asarray(where).astype(x.real.dtype), v)
        x = x * along.reshape(tuple(size if i == a else 1 for i in range(x.ndim)))
    return x


def fourier_gaussian(input: ArrayLike, sigma: Any, n: int = -1, axis: int = -1,
                     output: None = None) -> Array:
    """A Fourier transform times that of a Gaussian; n is the length of an axis of `rfft`.

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.fourier_gaussian(ft.numpy.ones(2), 0.5).round(3))
    [1.    0.291]
    """
    return _filtered("fourier_gaussian", input, sigma, n, axis, output,
                     lambda f, s: jnp.exp(-2 * (math.pi * s * f) ** 2))


def fourier_uniform(input: ArrayLike, size: Any, n: int = -1, axis: int = -1,
                    output: None = None) -> Array:
    """A Fourier transform times that of a box of `size` elements; see `fourier_gaussian`.

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.fourier_uniform(ft.numpy.ones(2), 1).round(3))
    [1.    0.637]
    """
    return _filtered("fourier_uniform", input, size, n, axis, output,
                     lambda f, s: jnp.sinc(s * f))


def fourier_shift(input: ArrayLike, shift: Any, n: int = -1, axis: int = -1, output: None = None
                  ) -> Array:
    """A Fourier transform times that of a shift; see `fourier_gaussian`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.fourier_shift(ft.numpy.ones(2), 1.0).real.round(3).tolist()
    [1.0, -1.0]
    """
    return _filtered("fourier_shift", input, shift, n, axis, output,
                     lambda f, s: jnp.exp(-2j * math.pi * s * f))


def fourier_ellipsoid(input: ArrayLike, size: Any, n: int = -1, axis: int = -1,
                      output: None = None) -> Array:
    """A Fourier transform times that of an ellipsoid of `size` elements; see `fourier_gaussian`.

    It is a line, a disc or a ball: raises ArgumentError for more than three axes.

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.fourier_ellipsoid(ft.numpy.ones((2, 2)), 1.0).round(3))
    [[1.    0.722]
     [0.722 0.498]]
    """
    one_of("ndimage.fourier_ellipsoid", "output", output, (None,))
    (x,) = inexact(input)
    if not 1 <= x.ndim <= 3:
        raise ArgumentError(f"functrans.scipy.ndimage.fourier_ellipsoid: the input has {x.ndim} "
                            "axes.", where=user_source(), why="it has one, two or three.")
    real_axis = axis_index(axis, x.ndim, "fourier_ellipsoid")
    sizes = per_axis("ndimage.fourier_ellipsoid", "size", size, range(x.ndim))
    kind = x.real.dtype
    square: Any = 0
    for a, (length, s) in enumerate(zip(x.shape, sizes)):
        halved = n > 0 and a == real_axis
        where = np.arange(length) / n if halved else np.fft.fftfreq(length)
        along = (jnp.asarray(where).astype(kind) * s) ** 2
        square = square + along.reshape(tuple(length if i == a else 1 for i in range(x.ndim)))
    zero = square == 0
    r = math.pi * jnp.sqrt(jnp.where(zero, 1, square))
    if x.ndim == 1:
        factor = jnp.sin(r) / r
    elif x.ndim == 2:
        factor = 2 * j1(r) / r
    else:
        factor = 3 * (jnp.sin(r) - r * jnp.cos(r)) / r**3
    return x * jnp.where(zero, 1, factor).astype(kind)


def generic_filter(input: ArrayLike, function: Callable[..., Any], size: Any = None,
                   footprint: Any = None, output: None = None, mode: Modes = "reflect",
                   cval: ArrayLike = 0.0, origin: Sizes = 0,
                   extra_arguments: tuple[Any, ...] = (), extra_keywords: Any = None) -> Array:
    """`function` of the vector of the elements around each element.

    >>> import functrans as ft
    >>> x = ft.numpy.array([3.0, 1.0, 2.0])
    >>> ft.scipy.ndimage.generic_filter(x, ft.numpy.ptp, size=3).tolist()
    [2.0, 2.0, 1.0]
    """
    one_of("ndimage.generic_filter", "output", output, (None,))
    x = jnp.asarray(input)
    found = around_each("generic_filter", x, size, footprint, mode, cval, origin)
    more = dict(extra_keywords or {})
    lines = found.reshape(found.shape[0], -1).T
    values = vmap(lambda v: jnp.asarray(function(v, *extra_arguments, **more)))(lines)
    return values.reshape(x.shape).astype(x.dtype)


def geometric_transform(input: ArrayLike, mapping: Callable[..., Any],
                        output_shape: tuple[int, ...] | None = None, output: None = None,
                        order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0,
                        prefilter: bool = True, extra_arguments: tuple[Any, ...] = (),
                        extra_keywords: Any = None) -> Array:
    """The input at `mapping(place)`, of a tuple of coordinates, for each place of the result.

    >>> import functrans as ft
    >>> x = ft.numpy.array([1.0, 2.0, 4.0])
    >>> f = lambda place: (2 - place[0],)
    >>> ft.scipy.ndimage.geometric_transform(x, f, order=1).tolist()
    [4.0, 2.0, 1.0]
    """
    one_of("ndimage.geometric_transform", "output", output, (None,))
    x = jnp.asarray(input)
    shape = x.shape if output_shape is None else tuple(output_shape)
    places = jnp.stack(jnp.meshgrid(*(jnp.arange(n) for n in shape), indexing="ij"))
    more = dict(extra_keywords or {})

    def at(place: Array) -> Array:
        found = mapping(tuple(place), *extra_arguments, **more)
        return jnp.stack([jnp.asarray(v) for v in found])

    where = vmap(at)(places.reshape(len(shape), -1).T)
    return map_coordinates(x, where.T.reshape(-1, *shape), order=order, mode=mode, cval=cval,
                           prefilter=prefilter)
