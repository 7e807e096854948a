"""What epilogues store: values of any shape and type are those of a whole tile in memory."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as xp
from functrans.lowering.triton.templates.kernel import EpilogueSource, pointer, stored_as
from functrans.lowering.triton.templates.matmul import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    kernels,
)
from tests.triton.emulated import check

RNG = np.random.default_rng(0)
RESULTS = {"a constant": "tl.full((), 2.0, tl.float32)", "rows": "rows.to(tl.float32)",
           "columns": "cols.to(tl.float32)", "whether": "cols > 3", "sums": "acc"}
CONFIGS = {"descriptors": MatmulConfig(32, 64, 32, 4, 2), "reads": MatmulConfig(32, 64, 32, 4, 2,
                                                                  descriptors=False),
           "parts": MatmulConfig(64, 64, 32, 4, 2, persistent=True, parts=2),
           "splits": MatmulConfig(32, 64, 32, 4, 2, splits=2),
           "together": MatmulConfig(16, 64, 32, 4, 1, descriptors=False, together=1)}


def stored(shape, dtype="float32"):
    return ft.ShapeDtypeStruct(shape, dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "u8"])
def test_templates_store_whole_tiles(config, result, dtype, shared_bytes):
    c = CONFIGS[config]
    m = 16 if c.together else 128
    p = MatmulProblem(m, 64, 64, MatmulOperand("fp32", 64, 1), MatmulOperand("fp32", 64, 1),
                      MatmulOperand(dtype, 64, 1),
                      batch=(1, 4) if c.together else (1, 1), precision="tf32",
                      epilogue=EpilogueSource((f"e = {RESULTS[result]}",), (), "e"))
    for kernel in kernels(p, c):
        shared_bytes(kernel)


def test_what_is_stored_has_the_type_of_memory():
    assert stored_as(EpilogueSource(()), "bf16") == "(acc).to(tl.bfloat16)"
    result = stored_as(EpilogueSource((), (pointer("p", "fp32"),), "e1"), "u8")
    assert result == "tl.broadcast_to((e1).to(tl.uint8), acc.shape)"


def huber(x):
    size = xp.abs(x)
    return xp.where(size <= 1, 0.5 * x * x, size - 0.5)


PROGRAMS = {
    "a constant beside what is gathered": (
        lambda x, w, b, index: xp.mean(nn.log_softmax(huber(x[index]) @ w + b)), (0, 1, 2),
        ((1000, 256), (256, 16), (16,)), 1000),
    "a constant beside a sorted operand": (
        lambda x, w, b, index: xp.sum(
            (lambda x: x + nn.selu(x @ w + b))(xp.sort(x, axis=0)[index]) ** 2), (0, 1, 2),
        ((128, 64), (64, 64), (64,)), 100),
    "relu6 and cumsum": (
        lambda x, w, b, index: xp.mean(xp.cumsum(nn.relu6(x[index] @ w + b), axis=1)), (0, 1, 2),
        ((300, 64), (64, 33), (33,)), 300),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_whose_epilogues_store_constants_compile(name):
    fun, wrt, shapes, count = PROGRAMS[name]
    ft.lower(ft.value_and_grad(fun, wrt), *map(stored, shapes), stored((count,), "int32"),
             target="cuda:90").compile()


def test_values_of_one_row_or_column_of_a_product():
    def rows(x, w, b):
        y = x @ w
        return y + b, xp.broadcast_to(b, y.shape), xp.full_like(y, 3.0)

    x, w, b = (RNG.normal(size=s).astype("f4") for s in ((40, 24), (24, 48), (48,)))
    check(rows, x, w, b)
    check(lambda x, w, b: rows(x[:1], w, b), x, w, b)
    check(lambda x, w, b: (x @ w[:, :1] > 0, lax.full((40, 1), 2, "int8")), x, w, b)
