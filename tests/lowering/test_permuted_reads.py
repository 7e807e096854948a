"""Reads of neighbours in another order, and of elements that lie apart, beside NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.permuted_reads import offsets_of, windows_of

RNG = np.random.default_rng(0)
X = (RNG.normal(size=4096) * 100)

ORDERS = {
    "pairs turned": lambda x: x.reshape(-1, 2)[:, ::-1].reshape(-1),
    "every second": lambda x: x[::2],
    "every third": lambda x: x[:4095].reshape(-1, 3)[:, 1],
    "every fourth from the last": lambda x: x[3::4],
    "every fifth": lambda x: x[::5],
    "an odd length": lambda x: x[1:3333:2],
    "a small axis moved": lambda x: x.reshape(-1, 4, 4).transpose(0, 2, 1).reshape(-1),
    "turned around": lambda x: x[::-1],
    "colours turned": lambda x: x[:4092].reshape(-1, 3)[:, ::-1].reshape(-1),
    "each twice": lambda x: x[:1024].repeat(2),
    "each four times": lambda x: x[:512].repeat(4),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "int8"])
def test_orders(dtype):
    x = X.astype(dtype)
    compiled = ft.jit(lambda x: {name: order(x) * 2 for name, order in ORDERS.items()})
    for name, found in compiled(jnp.asarray(x)).items():
        np.testing.assert_array_equal(np.asarray(found), ORDERS[name](x) * x.dtype.type(2), name)


def test_strides_of_two_to_four_need_no_loads_of_elements():
    x = jnp.asarray(X.astype("f4"))
    for step in (2, 3, 4):
        text = ft.lower(lambda x, k=step: x[::k] * 2, x).compile().as_text()
        assert "permuted" in text
        assert "strided_f32" not in text


def test_offsets_are_the_same_in_all_vectors_or_unknown():
    i, o = LoopVar("i", 64), LoopVar("o", 10)
    at = Index({i: 1})
    assert offsets_of(at * 2 + Index({o: 200}), i, 4) == (0, 2, 4, 6)
    assert offsets_of((at // 2) * 2 + 1 - at % 2, i, 4) == (0, -1, 2, 1)
    assert offsets_of(at // 3, i, 4) is None  # other ones in the next vector
    assert offsets_of((at + Index({o: 1})) % 7, i, 4) is None  # another row, other places


def test_windows_end_with_the_last_place():
    assert windows_of((0, 2, 4, 6), 4) == [0, 3]
    assert windows_of((3, 2, 1, 0), 4) == [0]
    assert windows_of((0, 0, 1, 1), 4) == [0]
    assert windows_of((0, 0, 1, 2), 4) == [0]
    assert windows_of((0, 100, 200, 300), 4) is None


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 15, 17, 31, 40])
def test_short_rows_of_elements_that_lie_apart(n):
    a, b = RNG.normal(size=(9, n)).astype("f4"), RNG.normal(size=(n, 7)).astype("f4")
    both = a[:, :, None] + b[None]
    largest, place, total = ft.jit(lambda a, b: (
        (a[:, :, None] + b[None]).max(1), (a[:, :, None] + b[None]).argmax(1),
        jnp.exp(a[:, :, None] + b[None]).sum(1)))(a, b)
    np.testing.assert_array_equal(largest, both.max(1))
    np.testing.assert_array_equal(place, both.argmax(1))
    np.testing.assert_allclose(total, np.exp(both.astype("f8")).sum(1), 1e-6)


def test_sums_over_many_short_rows_stay_accurate():
    x = np.full((40_000, 2, 3), 0.1, np.float32)
    for axes, count in (((0, 2), 120_000), ((0, 1, 2), 240_000)):
        found = ft.jit(lambda x, axes=axes: (x * jnp.float32(1)).sum(axes))(x)
        np.testing.assert_allclose(found, count * float(np.float32(0.1)), 1e-6)
    y = RNG.normal(size=(64, 4, 64)).astype("f4")
    turned = ft.jit(lambda y: (y.transpose(2, 0, 1) * y[::-1].transpose(2, 0, 1)).sum((1, 2)))(y)
    np.testing.assert_allclose(turned, np.einsum("abc,abc->c", y.astype("f8"),
                                                 y[::-1].astype("f8")), 1e-5, 1e-4)
