"""What is computed per tile of a matrix product, and that it is the same."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from tests.lowering.schedules import plan, reasons, steps

RNG = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


X, W, B = array(96, 40), array(40, 112), array(112)
Y, V = array(96, 24), array(24, 112)
Z = array(96, 112)


def layer(x, w, b):
    return ft.nn.gelu(x @ w + b)


def relu_gradient(x, w, b, z):
    out, pull = ft.vjp(lambda x, w, b: ft.nn.relu(x @ w + b), x, w, b)
    return out, *pull(z)


PROGRAMS = {
    "bias_activation": (lambda x, w, b: jnp.tanh(x @ w + b), (X, W, B), ["gemm(full)"]),
    "residual_scale": (lambda x, w, z: 0.5 * (x @ w) + z, (X, W, Z), ["gemm(full)"]),
    "product_is_kept": (lambda x, w, b: (x @ w, jnp.tanh(x @ w + b)), (X, W, B),
                        ["gemm(full) kept"]),
    "two_products": (lambda x, w, y, v: jnp.tanh(x @ w + y @ v), (X, W, Y, V),
                     ["gemm", "gemm(full)"]),
    "each_its_own": (lambda x, w, y, v, z: (jnp.sin(x @ w) + z, jnp.cos(y @ v) + z),
                     (X, W, Y, V, Z), ["gemm(full)", "gemm(full)"]),
    "rows_of_columns": (lambda x, w: (x @ w) * jnp.arange(96.0)[:, None], (X, W), ["gemm(full)"]),
    "several_free_axes": (lambda x, w, b: jnp.tanh(x.reshape(8, 12, 40) @ w + b), (X, W, B),
                          ["gemm(full)"]),
    "batched": (lambda x, w: jnp.tanh(x.reshape(2, 48, 40) @ w.reshape(2, 40, 56)), (X, W),
                ["gemm(full)"]),
    "sum_of_squares": (lambda x, w: jnp.sum(jnp.tanh(x @ w + 1.0) ** 2), (X, W),
                       ["gemm", "reduce_row"]),
    "rest_is_a_kernel": (lambda x, w, z: (lambda y: (y, y.sum(axis=0)))(jnp.tanh(x @ w) * z),
                         (X, W, Z), ["gemm(full)", "reduce_column"]),
    "softmax": (lambda x, w: ft.nn.softmax(x @ w), (X, W),
                ["gemm", "reduce_row full reduce_row full"]),
    "transposed_sum": (lambda x, w, z: (x @ w) + z.reshape(112, 96).T, (X, W, Z), ["gemm", "full"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_fuses(name):
    f, args, expected = PROGRAMS[name]
    assert steps(f, *args) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    f, args, _ = PROGRAMS[name]
    check(f, *args)


def check(f, *args, tolerance=1e-5):
    args = [jnp.asarray(x) for x in args]
    got, expected = ft.jit(f)(*args), f(*args)
    for x, y in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype
        x, y = np.asarray(x).astype(np.float64), np.asarray(y).astype(np.float64)
        np.testing.assert_allclose(x, y, atol=tolerance * (1 + np.abs(y).max(initial=0)))


def test_gradient_of_a_layer():
    assert steps(relu_gradient, X, W, B, Z)[0].startswith("gemm(")
    check(relu_gradient, X, W, B, Z)


def test_the_product_has_no_memory():
    executable = ft.jit(layer).lower(X, W, B).compile()
    assert executable.memory_analysis()["temporaries"] == 0


def test_reasons_are_kept():
    assert "no epilogue of a product: it reduces the product before anything else" in reasons(
        lambda x, w: ft.nn.softmax(x @ w), X, W)
    assert "no epilogue of a product: the product is small" in reasons(
        lambda x, w: jnp.tanh(x @ w), array(8, 8), array(8, 8))


@pytest.mark.parametrize("dtype", ["float64", "float16", ml_dtypes.bfloat16, "int32", "int8"])
def test_dtypes(dtype):
    x, w, b = X.astype(dtype), W.astype(dtype), B.astype(dtype)

    def f(x, w, b):
        return x @ w + b, jnp.maximum(x @ w, 0).astype("float32")

    exact = dtype in ("int32", "int8")
    check(f, x, w, b, tolerance=0 if exact else 1e-5 if dtype == "float64" else 2e-2)
    assert any("gemm(" in s for s in steps(f, x, w, b))


def test_sums_of_halves_are_not_rounded_in_between():
    x, w = X.astype(ml_dtypes.bfloat16), W.astype(ml_dtypes.bfloat16)

    def f(x, w):
        return ft.lax.dot_general(x, w, (((1,), (0,)), ((), ())),
                                  preferred_element_type="float32").astype("bfloat16")

    assert steps(f, x, w) == ["gemm(full)"]
    check(f, x, w, tolerance=1e-2)


@given(st.integers(1, 70), st.integers(1, 90), st.integers(1, 40), st.integers(1, 3),
       st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_shapes(m, n, k, batch, turned, kept):
    x, w = array(batch, m, k), array(batch, n, k) if turned else array(batch, k, n)
    bias, rest = array(n), array(batch, m, n)

    def f(x, w, bias, rest):
        out = x @ (w.swapaxes(1, 2) if turned else w)
        result = jnp.where(rest > 0, out * 0.5 + bias, rest)
        return (result, out, result.sum(axis=-1)) if kept else result

    check(f, x, w, bias, rest)




def test_plan_keeps_the_order():
    schedule = plan(layer, X, W, B)
    assert len(schedule.steps) == 1
    assert schedule.stored == set(schedule.steps[0].results)
