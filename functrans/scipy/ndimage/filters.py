"""Linear filters of neighbourhoods: correlations, Gaussians, derivatives.

Results are floating: integers are taken as such. `mode` says what is beyond the edges: "reflect"
(d c b a | a b c d | d c b a), "mirror" (d c b | a b c d | c b a), "nearest", "wrap" or "constant"
with `cval`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import axis_index, axis_tuple
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.axes import per_axis
from functrans.typing import Array, ArrayLike

Sizes = int | Sequence[int]
Axes = int | Sequence[int] | None
Modes = str | Sequence[str]
MODES: Final[Mapping[str, str]] = MappingProxyType({
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge",
    "wrap": "wrap", "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant"})


def padded(name: str, x: Array, axis: int, before: int, after: int, mode: str, cval: Any) -> Array:
    """x continued along an axis."""
    one_of(f"ndimage.{name}", "mode", mode, tuple(MODES))
    width = [(before, after) if a == axis else (0, 0) for a in range(x.ndim)]
    if not x.shape[axis]:  # nothing is continued by nothing: results are empty
        return jnp.pad(x, width)
    options = {"constant_values": cval} if MODES[mode] == "constant" else {}
    return jnp.pad(x, width, mode=MODES[mode], **options)


def around(name: str, size: int, origin: int) -> tuple[int, int]:
    """How many elements before and after are in a neighbourhood."""
    before = size // 2 + origin
    if not 0 <= before < max(size, 1):
        raise ArgumentError(f"functrans.scipy.ndimage.{name}: origin is {origin}.",
                            where=user_source(), why=f"the neighbourhood has {size} elements.")
    return before, size - 1 - before


def correlate1d(input: ArrayLike, weights: ArrayLike, axis: int = -1, output: None = None,
                mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """sum_k weights[k] input[i + k - len(weights) // 2 - origin] along an axis.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.correlate1d(ft.numpy.array([1.0, 2.0, 4.0]), [1.0, 0.0, 1.0]).tolist()
    [3.0, 5.0, 6.0]
    """
    x, w = inexact(input, weights)
    _no_output("correlate1d", output)
    if w.ndim != 1 or not w.shape[0]:
        raise ShapeError(f"functrans.scipy.ndimage.correlate1d: weights has shape {w.shape}.",
                         where=user_source(), why="it is a vector.")
    axis = axis_index(axis, x.ndim, "correlate1d")
    before, after = around("correlate1d", w.shape[0], origin)
    lines = jnp.moveaxis(padded("correlate1d", x, axis, before, after, mode, cval), axis, -1)
    flat = lines.reshape(-1, 1, lines.shape[-1])
    out = lax.conv_general_dilated(flat, w[None, None], (1,), [(0, 0)], precision="highest")
    return jnp.moveaxis(out.reshape(*lines.shape[:-1], out.shape[-1]), -1, axis)


def convolve1d(input: ArrayLike, weights: ArrayLike, axis: int = -1, output: None = None,
               mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The convolution with weights along an axis; see `correlate1d`.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.convolve1d(ft.numpy.array([1.0, 2.0, 4.0]), [0.0, 0.0, 1.0]).tolist()
    [1.0, 1.0, 2.0]
    """
    (w,) = inexact(weights)
    return correlate1d(input, jnp.flip(_like(input, weights, w)), axis, output, mode, cval,
                       _turned(w.shape[-1] if w.ndim else 1, origin))


def _like(input: ArrayLike, weights: ArrayLike, w: Array) -> Array:
    """Weights in the dtype that they have with the input."""
    return inexact(input, weights)[1]


def _turned(size: int, origin: int) -> int:
    """The origin of a reversed neighbourhood."""
    return -origin - (1 if size % 2 == 0 else 0)


def correlate(input: ArrayLike, weights: ArrayLike, output: None = None, mode: str = "reflect",
              cval: ArrayLike = 0.0, origin: Sizes = 0, *, axes: Axes = None) -> Array:
    """The correlation with weights of the same rank, or of `axes`; see `correlate1d`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0).reshape(2, 2)
    >>> ft.scipy.ndimage.correlate(x, [[0.0, 1.0]], mode="nearest").tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    _no_output("correlate", output)
    x, w = inexact(input, weights)
    if axes is not None:  # the weights have one element along the others
        over = axis_tuple(axes, x.ndim, "correlate")
        if w.ndim != len(over):
            raise ShapeError(f"functrans.scipy.ndimage.correlate: weights has shape {w.shape}.",
                             where=user_source(), why=f"there are {len(over)} axes.")
        given = per_axis("ndimage.correlate", "origin", origin, over)
        origin = [given[over.index(a)] if a in over else 0 for a in range(x.ndim)]
        ahead = sorted(over)  # its axes are those of the array in their order, as in SciPy
        w = w.reshape(tuple(w.shape[ahead.index(a)] if a in over else 1 for a in range(x.ndim)))
    if w.ndim != x.ndim or 0 in w.shape:
        raise ShapeError(f"functrans.scipy.ndimage.correlate: weights has shape {w.shape}, the "
                         f"input {x.shape}.", where=user_source(), why="both have the same axes.")
    origins = per_axis("ndimage.correlate", "origin", origin, range(x.ndim))
    for a, (n, o) in enumerate(zip(w.shape, origins)):
        x = padded("correlate", x, a, *around("correlate", n, o), mode, cval)
    return lax.conv_general_dilated(x[None, None], w[None, None], (1,) * x.ndim,
                                    [(0, 0)] * x.ndim, precision="highest")[0, 0]


def convolve(input: ArrayLike, weights: ArrayLike, output: None = None, mode: str = "reflect",
             cval: ArrayLike = 0.0, origin: Sizes = 0, *, axes: Axes = None) -> Array:
    """The convolution with weights of the same rank, or of `axes`; see `correlate1d`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0).reshape(2, 2)
    >>> ft.scipy.ndimage.convolve(x, [[0.0, 0.0, 1.0]], mode="nearest").tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    _, w = inexact(input, weights)
    origins = per_axis("ndimage.convolve", "origin", origin, range(w.ndim))
    turned = [_turned(n, o) for n, o in zip(w.shape, origins)]
    return correlate(input, jnp.flip(w), output, mode, cval, turned, axes=axes)


def gaussian_filter1d(input: ArrayLike, sigma: ArrayLike, axis: int = -1, order: int = 0,
                      output: None = None, mode: str = "reflect", cval: ArrayLike = 0.0,
                      truncate: float = 4.0, *, radius: int | None = None) -> Array:
    """The correlation along an axis with a Gaussian, or with its derivative of an order.

    It is cut at `truncate` standard deviations, or at `radius` elements, with which sigma may be
    traced.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.gaussian_filter1d(ft.numpy.ones(5), 1.0).round(4).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    (x,) = inexact(input)
    if radius is None:
        radius = int(truncate * _known_sigma(sigma) + 0.5)
    weights = jnp.asarray(_gaussian(sigma, order, radius)).astype(x.real.dtype)
    return correlate1d(x, weights[::-1], axis, output, mode, cval, 0)


def _known_sigma(sigma: Any) -> float:
    try:
        return float(sigma)
    except TypeError:
        raise ArgumentError("functrans.scipy.ndimage.gaussian_filter1d: sigma is traced.",
                            where=user_source(), why="the number of weights depends on it.",
                            fix="radius=10") from None


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The weights: the Gaussian times a polynomial, which each derivative takes further."""
    if order < 0:
        raise ArgumentError(f"functrans.scipy.ndimage.gaussian_filter: order is {order}.",
                            where=user_source(), why="it is 0 or more.")
    xp: Any = jnp if isinstance(sigma, ARRAYS) else np
    x = np.arange(-radius, radius + 1, dtype=np.float64)
    square = sigma * sigma
    phi = xp.exp(-0.5 / square * x**2)
    phi = phi / xp.sum(phi)
    q = [xp.ones(())]
    for _ in range(order):  # q' - q x / sigma**2
        slope = [(k + 1) * c for k, c in enumerate(q[1:])]
        times = [xp.zeros(()), *(-c / square for c in q)]
        q = [times[k] + (slope[k] if k < len(slope) else 0) for k in range(len(times))]
    return phi * sum(c * x**k for k, c in enumerate(q))


def gaussian_filter(input: ArrayLike, sigma: Any, order: Sizes = 0, output: None = None,
                    mode: Modes = "reflect", cval: ArrayLike = 0.0, truncate: float = 4.0, *,
                    radius: Any = None, axes: Axes = None) -> Array:
    """The Gaussian filter along `axes` (all), with one `sigma` for each or for all.

    See `gaussian_filter1d` for the other arguments.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.gaussian_filter(ft.numpy.ones((2, 2)), 1.0).round(4).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    (x,) = inexact(input)
    _no_output("gaussian_filter", output)
    over = axis_tuple(axes, x.ndim, "gaussian_filter")
    many = [per_axis("ndimage.gaussian_filter", n, v, over) for n, v in (
        ("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))]
    for a, s, o, m, r in zip(over, *many):
        if isinstance(s, ARRAYS) or s > 1e-15:
            x = gaussian_filter1d(x, s, a, o, None, m, cval, truncate, radius=r)
    return x


def uniform_filter1d(input: ArrayLike, size: int, axis: int = -1, output: None = None,
                     mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The mean of `size` elements along an axis.

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.uniform_filter1d(ft.numpy.array([1.0, 4.0, 7.0]), 3).round(4))
    [2. 4. 6.]
    """
    (x,) = inexact(input)
    count = known_size("ndimage.uniform_filter1d", "size", size)
    weights = np.full(count, 1 / count)
    return correlate1d(x, jnp.asarray(weights).astype(x.real.dtype), axis, output, mode, cval,
                       origin)


def uniform_filter(input: ArrayLike, size: Sizes = 3, output: None = None, mode: Modes = "reflect",
                   cval: ArrayLike = 0.0, origin: Sizes = 0, *, axes: Axes = None) -> Array:
    """The mean of a neighbourhood of `size` elements along each of `axes` (all).

    >>> import functrans as ft
    >>> print(ft.scipy.ndimage.uniform_filter(ft.numpy.array([1.0, 4.0, 7.0])).round(4))
    [2. 4. 6.]
    """
    (x,) = inexact(input)
    over = axis_tuple(axes, x.ndim, "uniform_filter")
    many = [per_axis("ndimage.uniform_filter", n, v, over) for n, v in (
        ("size", size), ("mode", mode), ("origin", origin))]
    for a, n, m, o in zip(over, *many):
        x = x if n == 1 else uniform_filter1d(x, n, a, output, m, cval, o)
    return x


def _by_axis(name: str, input: ArrayLike, axis: int, smooth: Sequence[float], output: Any,
             mode: Modes, cval: Any) -> Array:
    """The difference along an axis, smoothed along the others."""
    (x,) = inexact(input)
    axis = axis_index(axis, x.ndim, name)
    modes = per_axis(f"ndimage.{name}", "mode", mode, range(x.ndim))
    x = correlate1d(x, [-1.0, 0.0, 1.0], axis, output, modes[axis], cval)  # type: ignore[arg-type]
    for a in range(x.ndim):
        if a != axis:
            x = correlate1d(x, list(smooth), a, None, modes[a], cval)  # type: ignore[arg-type]
    return x


def prewitt(input: ArrayLike, axis: int = -1, output: None = None, mode: Modes = "reflect",
            cval: ArrayLike = 0.0) -> Array:
    """Prewitt's filter: the difference along an axis, summed over three along the others.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.prewitt(ft.numpy.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _by_axis("prewitt", input, axis, (1.0, 1.0, 1.0), output, mode, cval)


def sobel(input: ArrayLike, axis: int = -1, output: None = None, mode: Modes = "reflect",
          cval: ArrayLike = 0.0) -> Array:
    """Sobel's filter: the difference along an axis, with weights 1, 2, 1 along the others.

    >>> import functrans as ft
    >>> ft.scipy.ndimage.sobel(ft.numpy.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _by_axis("sobel", input, axis, (1.0, 2.0, 1.0), output, mode, cval)


def generic_laplace(input: ArrayLike, derivative2: Callable[..., ArrayLike], output: None = None,
                    mode: Modes = "reflect", cval: ArrayLike = 0.0,
                    extra_arguments: tuple[Any, ...] = (),
                    extra_keywords: Mapping[str, Any] | None = None, *, axes: Axes = None) -> Array:
    """The sum of `derivative2(input, axis, output, mode, cval, ...)` over `axes` (all).

    >>> import functrans as ft
    >>> def second(x, axis, output, mode, cval): return ft.numpy.gradient(x, axis=axis)
    >>> ft.scipy.ndimage.generic_laplace(ft.numpy.array([1.0, 2.0, 4.0]), second).tolist()
    [1.0, 1.5, 2.0]
    """
    (x,) = inexact(input)
    _no_output("generic_laplace", output)
    over = axis_tuple(axes, x.ndim, "generic_laplace")
    modes = per_axis("ndimage.generic_laplace", "mode", mode, over)
    total = None
    for a, m in zip(over, modes):
        part = jnp.asarray(derivative2(x, a, None, m, cval, *extra_arguments,
                                       **dict(extra_keywords or {})))
        total = part if total is None else total + part
    return x if total is None else total


def laplace(input: ArrayLike, output: None = None, mode: Modes = "reflect", cval: ArrayLike = 0.0,
            *, axes: Axes = None) -> Array:
    """The sum of second differences over `axes` (all).

    >>> import functrans as ft
    >>> ft.scipy.ndimage.laplace(ft.numpy.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.0, -2.0]
    """
    def second(x: Array, axis: int, output: Any, mode: str, cval: Any) -> Array:
        return correlate1d(x, [1.0, -2.0, 1.0], axis, output, mode, cval)  # type: ignore[arg-type]

    return generic_laplace(input, second, output, mode, cval, axes=axes)


def gaussian_laplace(input: ArrayLike, sigma: Any, output: None = None, mode: Modes = "reflect",
                     cval: ArrayLike = 0.0, *, axes: Axes = None, **kwargs: Any) -> Array:
    """The sum over `axes` of second derivatives of the Gaussian filter.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(9.0) ** 2
    >>> round(float(ft.scipy.ndimage.gaussian_laplace(x, 1.0)[4]), 2)
    2.0
    """
    (x,) = inexact(input)
    over = axis_tuple(axes, x.ndim, "gaussian_laplace")
    sigmas = per_axis("ndimage.gaussian_laplace", "sigma", sigma, over)

    def second(x: Array, axis: int, output: Any, mode: str, cval: Any) -> Array:
        orders = [2 if a == axis else 0 for a in over]
        return gaussian_filter(x, sigmas, orders, output, mode, cval, axes=over, **kwargs)

    return generic_laplace(x, second, output, mode, cval, axes=over)


def gaussian_gradient_magnitude(input: ArrayLike, sigma: Any, output: None = None,
                                mode: Modes = "reflect", cval: ArrayLike = 0.0, *,
                                axes: Axes = None, **kwargs: Any) -> Array:
    """The norm of first derivatives of the Gaussian filter along `axes` (all).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(9.0)
    >>> ft.scipy.ndimage.gaussian_gradient_magnitude(x, 1.0).round(2).tolist()[4]
    1.0
    """
    (x,) = inexact(input)
    over = axis_tuple(axes, x.ndim, "gaussian_gradient_magnitude")
    sigmas = per_axis("ndimage.gaussian_gradient_magnitude", "sigma", sigma, over)
    square = jnp.zeros_like(x)
    for axis in over:
        orders = [1 if a == axis else 0 for a in over]
        square = square + gaussian_filter(x, sigmas, orders, output, mode, cval, axes=over,
                                          **kwargs) ** 2
    # the root has no derivative at 0, where that of the norm is taken as 0
    some = square != 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)


def _no_output(name: str, output: Any) -> None:
    if output is not None:
        raise ArgumentError(f"functrans.scipy.ndimage.{name} does not take output.",
                            where=user_source(), why="arrays are immutable.",
                            fix=".astype(dtype)")
