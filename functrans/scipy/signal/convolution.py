"""Convolution and correlation of arrays of any rank: directly, by transforms, in blocks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Literal

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import axis_tuple, promote_dtypes
from functrans.scipy.arguments import inexact, known_values, of_rank, one_of
from functrans.scipy.fft.lengths import next_fast_len
from functrans.typing import Array, ArrayLike, PrecisionLike

Mode = Literal["full", "same", "valid"]
MODES = ("full", "same", "valid")
_PADDING = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap",
            "symm": "symmetric", "symmetric": "symmetric"}


# Seconds on a core of a CPU: of a product of a direct convolution along one axis (0.4 to 0.9 ns for
# 1e4 samples and more) and along several (0.3 to 3 ns), of a step of a transform (0.3 to 1.8 ns),
# and what a call of transforms takes beyond that of a product
_OF_PRODUCTS = (6e-10, 1.5e-9)
_OF_TRANSFORMS = 6e-10
_OVERHEAD = 1e-4


def convolve(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: str = "auto",
             precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays of one rank, over all axes.

    `mode` is "full" for all overlaps, "same" for as many as in1 has, about the middle, "valid" for
    the complete ones. `method` is "direct", "fft" or "auto", which takes what `choose_conv_method`
    gives: transforms, whose errors are relative to the largest values, where they take less time.
    Raises ShapeError for arrays of two ranks, or where "valid" has no array within the other.

    >>> import functrans as ft
    >>> ft.scipy.signal.convolve(ft.numpy.array([1.0, 2.0]), ft.numpy.array([1.0, 1.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    one_of("signal.convolve", "method", method, ("auto", "direct", "fft"))
    x, y = _operands("convolve", in1, in2, mode)
    return _by(method, x, y, mode, precision)


def correlate(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", method: str = "auto",
              precision: PrecisionLike = None) -> Array:
    """The correlation of two arrays: in1 convolved with in2 reversed and conjugated.

    See `convolve` for the arguments.

    >>> import functrans as ft
    >>> ft.scipy.signal.correlate(ft.numpy.array([1.0, 2.0]), ft.numpy.array([0.0, 1.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    one_of("signal.correlate", "method", method, ("auto", "direct", "fft"))
    x, y = _operands("correlate", in1, in2, mode)
    return _by(method, x, jnp.flip(jnp.conj(y)), mode, precision)


def _by(method: str, x: Array, y: Array, mode: Mode, precision: PrecisionLike) -> Array:
    """The convolution by a method; a precision of products is one of direct ones."""
    is_fft = method == "fft" or (method == "auto" and precision is None
                                 and _faster_method(x, y, mode) == "fft")
    return fftconvolve(x, y, mode) if is_fft else _convolved(x, y, mode, precision)


def choose_conv_method(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full",
                       measure: bool = False) -> str | tuple[str, dict[str, float]]:
    """The `method` of `convolve` that takes less time: "direct" or "fft".

    It is told by shapes and dtypes alone, also under `jit`: whole numbers are convolved directly,
    which is exact. With `measure` both are timed, outside of `jit`, and the result is the method
    and the seconds of both.

    >>> import functrans as ft
    >>> x = ft.numpy.ones(100_000)
    >>> [ft.scipy.signal.choose_conv_method(x, x[:n]) for n in (5, 50_000)]
    ['direct', 'fft']
    """
    x, y = _operands("choose_conv_method", in1, in2, mode)
    if measure:
        for name, v in (("in1", x), ("in2", y)):
            known_values("signal.choose_conv_method", name, v, "a program has no time before it "
                         "runs.", "measure=False")
        times = {method: _seconds(x, y, mode, method) for method in ("fft", "direct")}
        return min(times, key=lambda m: times[m]), times
    return _faster_method(x, y, mode)


def _faster_method(x: Array, y: Array, mode: Mode) -> str:
    if kind(x.dtype) not in "fc" or not all(isinstance(n, int) for n in (*x.shape, *y.shape)):
        return "direct"
    small, large = sorted((math.prod(x.shape), math.prod(y.shape)))
    whole = math.prod(n + m - 1 for n, m in zip(x.shape, y.shape))
    products = small * (abs(large - small) + 1 if mode == "valid" else large if mode == "same"
                        else whole)
    by_transforms = _OVERHEAD + 3 * whole * math.log2(max(whole, 2)) * _OF_TRANSFORMS
    return "fft" if by_transforms < products * _OF_PRODUCTS[x.ndim > 1] else "direct"


def _seconds(x: Array, y: Array, mode: Mode, method: str) -> float:
    best = math.inf
    for _ in range(4):  # the first one compiles
        start = time.perf_counter()
        convolve(x, y, mode, method).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return best


def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", boundary: str = "fill",
               fillvalue: float = 0, precision: PrecisionLike = None) -> Array:
    """The convolution of two matrices, in1 continued beyond its edges.

    `boundary` is "fill" (with `fillvalue`), "wrap" or "symm". See `convolve` for `mode`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0).reshape(2, 2)
    >>> ft.scipy.signal.convolve2d(x, ft.numpy.ones((1, 2)), "same", "wrap").tolist()
    [[1.0, 1.0], [5.0, 5.0]]
    """
    x, y = _operands("convolve2d", in1, in2, mode)
    return _in_the_plane("convolve2d", x, y, mode, boundary, fillvalue, precision)


def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full", boundary: str = "fill",
                fillvalue: float = 0, precision: PrecisionLike = None) -> Array:
    """The correlation of two matrices; see `convolve2d`.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4.0).reshape(2, 2)
    >>> print(ft.scipy.signal.correlate2d(x, ft.numpy.array([[0.0, 1.0]]), "same", "symm"))
    [[1. 1.]
     [3. 3.]]
    """
    x, y = _operands("correlate2d", in1, in2, mode)
    # in reverse, so that the middle of an even number of places is that of SciPy
    out = _in_the_plane("correlate2d", jnp.flip(x), jnp.conj(y), mode, boundary, fillvalue,
                        precision)
    return jnp.flip(out)


def _in_the_plane(name: str, x: Array, y: Array, mode: str, boundary: str, fillvalue: Any,
                  precision: PrecisionLike) -> Array:
    of_rank(f"signal.{name}", "in1", x, 2)
    one_of(f"signal.{name}", "boundary", boundary, tuple(_PADDING))
    how = _PADDING[boundary]
    if mode == "valid" or (how == "constant" and isinstance(fillvalue, (int, float))
                           and fillvalue == 0):
        return _convolved(x, y, mode, precision)
    pads = [(n - 1, n - 1) for n in y.shape]
    options = {"constant_values": fillvalue} if how == "constant" else {}
    whole = _convolved(jnp.pad(x, pads, mode=how, **options), y, "valid", precision)
    return whole if mode == "full" else centred(whole, x.shape)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full",
                axes: Sequence[int] | int | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms, over `axes` (all of them by default).

    The other axes broadcast. See `convolve` for `mode`.

    >>> import functrans as ft
    >>> x = ft.scipy.signal.fftconvolve(ft.numpy.array([1.0, 2.0]), ft.numpy.array([1.0, 1.0]))
    >>> x.round(4).tolist()
    [1.0, 3.0, 2.0]
    """
    x, y, over = _with_axes("fftconvolve", in1, in2, mode, axes)
    if not x.size or not y.size:
        return jnp.zeros((0,), x.dtype)
    sizes = [x.shape[a] + y.shape[a] - 1 for a in over]
    lengths = [next_fast_len(n, real=kind(x.dtype) != "c") for n in sizes]
    if not over:
        return x * y
    if kind(x.dtype) == "c":
        out = jnp.fft.ifftn(jnp.fft.fftn(x, lengths, over) * jnp.fft.fftn(y, lengths, over),
                            lengths, over)
    else:
        out = jnp.fft.irfftn(jnp.fft.rfftn(x, lengths, over) * jnp.fft.rfftn(y, lengths, over),
                             lengths, over)
    index = [slice(None)] * out.ndim
    for a, n in zip(over, sizes):
        index[a] = slice(0, n)
    return _of_mode(out[tuple(index)], x, y, mode, over)


def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: Mode = "full",
               axes: Sequence[int] | int | None = None) -> Array:
    """The convolution of a long array and a short one, in overlapping blocks of the long one.

    Over one axis it takes transforms of about four times the size of the short array, over several
    those of `fftconvolve`. See there for the arguments.

    >>> import functrans as ft
    >>> x = ft.scipy.signal.oaconvolve(ft.numpy.ones(500), ft.numpy.ones(3), "valid")
    >>> x.shape, round(float(x[0]), 4)
    ((498,), 3.0)
    """
    x, y, over = _with_axes("oaconvolve", in1, in2, mode, axes)
    if len(over) != 1:
        return fftconvolve(x, y, mode, over)
    (a,) = over
    long, short = (x, y) if x.shape[a] >= y.shape[a] else (y, x)
    overlap = short.shape[a] - 1
    block = next_fast_len(4 * (overlap + 1), real=True)
    step = block - overlap
    if long.shape[a] <= 2 * step:
        return fftconvolve(x, y, mode, over)
    long, short = jnp.moveaxis(long, a, -1), jnp.moveaxis(short, a, -1)
    size = long.shape[-1] + overlap
    count = -(-size // step)
    padded = jnp.pad(long, [(0, 0)] * (long.ndim - 1) + [(0, count * step - long.shape[-1])])
    blocks = padded.reshape(*long.shape[:-1], count, step)
    parts = fftconvolve(blocks, short[..., None, :], "full", axes=-1)
    # what a block has beyond its end is added to the next one
    body, tail = parts[..., :step], parts[..., step:]
    width = [(0, 0)] * (long.ndim - 1) + [(1, 0), (0, step - overlap)]
    body = body + jnp.pad(tail[..., :-1, :], width)
    out = body.reshape(*body.shape[:-2], count * step)[..., :size]
    return _of_mode(jnp.moveaxis(out, -1, a), x, y, mode, over)


def _with_axes(name: str, in1: ArrayLike, in2: ArrayLike, mode: str,
               axes: Sequence[int] | int | None) -> tuple[Array, Array, list[int]]:
    one_of(f"signal.{name}", "mode", mode, MODES)
    x, y = inexact(in1, in2)
    if x.ndim != y.ndim:
        raise ShapeError(f"functrans.scipy.signal.{name}: in1 has shape {x.shape}, in2 {y.shape}.",
                         where=user_source(), why="both have the same number of axes.",
                         fix="x[:, None]")
    over = sorted(axis_tuple(axes, x.ndim, name))
    for a in range(x.ndim):
        sizes = {x.shape[a], y.shape[a]}
        if a not in over and len(sizes) == 2 and 1 not in sizes:
            raise ShapeError(f"functrans.scipy.signal.{name}: in1 has shape {x.shape}, in2 "
                             f"{y.shape}.", where=user_source(), why=f"axis {a} is not one of "
                             "axes, where sizes agree or are 1.")
    if mode == "valid":
        x, y = _larger_first(name, x, y, over)
    return x, y, over


def _larger_first(name: str, x: Array, y: Array, over: Sequence[int]) -> tuple[Array, Array]:
    if all(x.shape[a] >= y.shape[a] for a in over):
        return x, y
    if all(x.shape[a] <= y.shape[a] for a in over):
        return y, x
    raise ArgumentError(f"functrans.scipy.signal.{name}: mode is 'valid', and the shapes are "
                        f"{x.shape} and {y.shape}.", where=user_source(),
                        why="one array lies within the other along all axes.")


def _operands(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> tuple[Array, Array]:
    """Both arrays in one dtype; integers stay integers."""
    one_of(f"signal.{name}", "mode", mode, MODES)
    x, y = (jnp.asarray(v) for v in promote_dtypes(f"signal.{name}", jnp.asarray(in1),
                                                   jnp.asarray(in2)))
    if x.ndim != y.ndim:
        raise ShapeError(f"functrans.scipy.signal.{name}: in1 has shape {x.shape}, in2 {y.shape}.",
                         where=user_source(), why="both have the same number of axes.",
                         fix="x[None] where an axis is missing")
    if mode == "valid":
        _larger_first(name, x, y, range(x.ndim))
    if 0 in x.shape or 0 in y.shape:
        raise ArgumentError(f"functrans.scipy.signal.{name} of an empty array.",
                            where=user_source())
    return x, y


def _convolved(x: Array, y: Array, mode: str, precision: PrecisionLike) -> Array:
    """The sum of products, over all axes."""
    if not x.ndim:
        return x * y
    first = x.shape
    if math.prod(x.shape) < math.prod(y.shape) and (
            mode != "valid" or all(a <= b for a, b in zip(x.shape, y.shape))):
        x, y = y, x  # the smaller one is the kernel
    if mode == "valid" and all(a <= b for a, b in zip(x.shape, y.shape)):
        x, y = y, x
    pads = [(0, 0) if mode == "valid" else (n - 1, n - 1) for n in y.shape]
    out = lax.conv_general_dilated(x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, pads,
                                   precision=precision)[0, 0]
    return centred(out, first) if mode == "same" else out


def _of_mode(out: Array, x: Array, y: Array, mode: str, over: Sequence[int]) -> Array:
    """The part of a full convolution that mode asks for."""
    if mode == "full":
        return out
    shape = list(out.shape)
    for a in over:
        shape[a] = x.shape[a] if mode == "same" else x.shape[a] - y.shape[a] + 1
    return centred(out, shape)


def centred(x: Array, shape: Sequence[int]) -> Array:
    """The middle of x."""
    starts = [(n - m) // 2 for n, m in zip(x.shape, shape)]
    return x[tuple(slice(s, s + m) for s, m in zip(starts, shape))]
