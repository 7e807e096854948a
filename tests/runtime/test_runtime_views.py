"""Views, products and sums of arrays in C++, against NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import _runtime as rt


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1023,), (1024,), (4097,), (70_001,), (3, 5000), (2, 3, 1500)])
def test_sums_are_those_of_float64(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = x.astype(np.longdouble)
    bound = 16 * np.finfo(dtype).eps * np.sqrt(x.size)
    for axes in {tuple(range(x.ndim)), (x.ndim - 1,), (0,)}:
        got = rt.sum_over(jnp.asarray(x), axes)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got), exact.sum(axes).astype(dtype), atol=bound,
                                   rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_sums_of_special_values(special):
    x = np.ones(5000, np.float32)
    x[4321] = special
    np.testing.assert_array_equal(np.asarray(rt.sum_over(jnp.asarray(x), (0,))), special)


def test_views_are_numpys_and_share_memory():
    x = jnp.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    moved = rt.transpose_view(x, (2, 0, 1))
    np.testing.assert_array_equal(moved, np.asarray(x).transpose(2, 0, 1))
    flat = rt.reshape_view(x, (6, 4))
    np.testing.assert_array_equal(flat, np.asarray(x).reshape(6, 4))
    wide = rt.broadcast_view(flat, (5, 6, 4), (1, 2))
    np.testing.assert_array_equal(wide, np.broadcast_to(np.asarray(flat), (5, 6, 4)))
    for view in (moved, flat, wide):
        assert np.shares_memory(np.asarray(view), np.asarray(x))
        assert not np.asarray(view).flags.writeable
    del x
    np.testing.assert_array_equal(np.asarray(flat)[0], [0, 1, 2, 3])


@pytest.mark.parametrize("call", [
    lambda x: rt.reshape_view(x, (5,)), lambda x: rt.reshape_view(x, (-1,)),
    lambda x: rt.reshape_view(x, (2**62, 2**62)), lambda x: rt.transpose_view(x, (0, 0)),
    lambda x: rt.transpose_view(x, (7, 1)), lambda x: rt.broadcast_view(x, (3,), (0, 1)),
    lambda x: rt.broadcast_view(x, (2, 3), (1, 0)), lambda x: rt.broadcast_view(x, (9, 9), (0, 1)),
    lambda x: rt.sum_over(x, (5,)), lambda x: rt.sum_over(x, ()), lambda x: rt.sum_over(1.0, (0,)),
    lambda x: rt.matmul(x, x), lambda x: rt.matmul(x), lambda x: rt.reshape_view(x, [6]),
], ids=range(14))
def test_what_does_not_apply_is_left_to_python(call):
    assert call(ft.numpy.ones((2, 3))) is NotImplemented
