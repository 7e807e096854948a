"""Discrete Fourier transforms over the last axes."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Size
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, conj, div, mul, real
from functrans.primitives.base import LinearPrimitive, full, sample_array
from functrans.primitives.broadcast import broadcast_in_dim, move_axis, prod
from functrans.primitives.compare import bitwise_and, gt, lt, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import broadcasted_iota, pad

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["FftType", "fft", "fft_p"]


class FftType(enum.Enum):
    """Which transform: complex forward or inverse, or the real forward and its inverse.

    >>> lax.fft(jnp.array([1.0, 0.0]).astype("complex64"), lax.FftType.FFT, (2,))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """

    FFT = "fft"
    IFFT = "ifft"
    RFFT = "rfft"
    IRFFT = "irfft"


_NUMPY = {FftType.FFT: np.fft.fftn, FftType.IFFT: np.fft.ifftn, FftType.RFFT: np.fft.rfftn}


class Fft(LinearPrimitive):
    """The discrete Fourier transform of x over its last `len(fft_lengths)` axes.

    Forward transforms are not scaled, inverse ones are divided by the number of points. RFFT keeps
    the first n // 2 + 1 of the last axis, IRFFT starts from these and gives `fft_lengths[-1]`.
    """

    def type(self, x: ShapedArray, *, fft_type: FftType,
             fft_lengths: tuple[Size, ...]) -> ShapedArray:
        rank = len(fft_lengths)
        wanted = "f" if fft_type is FftType.RFFT else "c"
        if x.dtype == dtypes.complex32:
            raise DTypeError(f"fft: {fft_type.name} does not take {x}.", where=user_source(),
                             why="complex32 is transformed in complex64.",
                             fix="functrans.lax.fft, which converts")
        if dtypes.kind(x.dtype) != wanted:
            names = {"f": "floating", "c": "complex"}
            raise DTypeError(f"fft: {fft_type.name} takes {names[wanted]} numbers, got {x}.",
                             where=user_source(), fix="functrans.numpy.fft converts")
        inside = fft_lengths
        if fft_type is FftType.IRFFT and rank:
            inside = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
        if not 1 <= rank <= x.ndim or tuple(x.shape[x.ndim - rank:]) != tuple(inside):
            raise ShapeError(f"fft: {fft_type.name} over the lengths {fft_lengths} does not fit "
                             f"{x}.", where=user_source(),
                             why=f"the last axes of the operand must have sizes {inside}.",
                             fix="functrans.numpy.fft pads and cuts: fft(x, n)")
        if any(isinstance(n, int) and n < 1 for n in fft_lengths):  # a complex one is x itself
            raise ShapeError(f"fft: cannot transform {fft_lengths} points.", where=user_source())
        lead = x.shape[:x.ndim - rank]
        if fft_type is FftType.RFFT:
            half = fft_lengths[-1] // 2 + 1
            return ShapedArray((*lead, *fft_lengths[:-1], half), dtypes.complex_dtype(x.dtype))
        if fft_type is FftType.IRFFT:
            return ShapedArray((*lead, *fft_lengths), dtypes.real_dtype(x.dtype))
        return x.strong()

    def evaluate(self, x: Any, *, fft_type: FftType,
                 fft_lengths: tuple[int, ...]) -> np.ndarray[Any, Any]:
        axes = tuple(range(-len(fft_lengths), 0))
        if fft_type is FftType.IRFFT:
            return np.fft.irfftn(x, fft_lengths, axes)
        return _NUMPY[fft_type](x, axes=axes)

    def transpose(self, ct: Any, x: Linear, *, fft_type: FftType,
                  fft_lengths: tuple[Size, ...]) -> tuple[Any]:
        if fft_type in (FftType.FFT, FftType.IFFT):  # symmetric matrices
            return (fft(ct, fft_type, fft_lengths),)
        missing = fft_lengths[-1] - (fft_lengths[-1] // 2 + 1)
        if fft_type is FftType.RFFT:
            whole = pad(ct, np.zeros((), ct.dtype), [*[(0, 0, 0)] * (ct.ndim - 1), (0, missing, 0)])
            return (real(fft(whole, FftType.FFT, fft_lengths)),)
        # each frequency but the first (and the middle one) stands for itself and its mirror image
        spectrum = conj(fft(ct, FftType.RFFT, fft_lengths))
        at = broadcasted_iota(np.int32, spectrum.shape[-1:], 0)
        twice = bitwise_and(gt(at, 0), lt(at, missing + 1))
        one = full(spectrum.shape[-1:], 1, spectrum.dtype)
        weight = div(where(twice, add(one, one), one), float(prod(fft_lengths)))
        return (mul(spectrum, broadcast_in_dim(weight, spectrum.shape, (spectrum.ndim - 1,))),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None],
              **params: Any) -> tuple[Any, int]:
        return self.bind(move_axis(operands[0], axes[0] or 0, 0), **params), 0

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        out = self.type(x, **params)
        points = prod(params["fft_lengths"])
        depth = math.log2(points) if isinstance(points, int) else 1
        work = x.size if params["fft_type"] is not FftType.IRFFT else out.size
        return Cost(int(5 * depth) * work, x.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        z, x = sample_array(2, 5, dtype=np.complex64), sample_array(2, 4, 5)
        for kind in (FftType.FFT, FftType.IFFT):
            yield Sample((z,), {"fft_type": kind, "fft_lengths": (5,)})
        yield Sample((z,), {"fft_type": FftType.FFT, "fft_lengths": (2, 5)})
        yield Sample((x,), {"fft_type": FftType.RFFT, "fft_lengths": (5,)})
        yield Sample((x[..., :4],), {"fft_type": FftType.RFFT, "fft_lengths": (4, 4)})
        z = sample_array(4, 3, dtype=np.complex64)
        for lengths in ((4,), (5,), (4, 5)):
            yield Sample((z,), {"fft_type": FftType.IRFFT, "fft_lengths": lengths})


fft_p = Fft()


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[Size]) -> Array:
    """The discrete Fourier transform over the last `len(fft_lengths)` axes.

    `fft_type` is an `FftType` or its name. Raises ShapeError when the axes do not have the lengths
    (n // 2 + 1 in the last one for IRFFT), DTypeError for complex numbers where real ones are
    needed. complex32 is transformed in complex64, and the result rounded.

    >>> import functrans as ft
    >>> ft.lax.fft(ft.numpy.ones(4), "RFFT", (4,)).real.tolist()
    [4.0, 0.0, 0.0]
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ArgumentError(f"fft: no transform is named {fft_type!r}.", where=user_source(),
                                fix="one of " + ", ".join(FftType.__members__))
        fft_type = FftType[fft_type.upper()]
    lengths = tuple(fft_lengths)
    if fft_type is not FftType.RFFT and dtypes.kind(get_aval(x).dtype) == "f":
        x = convert_element_type(x, dtypes.complex_dtype(get_aval(x).dtype))
    if get_aval(x).dtype == dtypes.complex32:
        wide = fft(convert_element_type(x, np.complex64), fft_type, lengths)
        return convert_element_type(
            wide, np.float16 if fft_type is FftType.IRFFT else dtypes.complex32)
    if fft_type in (FftType.FFT, FftType.IFFT) and lengths == get_aval(x).shape[-len(lengths):] \
            and any(isinstance(n, int) and n == 0 for n in lengths):
        return convert_element_type(x, dtypes.complex_dtype(get_aval(x).dtype))
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=lengths)
