"""nextafter in every floating dtype: a program gives NumPy's number, to the bit."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.passes.narrow_formats import FLOATS


def numbers(dtype):
    """All numbers of a dtype of one byte, marked ones of the others."""
    dtype = np.dtype(jnp.dtype(dtype))
    if dtype.itemsize == 1:
        bits = int(jnp.finfo(dtype).bits)
        return (np.arange(1 << bits)).astype(np.uint8).view(dtype)
    info = jnp.finfo(dtype)
    marked = np.array([0.0, -0.0, 1, -1, 2.5, float(info.max), float(info.min), float(info.tiny),
                       float(info.smallest_subnormal), np.inf, -np.inf, np.nan])
    return marked.astype(dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "bfloat16", "float16", "float32", "float64"])
def test_programs_step_as_numpy_does(dtype):
    x = numbers(getattr(jnp, dtype).dtype)
    few = x if len(x) < 20 else x[:: max(len(x) // 16, 1)]
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.broadcast_arrays(x[:, None], few[None]))
    with np.errstate(all="ignore"):
        # before 2.5 NumPy's float16 gave the first of two zeros
        expected = np.where(a == b, b, np.nextafter(a, b))
    for found in (lax.nextafter(a, b), ft.jit(lax.nextafter)(a, b), ft.vmap(jnp.nextafter)(a, b)):
        found = np.asarray(found)
        assert found.dtype == expected.dtype
        nan = np.isnan(expected.astype("d"))
        assert (np.isnan(found.astype("d")) == nan).all()
        kind = f"u{expected.dtype.itemsize}"
        np.testing.assert_array_equal(found.view(kind)[~nan], expected.view(kind)[~nan])


def test_the_derivative_is_one():
    for dtype in ("float16", "float32"):
        one, three = jnp.asarray(1, dtype), jnp.asarray(3, dtype)
        slope = ft.grad(lax.nextafter)(one, three)
        assert slope.item() == 1 and slope.dtype == dtype
    out = ft.jit(lax.nextafter)(jnp.ones((2, 1), "float16"), jnp.full((1, 3), 2, "float16"))
    assert out.shape == (2, 3) and (np.asarray(out) == np.nextafter(np.float16(1), 2)).all()
