"""Sorting on a GPU at the sizes of its tiles: the interpreter does not run the PTX of a block."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(0)
SHAPES = [(5, 200), (7, 257), (9, 3000), (3, 5121), (2, 6145), (300, 9000), (1000003,)]


def keys(dtype, shape):
    """Numbers with ties, and of floats both zeros and NaN."""
    if dtype[0] in "iu":
        wide = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        return np.where(RNG.random(shape) < 0.5, wide, wide % 7)
    special = RNG.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan]), shape)
    return np.where(RNG.random(shape) < 0.1, special, RNG.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int32", "uint64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_all_sizes(dtype, shape):
    x = keys(dtype, shape)
    k = min(shape[-1], 50)
    order = np.argsort(x, axis=-1, kind="stable")
    found = ft.jit(lambda x: (jnp.sort(x), jnp.argsort(x), *lax.top_k(x, k)))(
        ft.device_put(x, "gpu"))
    values, places, largest, where = map(np.asarray, found)
    expected = np.take_along_axis(x, order, -1)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(largest, expected[..., ::-1][..., :k])
    np.testing.assert_array_equal(np.take_along_axis(x, where, -1), largest)
    if x.dtype.kind == "f":
        zero = values == 0
        np.testing.assert_array_equal(np.signbit(values[zero]), np.signbit(expected[zero]))


def test_several_keys_with_what_goes_along():
    x, y, z = (keys(dtype, (20000,)) for dtype in ("int8", "float64", "float32"))
    order = np.lexsort((y, x))
    found = ft.jit(lambda *xs: lax.sort(xs, num_keys=2))(
        *(ft.device_put(a, "gpu") for a in (x, y, z)))
    for a, b in zip(found, (x, y, z), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b[order])
