"""Lowering for GPUs that are not there: machine code, what is known of it, and calls that cannot
be."""

import dataclasses

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import BackendError

xp = ft.numpy
X = ft.ShapeDtypeStruct((64, 32), "float32")
W = ft.ShapeDtypeStruct((32, 64), "float32")


def model(x, w):
    h = xp.tanh(x @ w + 1)
    return h.sum(0), h * 2


def lines(first, *more):
    start = model.__code__.co_firstlineno
    return tuple(f"{__file__}:{start + n}, in model" for n in (first, *more))


@pytest.mark.parametrize("target, arch", [("cuda:80", "sm_80"), ("cuda:90", "sm_90"),
                                          ("cuda", "sm_90"), ("cuda:100", "sm_100"),
                                          ("cuda:120", "sm_120")])
def test_kernels_for_a_target(target, arch):
    compiled = ft.jit(model).lower(X, W, target=target).compile()
    for kernel in compiled.kernels:
        assert f".target {arch}" in kernel.ptx and kernel.cubin.startswith(b"\x7fELF")
        assert f"def {kernel.name}(" in kernel.text and "@triton.jit" in kernel.text
        assert 0 < kernel.registers <= 255 and kernel.spills == 0 and kernel.warps in (1, 2, 4, 8)
        assert kernel.text in compiled.as_text() or kernel.name in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 2 * 64 * 64 * 32
    assert compiled.memory_analysis()["arguments"] == 2 * 4 * 64 * 32


def test_records_of_kernels():
    kernels = ft.lower(model, X, W, target="cuda:90").compile().kernels
    assert isinstance(kernels, tuple)
    product = kernels[0]
    assert lines(1)[0] in product.lines and lines(2)[0] in product.lines
    assert any(lines(2)[0] in k.lines for k in kernels)
    with pytest.raises(dataclasses.FrozenInstanceError):
        product.registers = 0
    said = str(product)
    assert f"{product.registers} registers" in said and lines(1)[0] in said
    assert "EXIT" in product.sass


def test_kernels_that_are_launched_several_times_are_told_once():
    def chain(x):
        for _ in range(3):
            x = xp.sort(x.T @ x, axis=0)
        return x

    kernels = ft.lower(chain, ft.ShapeDtypeStruct((64, 64), "float32"),
                       target="cuda:90").compile().kernels
    names = {(k.name, k.grid) for k in kernels}
    assert len(names) <= len(kernels) < sum(k.launches for k in kernels)


def test_shared_memory_is_that_of_the_target():
    x = ft.ShapeDtypeStruct((2048, 2048), "bfloat16")
    for target, most in (("cuda:80", 163), ("cuda:86", 99), ("cuda:90", 227), ("cuda:120", 99)):
        kernels = ft.lower(lambda x: x @ x, x, target=target).compile().kernels
        assert all(k.shared <= most << 10 for k in kernels), target
    q = ft.ShapeDtypeStruct((2, 4, 1024, 128), "bfloat16")

    def attention(q, k, v):
        weights = ft.nn.softmax(xp.einsum("bhqd,bhkd->bhqk", q, k), axis=-1)
        return xp.einsum("bhqk,bhkd->bhqd", weights, v)

    for target, most in (("cuda:86", 99), ("cuda:90", 227)):
        kernels = ft.lower(attention, q, q, q, target=target).compile().kernels
        assert all(k.shared <= most << 10 for k in kernels), target


def test_a_call_says_that_the_gpu_is_not_there():
    compiled = ft.lower(model, X, W, target="cuda:80").compile()
    with pytest.raises(BackendError) as error:
        compiled(np.ones((64, 32), "f4"), np.ones((32, 64), "f4"))
    said = str(error.value)
    assert "compiled for cuda:80" in said and "no GPU here" in said and "ft.jit(f)" in said
    assert __file__ in said


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_the_cpu_is_a_target(target):
    x, w = np.ones((64, 32), "f4"), np.ones((32, 64), "f4")
    with ft.config.use_backend("triton"):
        compiled = ft.jit(model).lower(x, w, target=target).compile()
    assert compiled.kernels == () and "ft_main" in compiled.as_text()
    np.testing.assert_allclose(compiled(xp.array(x), xp.array(w))[1], np.full((64, 64), 2.0))


def test_unknown_targets():
    for target in ("gpu", "cuda:70", "tpu"):
        with pytest.raises(BackendError, match=r'target="c'):
            ft.lower(model, X, W, target=target)


def test_an_argument_may_be_named_target():
    compiled = ft.jit(lambda x, target: x - target).lower(X, target=X).compile()
    ones = xp.ones((64, 32))
    assert not np.asarray(compiled(ones, target=ones)).any()


def test_kernels_of_interpreted_programs_are_hoppers():
    with ft.config.use_backend("triton"):
        compiled = ft.lower(model, X, W).compile()
    assert ".target sm_90" in compiled.kernels[0].ptx
    out = compiled(xp.ones((64, 32)), xp.ones((32, 64)))
    np.testing.assert_allclose(out[1], np.full((64, 64), 2.0))


def test_a_lowered_function_keeps_its_target():
    lowered = ft.lower(model, X, W, target="cuda:90")
    with ft.config.use_backend("c"):
        assert lowered.compile().kernels
