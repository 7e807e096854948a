"""float64 to narrow floats: rounded once, to the nearest, in every backend.

Twice, to float32 and then on, is wrong beside the middle of two numbers: all of these are tried.
"""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
from functrans.lowering.passes.narrow_formats import FLOATS

CODES = {"float16": 16, "bfloat16": 16, **{n: int(ml_dtypes.finfo(n).bits) for n in FLOATS}}
QUIRK = {"float8_e8m0fnu": 2.0**-126}
"""Below its second number this format goes by float32's subnormal numbers, as ml_dtypes has it."""


def dtype_of(name):
    return np.dtype(np.float16) if name == "float16" else np.dtype(getattr(ml_dtypes, name))


def beside_middles(name):
    """float64s in and beside the middles of neighbours, these, and which codes they have."""
    codes = np.arange(1 << CODES[name], dtype=f"u{dtype_of(name).itemsize}").view(dtype_of(name))
    with np.errstate(invalid="ignore"):
        values = codes.astype(np.float64)
    numbers = np.unique(values[np.isfinite(values) & (values >= QUIRK.get(name, -np.inf))])
    low, high = numbers[:-1], numbers[1:]
    middle = low + (high - low) / 2
    of_number = dict(zip(values.tolist(), codes.view(f"u{codes.itemsize}").tolist(), strict=True))
    even = np.array([of_number[x] % 2 == 0 for x in low.tolist()])
    return low, high, middle, even


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("backend", ["eager", "reference", "c", "triton"])
def test_middles_and_their_neighbours(backend, name):
    low, high, middle, even = beside_middles(name)
    if backend == "triton":  # the interpreter is slow
        every = slice(None, None, max(1, len(middle) // 300))
        low, high, middle, even = low[every], high[every], middle[every], even[every]
    x = np.stack([np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf), middle, low])

    def convert(x):
        return ft.lax.convert_element_type(x, dtype_of(name))

    with ft.config.use_backend("auto" if backend == "eager" else backend):
        found = np.asarray((convert if backend == "eager" else ft.jit(convert))(ft.numpy.array(x)))
    below, above, between, same = found.astype(np.float64)
    np.testing.assert_array_equal(below, low)
    np.testing.assert_array_equal(above, high)
    np.testing.assert_array_equal(same, low)
    if name not in QUIRK:  # which has no even numbers: halves go up
        np.testing.assert_array_equal(between, np.where(even, low, high))


@pytest.mark.parametrize("backend", ["reference", "c", "triton"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_ends(backend, name):
    info = ml_dtypes.finfo(dtype_of(name))
    top, least = float(info.max), float(info.smallest_subnormal)
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -1e300, top, least, least / 2,
                  least * (0.5 + 2.0**-40), -least * (0.5 + 2.0**-40), 1e-300, -5e-324])
    with np.errstate(all="ignore"):
        want = x.astype(np.float32).astype(dtype_of(name)).astype(np.float64)
    want[10:12] = least, -least
    with ft.config.use_backend(backend):
        found = np.asarray(ft.jit(lambda x: x.astype(dtype_of(name)))(x)).astype(np.float64)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found[3:]), np.signbit(want[3:]))


@pytest.mark.parametrize("backend", ["reference", "c", "triton"])
def test_parts_of_complex_numbers(backend):
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40])
    with ft.config.use_backend(backend):
        found = ft.jit(lambda z: (z.astype("complex32"), z.astype("bfloat16")))(x - 1j * x)
    parts = np.asarray(found[0].astype("complex64"))
    np.testing.assert_array_equal(parts.real, [1 + 2.0**-10, 1.0])
    np.testing.assert_array_equal(parts.imag, [-1 - 2.0**-10, -1.0])
    assert found[1].tolist() == [1.0, 1.0]
