"""Products of few rows with weights of 8 bits: one kernel, which converts what it multiplies."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import quantize
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)


def weights(dtype, k=512, n=520):
    return quantize.quantize(jnp.asarray(RNG.normal(size=(k, n)).astype(np.float32)), dtype)


def product(x, values, scales):
    return quantize.matmul(x, quantize.QuantizedArray(values, scales, np.dtype(np.float32)))


@pytest.mark.parametrize("rows, half", [(5, "bfloat16"), (33, "float16")])
@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float8_e5m2"])
def test_weights_are_converted_in_the_kernel(dtype, rows, half):
    q = weights(dtype)
    x = jnp.asarray(RNG.normal(size=(rows, 512))).astype(half)
    program = check(product, x, q.values, q.scales)
    assert len(kernels_of(program)) == 1
    assert f"y = y.to(tl.{half})" in "".join(program.sources)
    x = jnp.concatenate([x, x[:1] * jnp.nan])
    check(product, x, q.values, q.scales)


def test_products_of_many_rows_and_small_ones_have_converted_weights():
    q = weights("int8")
    for x in (np.zeros((300, 512)), np.zeros((1, 512))):
        _, program, _ = program_of(product, jnp.asarray(x).astype("bfloat16"), q.values, q.scales)
        assert "y = y.to(" not in "".join(program.sources)


def test_other_readers_of_converted_weights_have_them():
    q = weights("int8")

    def both(x, w):
        wide = w.astype("bfloat16")
        return jnp.matmul(x, wide, preferred_element_type="float32"), wide * 2

    check(both, jnp.asarray(RNG.normal(size=(8, 512))).astype("bfloat16"), q.values)

    def chained(x, w):
        y = jnp.matmul(x, w[:, :512].astype("bfloat16"))
        return jnp.matmul(ft.nn.relu(y), w.astype("bfloat16"))

    check(chained, jnp.asarray(RNG.normal(size=(16, 512))).astype("bfloat16") / 500, q.values)
