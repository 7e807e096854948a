"""Fourier transforms as compiled programs call them, against the primitive on NumPy."""

import numpy as np
import pytest
from library_helpers import I64, POINTER, code, library

from functrans.primitives.fft import FftType, fft_p


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", list(FftType))
def test_transforms_are_those_of_the_primitive(kind, dtype):
    rng = np.random.default_rng(0)
    function = library("fft", I64, I64, I64, POINTER, I64, POINTER, POINTER)
    number = list(FftType).index(kind)
    for lead in [(), (7,), (0,)]:
        for lengths in [(1,), (5,), (8,), (4, 5), (3, 6), (2, 3, 4), (3, 1, 7), (300,), (40, 50)]:
            inside = lengths
            if kind is FftType.IRFFT:
                inside = (*lengths[:-1], lengths[-1] // 2 + 1)
            x = rng.standard_normal((*lead, *inside))
            if kind is not FftType.RFFT:
                x = x + 1j * rng.standard_normal(x.shape)
            x = x.astype(dtype if kind is FftType.RFFT else np.result_type(dtype, np.complex64))
            expected = fft_p.evaluate(x, fft_type=kind, fft_lengths=lengths) if x.size else x
            out = np.empty_like(expected)
            function(number, code(dtype), len(lengths), np.array(lengths, np.int64),
                     int(np.prod(lead, dtype=int)), x, out)
            if dtype == np.float64:
                np.testing.assert_array_equal(out, expected)
            else:  # NumPy's forward transforms of float32 are computed in double
                scale = np.abs(expected).max(initial=0)
                np.testing.assert_allclose(out, expected, 0, 1e-6 * scale)
