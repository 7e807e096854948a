"""Discrete Fourier transforms by cuFFT, which does not scale them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.primitive import Primitive
from functrans.lowering.triton.libraries.functions import call
from functrans.primitives.arithmetic import complex, imag, mul, real
from functrans.primitives.broadcast import move_axis, prod
from functrans.primitives.fft import FftType, fft_p

__all__ = ["FUNCTIONS", "MOST_AXES"]

MOST_AXES = 3
KINDS = {FftType.FFT: 0, FftType.IFFT: 1, FftType.RFFT: 2, FftType.IRFFT: 3}


def fft(x: Any, *, fft_type: FftType, fft_lengths: Sequence[int]) -> Any:
    lengths = tuple(fft_lengths)
    if fft_type is FftType.IRFFT and len(lengths) > 1:
        # cuFFT takes half of a spectrum for that of real numbers, whatever it is; NumPy transforms
        # the other axes first
        last, first = x.ndim - 1, x.ndim - len(lengths)
        x = move_axis(_transformed(move_axis(x, last, first), FftType.IFFT, lengths[:-1]),
                      first, last)
        lengths = lengths[-1:]
    return _transformed(x, fft_type, lengths)


def _transformed(x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    lead = x.shape[:x.ndim - len(lengths)]
    real_type, complex_type = dtypes.real_dtype(x.dtype), dtypes.complex_dtype(x.dtype)
    if kind is FftType.RFFT:
        out = ShapedArray((*lead, *lengths[:-1], lengths[-1] // 2 + 1), complex_type)
    else:
        out = ShapedArray((*lead, *lengths), real_type if kind is FftType.IRFFT else complex_type)
    numbers = (KINDS[kind], int(real_type.itemsize == 8), int(prod(lead)), *lengths)
    (y,) = call("fft", numbers, [x], [out])
    scale = 1 / prod(lengths)
    if kind is FftType.IFFT:
        return complex(mul(real(y), scale), mul(imag(y), scale))
    return mul(y, scale) if kind is FftType.IRFFT else y


FUNCTIONS: dict[Primitive, Callable[..., Any]] = {fft_p: fft}
