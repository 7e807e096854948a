"""No kernel is so long that a compiler takes seconds for it, at any precision of products.

Nothing is timed: the first stage of Triton says what a thread computes, before anything is folded.
Of 17,000 instructions LLVM and ptxas took 15 to 27 s, of 10,000 1.3 to 2.5.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from tests.laws.kernel_lengths import instructions
from tests.laws.network_checks import cuda_units, program_units, to_triton_ir
from tests.laws.networks import draw_network

TARGET = "cuda:90"
MOST_INSTRUCTIONS = 11_000
PRECISIONS = ("highest", "high", "default")


def too_long(units):
    lengths = {u: instructions(to_triton_ir(u), u.warps) for u in units}
    return [f"{u.name}: {n:.0f} instructions of a thread\n{u.source}" for u, n in lengths.items()
            if n > MOST_INSTRUCTIONS]


def lowered(fun, *shapes, dtype="float32"):
    types = [ft.ShapeDtypeStruct(shape, np.dtype(dtype)) for shape in shapes]
    return program_units(ft.lower(fun, *types, target=TARGET), TARGET)


def check_network(seed, precision):
    network = draw_network(seed)
    with ft.config.matmul_precision(precision):
        assert not too_long(cuda_units(network, TARGET)), network.source


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_attention_of_wide_heads_in_a_network(precision):
    check_network(30_009, precision)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(30_010, 30_016))
def test_networks(seed):
    check_network(seed, "highest")


@pytest.mark.thorough
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("ten", range(3_002, 3_012))
def test_many_networks(ten, precision):
    for seed in range(10 * ten, 10 * ten + 10):
        check_network(seed, precision)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("size", [16, 40, 64, 96, 256])
@pytest.mark.parametrize("keys", [512, 500])
@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_attention(is_causal, keys, size, precision):
    def loss(q, k, v):
        return (ft.nn.dot_product_attention(q, k, v, is_causal=is_causal) ** 2).sum()

    with ft.config.matmul_precision(precision):
        units = lowered(ft.grad(loss, (0, 1, 2)), (2, 512, 4, size), (2, keys, 4, size),
                        (2, keys, 4, size))
    assert any(u.name == "attention_gradient_kv" for u in units)
    assert not too_long(units)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [16, 48, 64])
def test_small_products(size, dtype):
    with ft.config.matmul_precision("highest"):
        units = lowered(jnp.matmul, (512, size, size), (512, size, size), dtype=dtype)
    assert [u.name for u in units] == ["matmul"]
    assert not too_long(units)


def test_updates_of_many_arrays_share_several_launches():
    """In one launch, as a branch of each, those of 32 arrays would have 2,800 lines."""
    def step(params, slopes):
        return [updated(p, s) for p, s in zip(params, slopes, strict=True)]

    def updated(p, s):
        for k in range(20):
            p = p * (0.9 + k / 100) + s
        return p

    types = [ft.ShapeDtypeStruct((64 + 8 * k,), np.float32) for k in range(64)]
    units = program_units(ft.lower(step, types, types, target=TARGET), TARGET)
    assert 1 < len(units) < 16
    assert not too_long(units)
    assert max(u.source.count("\n") for u in units) < 1_400
