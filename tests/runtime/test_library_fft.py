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
            scale = np.abs(expected).max(initial=0)
            np.testing.assert_allclose(out, expected, 0, 4 * np.finfo(dtype).eps * scale)


LENGTHS = [2, 3, 4, 5, 7, 11, 13, 16, 17, 30, 121, 169, 1001, 1024, 1536, 2310, 4096]


def along(kind, x, n, axis=-1):
    """A transform by the library along the last axis, or the first of two."""
    function = library("fft", I64, I64, I64, POINTER, I64, POINTER, POINTER)
    out = np.empty_like(fft_p.evaluate(np.zeros_like(x), fft_type=kind, fft_lengths=n))
    function(list(FftType).index(kind), code(x.real.dtype), len(n), np.array(n, np.int64),
             x.size // int(np.prod(x.shape[x.ndim - len(n):])), x, out)
    return out


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", LENGTHS)
def test_lines_do_not_depend_on_those_beside_them(n, dtype):
    """Of all radices, with and without lanes left over, long ones by columns and rows."""
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(19, n)) + 1j * rng.normal(size=(19, n))).astype(dtype)
    for kind in (FftType.FFT, FftType.IFFT):
        whole = along(kind, x, (n,))
        for k in (0, 15, 18):
            np.testing.assert_array_equal(along(kind, x[k:k + 1], (n,)), whole[k:k + 1])
        exact = fft_p.evaluate(x.astype(np.complex128), fft_type=kind, fft_lengths=(n,))
        off = np.linalg.norm(whole - exact) / np.linalg.norm(exact)
        assert off < 2 * np.finfo(dtype).eps
    back = along(FftType.IFFT, along(FftType.FFT, x, (n,)), (n,))
    np.testing.assert_allclose(back, x, 0, 30 * np.finfo(dtype).eps)


@pytest.mark.parametrize("n", [2, 6, 26, 64, 1024, 2048, 3000])
def test_real_lines(n):
    x = np.random.default_rng(n).normal(size=(18, n)).astype(np.float32)
    found = along(FftType.RFFT, x, (n,))
    exact = np.fft.rfft(x.astype(np.float64))
    assert np.linalg.norm(found - exact) < 3e-7 * np.linalg.norm(exact)
    assert not found[:, 0].imag.any() and not found[:, -1].imag.any()
    np.testing.assert_allclose(along(FftType.IRFFT, found, (n,)), x, 0, 4e-6)


def test_infinities_stay_in_their_lines():
    x = np.ones((20, 64), np.complex64)
    x[3, 5] = np.inf
    found = along(FftType.FFT, x, (64,))
    assert not np.isfinite(found[3]).any()
    assert np.isfinite(np.delete(found, 3, axis=0)).all()
