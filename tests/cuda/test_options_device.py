"""Settings and arguments of programs on a real GPU: `pytest -m gpu tests/cuda`."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import _runtime as rt
from functrans.core.errors import ArgumentError

pytestmark = pytest.mark.gpu

RNG = np.random.default_rng(0)


def put(x, device="gpu"):
    return ft.device_put(x, device)


def test_products_are_as_exact_as_was_asked_for():
    x, y = (RNG.normal(size=(512, 512)).astype("f") for _ in range(2))
    expected = x.astype("f8") @ y.astype("f8")
    errors = []
    for precision in ("default", "high", "highest"):
        product = ft.jit(lambda x, y, p=precision: jnp.matmul(x, y, precision=p))
        found = np.asarray(product(put(x), put(y)))
        errors.append(np.abs(found - expected).max() / np.abs(expected).max())
    assert 1e-5 < errors[0] < 2e-3
    assert errors[1] < 2e-6 and errors[2] < 2e-6
    with ft.config.matmul_precision("highest"):
        found = np.asarray(ft.jit(lambda x, y: x @ y)(put(x), put(y)))
    assert np.abs(found - expected).max() / np.abs(expected).max() == errors[2]


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_float8_is_converted_as_by_numpy(dtype):
    codes = np.arange(256, dtype="u1").view(dtype)
    with np.errstate(all="ignore"):
        numbers = np.concatenate([codes.astype("f4"), RNG.normal(size=5000).astype("f4"),
                                  np.exp(RNG.normal(size=5000) * 8).astype("f4")])
        expected = numbers.astype(dtype)
    found = np.asarray(ft.jit(lambda x: x.astype(dtype))(put(numbers)))
    nan = np.isnan(expected.astype("f4"))
    np.testing.assert_array_equal(np.isnan(found.astype("f4")), nan)
    np.testing.assert_array_equal(found.view("u1")[~nan], expected.view("u1")[~nan])
    wide = np.asarray(ft.jit(lambda x: x.astype("float32"))(put(codes)))
    np.testing.assert_array_equal(wide, codes.astype("f4"))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("shape", [(512, 1024, 768), (70, 96, 40)])
@pytest.mark.parametrize("precision", ["default", "highest"])
def test_products_of_float8(dtype, shape, precision):
    m, k, n = shape
    x, y = (RNG.normal(size=s).astype("f4").astype(dtype) for s in ((m, k), (k, n)))
    expected = x.astype("f8") @ y.astype("f8")
    for left, right in ((x, y), (x.T.copy().T, y.T.copy().T)):
        found = np.asarray(ft.jit(lambda x, y: jnp.matmul(
            x, y, preferred_element_type="float32", precision=precision))(put(left), put(right)))
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < (2e-3 if precision == "default" else 5e-4)


def test_deterministic_gradients_are_the_same_bits_in_every_run():
    table, rows = RNG.normal(size=(1000, 96)).astype("f"), RNG.integers(0, 50, 100_000)
    weights = RNG.normal(size=(100_000, 96)).astype("f")
    gradient = ft.jit(ft.grad(lambda t, i, w: (t[i] * w).sum()))
    args = put(table), put(rows.astype("i")), put(weights)
    with ft.config.deterministic():
        found = [np.asarray(gradient(*args)) for _ in range(10)]
    assert all(np.array_equal(found[0], f) for f in found[1:])
    expected = np.zeros((1000, 96))
    np.add.at(expected, rows, weights)
    np.testing.assert_allclose(found[0], expected, 1e-4, 1e-3)
    np.testing.assert_allclose(np.asarray(gradient(*args)), expected, 1e-4, 1e-3)


@pytest.mark.parametrize("op", ["max", "min", "multiply"])
def test_scatters_that_have_no_atomic_operation(op):
    base, rows = RNG.normal(size=(500, 7)).astype("f"), RNG.integers(0, 500, 900)
    updates = RNG.normal(size=(900, 7)).astype("f")
    updates[3, 2], base[5, 5] = np.nan, -np.float32("nan")
    found = ft.jit(lambda x, i, u: getattr(x.at[i], op)(u))(
        put(base), put(rows.astype("i")), put(updates))
    expected = base.copy()
    {"max": np.maximum, "min": np.minimum, "multiply": np.multiply}[op].at(expected, rows, updates)
    np.testing.assert_allclose(np.asarray(found), expected, 1e-5)


def test_a_step_with_donated_arguments_allocates_nothing():
    def step(w, m, x):
        m = 0.9 * m + jnp.tanh(x)
        return w - 0.1 * m, m

    w, m, x = (put(RNG.normal(size=(1000, 1000)).astype("f")) for _ in range(3))
    expected = [np.asarray(a) for a in step(*map(np.asarray, (w, m, x)))]
    donating = ft.jit(step, donate_argnums=(0, 1))
    memory = donating.lower(w, m, x).compile().memory_analysis()
    assert memory["donated"] == 8_000_000 and memory["temporaries"] == 0
    places = [rt.cuda_pointer(a)[0] for a in (w, m)]
    used = ft.devices("gpu")[0].memory_stats()["bytes_in_use"]
    given = w
    w, m = donating(w, m, x)
    assert [rt.cuda_pointer(a)[0] for a in (w, m)] == places
    assert ft.devices("gpu")[0].memory_stats()["bytes_in_use"] == used
    np.testing.assert_allclose(np.asarray(w), expected[0], 1e-5, 1e-5)
    np.testing.assert_allclose(np.asarray(m), expected[1], 1e-5, 1e-5)
    with pytest.raises(RuntimeError, match="donated"):
        _ = given + 1


def test_a_row_is_updated_in_place():
    update = ft.jit(lambda x, i, y: x.at[i].set(y), donate_argnums=0, require_inplace=True)
    x = put(np.zeros((100, 300), "f"))
    place = rt.cuda_pointer(x)[0]
    for i in range(10):
        x = update(x, put(np.int32(i)), put(np.full(300, i + 1, "f")))
    assert rt.cuda_pointer(x)[0] == place
    np.testing.assert_array_equal(np.asarray(x)[:, 0], [*range(1, 11), *[0] * 90])


def test_programs_run_where_their_arguments_are():
    fun = ft.jit(lambda x, y: jnp.tanh(x @ y).sum(0))
    x, y = RNG.normal(size=(64, 64)).astype("f"), RNG.normal(size=(64, 64)).astype("f")
    results = []
    for device in ft.devices("gpu"):
        found = fun(put(x, device), put(y, device))
        assert found.device == device
        results.append(np.asarray(found))
        with ft.config.default_device(device):
            assert fun(x, y).device == device
        assert device.memory_stats()["bytes_in_use"] > 0
    assert all(np.array_equal(results[0], r) for r in results)


def test_arrays_move_between_gpus():
    first, last = ft.devices("gpu")[0], ft.devices("gpu")[-1]
    for size in (3, 10_000, 30_000_000):
        x = np.arange(size, dtype="f")
        there = put(ft.jit(lambda x: x * 2)(put(x, first)), last)
        assert there.device == last
        back = put(ft.jit(lambda x: x + 1)(there), first)
        np.testing.assert_array_equal(np.asarray(back), x * 2 + 1)


def test_arguments_on_several_gpus_are_refused():
    places = {str(d): put(np.ones(4, "f"), d) for d in ft.devices("gpu")}
    fun = ft.jit(lambda *xs: sum(xs))
    if len(places) == 1:
        np.testing.assert_array_equal(np.asarray(fun(*places.values())), np.ones(4))
        return
    with pytest.raises(ArgumentError, match=r"on gpu:0 .* and on gpu:1") as caught:
        fun(*places.values())
    assert "device_put" in str(caught.value)


def test_zeros_have_signs():
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        x = put(jnp.asarray([0.0, -0.0, 2.0], dtype))
        found = np.asarray(ft.jit(lambda x: -x)(x)).astype("f4")
        np.testing.assert_array_equal(np.signbit(found), [True, False, True])
