"""Sorting and top_k: order of special values, ties, stability, several keys, derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.test_util import check_grads

FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])


def arrays(dtype=np.float32, elements=FLOATS):
    return hnp.arrays(dtype, hnp.array_shapes(max_dims=3, min_side=0, max_side=9),
                      elements=elements)


def bits(x):
    """Signs of zeros count, those of NaN do not."""
    x = np.asarray(x)
    return np.where(np.isnan(x), np.float32(np.nan), x).tobytes()


@settings(deadline=None, max_examples=80)
@given(arrays(), st.data())
def test_sort_is_a_stable_sort_by_value(x, data):
    axis = data.draw(st.integers(0, x.ndim - 1))
    order = np.argsort(x, axis, kind="stable")
    assert bits(lax.sort(x, axis)) == bits(np.take_along_axis(x, order, axis))
    values, places = lax.sort((x, lax.broadcasted_iota("int32", x.shape, axis)), axis)
    assert np.array_equal(places, order)
    assert bits(values) == bits(np.take_along_axis(x, order, axis))


@settings(deadline=None, max_examples=80)
@given(arrays(), st.data())
def test_top_k_is_the_first_of_a_stable_descending_sort(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    k = data.draw(st.integers(0, x.shape[axis]))
    order = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    order = np.take(order, np.arange(k), axis)
    for wide in (x, x.astype(np.float64)):
        values, indices = lax.top_k(wide, k, axis=axis)
        assert np.array_equal(indices, order)
        assert indices.dtype == np.int32
        np.testing.assert_array_equal(values, np.take_along_axis(wide, order, axis))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64",
                                   "float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 5, (4, 7))).astype(dtype)
    wide = np.asarray(x).astype(np.float64)
    out = lax.sort(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(out).astype(np.float64), np.sort(wide))
    values, indices = lax.top_k(x, 3)
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(values).astype(float), np.sort(wide)[:, ::-1][:, :3])
    np.testing.assert_array_equal(np.take_along_axis(np.asarray(x), np.asarray(indices), 1), values)


def test_extreme_integers():
    for dtype in ("int32", "uint32", "int64"):
        info = np.iinfo(dtype)
        x = np.array([0, info.max, info.min, 1], dtype)
        assert lax.top_k(x, 4)[0].tolist() == sorted(x.tolist(), reverse=True)


def test_complex_numbers_are_ordered_by_real_then_imaginary_part():
    x = np.array([1 + 2j, 1 - 1j, -3 + 0j, complex(np.nan, 0), complex(1, np.nan)], np.complex64)
    np.testing.assert_array_equal(lax.sort(x), np.sort(x))


def test_several_keys():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 3, (2, 30)), rng.integers(0, 3, (2, 30)).astype(np.float32)
    c = rng.standard_normal((2, 30)).astype(np.float32)
    out = lax.sort((a, b, c), num_keys=2)
    for row in range(2):
        order = np.lexsort((b[row], a[row]))
        for x, y in zip((a, b, c), out, strict=True):
            np.testing.assert_array_equal(y[row], x[row][order])
    half = lax.sort((jnp.asarray(b, "bfloat16"), jnp.asarray(c)))
    assert [x.dtype.name for x in half] == ["bfloat16", "float32"]
    assert set(np.asarray(half[1]).ravel().tolist()) == set(c.ravel().tolist())


def test_derivatives():
    x = np.random.default_rng(2).standard_normal((3, 5))
    y = np.random.default_rng(3).standard_normal((3, 5))
    check_grads(lambda a: jnp.sin(lax.sort(a, 0)), (x,), 2)
    check_grads(lambda a, b: lax.sort((a, b), 1)[1] ** 2, (x, y), 2)
    check_grads(lambda a: lax.top_k(a, 2)[0] ** 2, (x,), 2)
    check_grads(lambda a: jnp.median(a, 1), (x,), 2)
    grad = ft.vmap(ft.grad(lambda a: jnp.sum(lax.top_k(a, 2)[0])))(x)
    np.testing.assert_array_equal(grad, (x >= np.sort(x, 1)[:, -2:-1]).astype(float))


@pytest.mark.parametrize("call, text", [
    (lambda x: lax.top_k(x, 9), "k = 9 of 4"),
    (lambda x: lax.top_k(x, -1), "k = -1"),
    (lambda x: lax.sort(x, 3), "no dimension 3"),
    (lambda x: lax.sort((x, x[:2])), "one shape"),
    (lambda x: lax.sort((x, x), num_keys=3), "num_keys = 3 of 2"),
    (lambda x: lax.top_k(x.astype("complex64"), 1), "no order"),
])
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(jnp.arange(4.0))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("runs", [1, 2, 3, 4, 5, 7])
def test_a_few_ascending_runs_are_merged_stably(dtype, runs):
    """Sorted arrays one behind the other, long and short ones, with keys that are equal."""
    draw = np.random.default_rng(runs)
    parts = [np.sort(draw.integers(-50, 50, n)) for n in draw.integers(0, 400, runs)]
    parts[-1] = np.sort(draw.integers(-2**30, 2**30, 3_000))
    keys = np.concatenate(parts).astype(dtype)
    order = ft.jit(lambda x: jnp.argsort(x, stable=True))(keys)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    wide = np.concatenate([keys * 2, keys]).astype(dtype)
    found, places = ft.jit(lambda x: lax.sort((x, jnp.arange(len(x))), num_keys=1))(wide)
    np.testing.assert_array_equal(places, np.argsort(wide, kind="stable"))
    np.testing.assert_array_equal(found, np.sort(wide))
