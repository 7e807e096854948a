"""Calls of templates in programs: products with what follows them, convolutions."""

from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.triton.kernels import device_math
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import HostStep
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)


def array(*shape, dtype="f"):
    return RNG.normal(size=shape).astype(dtype)


X, W, B, Z = array(96, 40), array(40, 112), array(112), array(96, 112)
Y, V = array(96, 24), array(24, 112)
BX, BW = array(48, 24, 40), array(48, 40, 48)
HALF = [x.astype("bfloat16") for x in (X, W)]

SUM = "a kernel that adds up"
PRODUCTS = {  # a function, its arguments, and its kernels
    "bias and gelu": (lambda x, w, b: ft.nn.gelu(x @ w + b), (X, W, B), ["matmul"]),
    "relu": (lambda x, w, b: ft.nn.relu(x @ w + b), (X, W, B), ["matmul"]),
    "residual": (lambda x, w, z: 0.5 * (x @ w) + z, (X, W, Z), ["matmul"]),
    "converted": (lambda x, w: (x @ w).astype("bfloat16"), (X, W), ["matmul"]),
    "bfloat16": (lambda x, w: ft.nn.gelu((x @ w).astype("f") + 1).astype("bfloat16"), HALF,
                 ["matmul"]),
    "compared": (lambda x, w: x @ w > 0, (X, W), ["matmul"]),
    "kept": (lambda x, w, b: (x @ w, jnp.tanh(x @ w + b)), (X, W, B), ["matmul"]),
    "two products": (lambda x, w, y, v: jnp.tanh(x @ w + y @ v), (X, W, Y, V),
                     ["matmul"]),
    "rows": (lambda x, w: (x @ w) * jnp.arange(96.0)[:, None], (X, W), ["matmul"]),
    "batch": (lambda x, w: jnp.tanh(x.reshape(2, 48, 40) @ w.reshape(2, 40, 56)), (X, W),
              ["matmul"]),
    "many small": (lambda x, w, b: jnp.tanh(jnp.einsum("bij,bjk->bik", x, w) + b[:48]),
                   (array(300, 17, 20), array(300, 20, 48), B), ["matmul"]),
    "rest is a kernel": (lambda x, w, z: (lambda y: (y, y.sum(0)))(jnp.tanh(x @ w) * z),
                         (X, W, Z), None),
    "long sum": (lambda x, w, b: jnp.tanh(x @ w + b[:20]), (array(20, 8192), array(8192, 20), B),
                 ["matmul"]),
    "odd": (lambda x, w, b: jnp.tanh(x @ w + b[:67]), (array(33, 19), array(19, 67), B),
            ["matmul"]),
    "few rows": (lambda x, w, b: jnp.tanh(x @ w) * b[:5], (array(3, 40), array(40, 5), B),
                 SUM),
    "one row": (lambda x, w, b: jnp.tanh(x @ w) * b, (array(1, 40), W, B), ["matmul"]),
    "one column": (lambda x, w: jnp.tanh(x @ w), (X, array(40, 1)), SUM),
    "two results of one row": (lambda x, w, b: (lambda y: (y, 1 - y * y))(jnp.tanh(x @ w + b)),
                               (array(1, 40), W, B), ["matmul"]),
    "moved": (lambda x, w: jnp.einsum("bij,bjk->ibk", x, w), (BX, BW), ["matmul"]),
    "heads": (lambda x, w: (x.reshape(2, 24, 24, 40) @ w.reshape(2, 24, 40, 48)
                            ).swapaxes(1, 2).reshape(2, 24, -1), (BX, BW), ["matmul"]),
    "gradient": (lambda x, w, b, z: (lambda out, pull: (out, *pull(z)))(
        *ft.vjp(lambda x, w, b: ft.nn.relu(x @ w + b), x, w, b)), (X, W, B, Z), None),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    fun, args, expected = PRODUCTS[name]
    program = check(fun, *args)
    kernels = kernels_of(program)
    assert expected in (None, kernels) or (expected is SUM and len(kernels) == 1
                                           and kernels[0].startswith("k_"))


@pytest.mark.parametrize("name, is_half", [("bfloat16", True), ("bias and gelu", False)])
def test_tanh_takes_less_time_where_results_are_halves(name, is_half):
    fun, args, _ = PRODUCTS[name]
    _, program, _ = program_of(fun, *args)
    assert any("fm.tanh_half(" in s for s in program.sources) == is_half


def test_tanh_for_results_in_half_precision():
    language = SimpleNamespace(exp2=np.exp2, abs=np.abs, where=np.where,
                               fast_dividef=lambda x, y: np.float32(x) / y)
    written = FunctionType(device_math.tanh_half.fn.__code__,
                           {"tl": language, "libdevice": language})
    x = np.concatenate([np.geomspace(1e-30, 200, 20001), [np.inf, np.nan, 0]]).astype("f")
    with np.errstate(over="ignore", invalid="ignore"):
        found = written(np.concatenate([x, -x]))
    expected = np.tanh(np.concatenate([x, -x]).astype("d"))
    np.testing.assert_allclose(found, expected, rtol=4e-6)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["bias and gelu", "bfloat16", "kept", "many small", "long sum"])
def test_products_compile(name):
    fun, args, _ = PRODUCTS[name]
    _, program, _ = program_of(fun, *args)
    for binary in binaries(program).values():
        assert binary.cubin[:4] == b"\x7fELF"


def convolve(x, w, **params):
    return lax.conv_general_dilated(x, w, params.pop("window_strides", (1, 1)),
                                    params.pop("padding", "SAME"), **params)


NCHW, OIHW = array(2, 6, 9, 8), array(10, 6, 3, 3)
NHWC, HWIO = array(2, 9, 8, 6), array(3, 3, 6, 10)
LAST = ("NHWC", "HWIO", "NHWC")

CONVOLUTIONS = {
    "plain": (convolve, (NCHW, OIHW)),
    "channels last": (lambda x, w: convolve(x, w, dimension_numbers=LAST), (NHWC, HWIO)),
    "strides": (lambda x, w: convolve(x, w, window_strides=(2, 1)), (NCHW, OIHW)),
    "dilated window": (lambda x, w: convolve(x, w, rhs_dilation=(2, 1)), (NCHW, OIHW)),
    "dilated input": (lambda x, w: convolve(x, w, padding="VALID", lhs_dilation=(2, 3)),
                      (NCHW, OIHW)),
    "groups": (lambda x, w: convolve(x, w[:, :3], feature_group_count=2), (NCHW, OIHW)),
    "one dimension": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID"),
                      (array(2, 4, 20), array(5, 4, 3))),
    "three dimensions": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME"),
                         (array(1, 3, 4, 5, 6), array(4, 3, 2, 3, 2))),
    "part of an array": (lambda x, w: convolve(x[1:, :, 2:], w), (NCHW, OIHW)),
    "bfloat16": (lambda x, w: convolve(x.astype("bfloat16"), w.astype("bfloat16")), (NCHW, OIHW)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("gradient", [False, True], ids=["", "gradient"])
def test_convolutions(name, gradient):
    fun, args = CONVOLUTIONS[name]
    if gradient:
        out = fun(*map(jnp.asarray, args))
        ct = array(*out.shape).astype(out.dtype)
        program = check(lambda ct, *args: ft.vjp(fun, *args)[1](ct), ct, *args,
                        tolerance=2e-4 if name != "bfloat16" else 2e-2)
    else:
        program = check(fun, *args)
    assert not any(isinstance(s, HostStep) for s in program.steps)
    assert "convolution" in " ".join(kernels_of(program))


def test_convolutions_compile():
    loss = ft.grad(lambda w, x: (ft.nn.relu(convolve(x, w, dimension_numbers=LAST)) ** 2).sum(),
                   (0, 1))
    _, program, _ = program_of(loss, HWIO, NHWC)
    for binary in binaries(program).values():
        assert binary.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_what_templates_do_not_multiply_is_a_sum_of_products(dtype):
    program = check(lambda x, w: convolve(x, w), NCHW[:1, :3, :5, :4].astype(dtype),
                    OIHW[:4, :3].astype(dtype))
    assert not any(isinstance(s, HostStep) for s in program.steps)
