"""Activations: values and derivatives against golden numbers (jax 0.10), and far out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

nn = ft.nn
GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "nn.json").read_text())
X = np.array(GOLDEN["x"])
VARIANTS = {"gelu_exact": lambda x: nn.gelu(x, approximate=False),
            "elu_2": lambda x: nn.elu(x, 2.0),
            "celu_half": lambda x: nn.celu(x, 0.5),
            "leaky_relu_0.3": lambda x: nn.leaky_relu(x, 0.3)}
NAMES = sorted(GOLDEN["activations"])
SMOOTH = ["sigmoid", "softplus", "silu", "log_sigmoid", "gelu", "gelu_exact", "squareplus", "mish",
          "tanh"]


def activation(name: str) -> Any:
    return VARIANTS.get(name) or getattr(nn, name)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_golden_values_and_derivatives(name: str) -> None:
    f, golden = activation(name), GOLDEN["activations"][name]
    np.testing.assert_allclose(np.asarray(f(X)), golden["value"], rtol=1e-9, atol=1e-13)
    got = np.asarray(ft.grad(lambda x: f(x).sum())(X))
    # at its kinks jax's sparse_sigmoid takes the mean of both sides
    kinks = (np.abs(X) == 1) & (name == "sparse_sigmoid")
    np.testing.assert_allclose(got[~kinks], np.array(golden["grad"])[~kinks], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.asarray(ft.jvp(f, (X,), (np.ones_like(X),))[1]), got, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ft.vmap(ft.grad(f))(X)), got, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ft.jit(f)(X)), np.asarray(f(X)), rtol=1e-14, atol=2e-16)


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_of_smooth_ones(name: str) -> None:
    f = activation(name)
    x = np.array([-3.0, -0.5, 0.0, 0.2, 4.0])
    first = ft.grad(lambda x: f(x).sum())
    second = np.asarray(ft.grad(lambda x: first(x).sum())(x))
    steps = (np.asarray(first(x + 1e-5)) - np.asarray(first(x - 1e-5))) / 2e-5
    np.testing.assert_allclose(second, steps, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_far_out_are_finite(name: str, dtype: Any) -> None:
    f = activation(name)
    x = np.array([-1e30, -1e4, -100.0, 100.0, 1e4, 1e30], dtype)
    if name == "squareplus":  # its square overflows
        x = x[1:-1]
    value, slope = f(x), ft.grad(lambda x: f(x).sum())(x)
    assert value.dtype == slope.dtype == dtype
    assert np.isfinite(np.asarray(value)).all() and np.isfinite(np.asarray(slope)).all()
    assert np.all(np.abs(np.asarray(slope)) <= 1.1)


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(np.asarray(activation(name)(np.array([np.nan, 1.0]))))[0]


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_are_kept(name: str) -> None:
    f = activation(name)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        x = jnp.asarray(np.array([-1.0, 0.5, 2.0]).astype(dtype))
        assert f(x).dtype == dtype
        assert ft.grad(lambda x: f(x).sum().astype("float32"))(x).dtype == dtype
    integers = f(jnp.asarray(np.array([-2, 0, 3], np.int32)))
    assert integers.dtype == (np.int32 if name in ("relu", "hard_tanh", "identity") else np.float32)
    assert np.asarray(f(1.0)).shape == ()


def test_glu() -> None:
    x = np.arange(8.0).reshape(2, 4)
    expected = x[:, :2] / (1 + np.exp(-x[:, 2:]))
    np.testing.assert_allclose(np.asarray(nn.glu(x)), expected)
    np.testing.assert_allclose(np.asarray(nn.glu(x.T, axis=0)), expected.T)
    with pytest.raises(ValueError, match="odd size 3"):
        nn.glu(x[:, :3])


def test_kinks_take_one_side() -> None:
    assert float(ft.grad(nn.relu)(0.0)) == 0.0
    assert float(ft.grad(nn.relu6)(6.0)) == 0.0
    assert float(ft.grad(nn.leaky_relu)(0.0)) == 1.0
    assert float(ft.grad(ft.grad(nn.softplus))(0.0)) == 0.25
