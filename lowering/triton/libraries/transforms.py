"""Discrete Fourier transforms by cuFFT, which does not scale them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.primitive import Primitive
from functrans.lowering.triton.libraries.functions import call
from functrans.primitives.arithmetic import complex, imag, mul, real
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import move_axis, prod
from functrans.primitives.compare import bitwise_or, eq, select_n
from functrans.primitives.fft import FftType, fft_p
from functrans.primitives.shape import broadcasted_iota

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
    if kind is FftType.IRFFT:
        x = _with_real_ends(x, lengths[-1])
    numbers = (KINDS[kind], int(real_type.itemsize == 8), int(prod(lead)), *lengths)
    (y,) = call("fft", numbers, [x], [out])
    scale = 1 / prod(lengths)
    if kind is FftType.IFFT:
        return complex(mul(real(y), scale), mul(imag(y), scale))
    return mul(y, scale) if kind is FftType.IRFFT else y


def _with_real_ends(x: Any, length: int) -> Any:
    """Half of a spectrum, whose first number and, of an even length, last one are real.

    Those of real numbers are. NumPy takes their imaginary parts for 0, and cuFFT does so for some
    lengths alone: stacks of 128 points were 9 % off.
    """
    at = broadcasted_iota(np.int32, x.shape, x.ndim - 1)
    is_end = eq(at, 0)
    if length % 2 == 0:
        is_end = bitwise_or(is_end, eq(at, length // 2))
    return complex(real(x), select_n(is_end, imag(x), zeros(get_aval(imag(x)))))


FUNCTIONS: dict[Primitive, Callable[..., Any]] = {fft_p: fft}
