"""Sums of products of matrices as one product kernel: the template, the plan, the launches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import Launch
from functrans.lowering.triton.templates import matmul
from functrans.lowering.triton.templates.matmul import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    MatmulTerm,
    kernels,
)
from functrans.lowering.triton.templates.matmul_configs import configs
from tests.triton.test_templates import (
    CONFIGS,
    THREE,
    NDArray,
    Run,
    compile_kernel,
    in_memory,
    interpret,
    normal,
    operand,
    packed,
    turned,
)

__all__ = ["compile_kernel", "interpret"]


def add_up(run: Run, pairs: list[tuple[NDArray, NDArray]], config: MatmulConfig,
           **fields: Any) -> NDArray:
    """A sum of products by the template."""
    (a, b), *rest = pairs
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*batch, a.shape[-2], b.shape[-1]), np.nan, a.dtype)
    p = MatmulProblem(a.shape[-2], b.shape[-1], a.shape[-1], operand(a), operand(b), operand(out),
                      tuple([1, 1, *batch][-2:]),
                      more=tuple([MatmulTerm(operand(x), operand(y), x.shape[-1])
                                  for x, y in rest]), **fields)
    tensors = {f"{name}_{k}": packed(x) for k, pair in enumerate(pairs)
               for name, x in zip("ab", pair)}
    return np.asarray(run(kernels(p, config, target=THREE), {**tensors, "c": out})["c"])


def draw_pairs(m: int, n: int, sizes: list[int], order: str,
               batch: tuple[int, ...] = ()) -> list[tuple[NDArray, NDArray]]:
    pairs = [(normal(2 * s, *batch, m, k), normal(2 * s + 1, *batch, k, n))
             for s, k in enumerate(sizes)]
    return [(turned(a) if "a" in order else a, turned(b) if "b" in order else b)
            for a, b in pairs]


TERMS = {name: CONFIGS[name] for name in ("pointers", "descriptors", "split",
                                          "combined by the last")}


@pytest.mark.parametrize("name", TERMS)
@given(m=st.sampled_from([16, 24, 40]), n=st.sampled_from([32, 20]),
       sizes=st.lists(st.sampled_from([8, 16, 37, 72]), min_size=2, max_size=4),
       order=st.sampled_from(["", "a", "b", "ab"]), batch=st.sampled_from([(), (2,)]))
@settings(max_examples=6, deadline=None)
def test_sums_of_products(interpret: Run, name: str, m: int, n: int, sizes: list[int], order: str,
                          batch: tuple[int, ...]) -> None:
    pairs = draw_pairs(m, n, sizes, order, batch)
    np.testing.assert_allclose(add_up(interpret, pairs, TERMS[name]), sum(a @ b for a, b in pairs),
                               atol=1e-4)


# --------------------------------------------------------------------------- programs


def launches(f: Any, *args: Any, any_size: bool = False) -> Counter[str]:
    """The launches of a program by the names of their kernels."""
    jaxpr = ft.make_jaxpr(f)(*args).jaxpr.hoist_consts()
    steps = write_program(simplify(jaxpr), any_size).steps
    assert all(isinstance(s, Launch) for s in steps)
    return Counter("kernel" if s.kernel.startswith("k_") else s.kernel
                   for s in steps if isinstance(s, Launch))


def shape(*sizes: int, dtype: str = "float32") -> Any:
    return ft.ShapeDtypeStruct(sizes, dtype)


def gradient(*pairs: Any) -> Any:
    """A sum of products over the rows of pairs of matrices."""
    return sum(x.T @ y for x, y in zip(pairs[::2], pairs[1::2], strict=True))


def test_a_sum_of_products_is_one_product() -> None:
    found = launches(gradient, *[shape(4096 * (1 + k // 6), 64) for k in range(10)])
    assert found == {"matmul": 1, "matmul_combine": 1}
    assert launches(gradient, *[shape(256, 64)] * 10) == {"matmul": 1}


def test_a_recurrent_cell_is_one_product() -> None:
    found = launches(lambda x, w, h, u, b: jnp.tanh(x @ w + h @ u + b), shape(64, 48),
                     shape(48, 128), shape(64, 128), shape(128, 128), shape(128))
    assert found == {"matmul": 1}


def test_sums_of_large_products_stay_apart() -> None:
    found = launches(lambda x, w, h, u: x @ w + h @ u, *[shape(8192, 8192, dtype="bfloat16")] * 4)
    assert found["matmul"] == 2


@pytest.mark.parametrize("f", [
    lambda x, y: (x.T @ y + y.T @ x, x.T @ y),                       # a term is needed besides
    lambda x, y: (x.T @ y).astype("bfloat16") + (y.T @ x).astype("bfloat16"),
    lambda x, y: x.T @ y + lax.dot(y.T, x, precision="highest"),     # of two precisions
    lambda x, y: (x.T @ y)[:, None] + (y.T @ x)[None],
])
def test_sums_that_need_a_term_or_a_precision_stay_apart(f: Any) -> None:
    assert launches(f, *[shape(1024, 64)] * 2)["matmul"] >= 2


@pytest.mark.parametrize("with_epilogue", [False, True])
def test_a_sum_that_cannot_be_had_is_products(monkeypatch: pytest.MonkeyPatch,
                                              with_epilogue: bool) -> None:
    """First without what follows the sum, then without the sum."""
    tried: list[str] = []

    def refuse(p: MatmulProblem, *rest: Any, **options: Any) -> Any:
        if p.more:
            tried.append("with epilogue" if p.epilogue.lines else "alone")
            if not with_epilogue or p.epilogue.lines:
                raise UnsupportedKernel("no room")
        return kernels(p, *rest, **options)

    monkeypatch.setattr(matmul, "kernels", refuse)
    found = launches(lambda *xs: jnp.tanh(gradient(*xs)), *[shape(256, 64)] * 6)
    assert found["matmul"] == (1 if with_epilogue else 3)
    assert tried[0] == "with epilogue" and "alone" in tried


def test_a_sum_of_products_compiles(compile_kernel: Run) -> None:
    p = in_memory("fp32", 64, 64, 4096, precision="tf32")
    across = MatmulTerm(MatmulOperand("fp32", 1, 64), p.b, 4096)
    p = replace(p, a=across.a, more=(across, across._replace(k=512)))
    config = configs(p)[0]
    assert config.splits > 1
    for c in (config, replace(config, by_warps=False, descriptors=True)):
        used = compile_kernel(kernels(p, c)[0])
        assert used["STACK"] == used["LOCAL"] == 0
        assert used["shared"] <= 227 * 1024
    assert used["copies"]


TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}


def draw(seed: int, dtype: str, *sizes: int) -> NDArray:
    return normal(seed, *sizes).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


PROGRAMS = {
    "gradient": lambda *xs: gradient(*xs),
    "activation": lambda x, y, *rest: jnp.tanh(gradient(x, y, *rest) + x[0, 0]),
    "kept": lambda *xs: (gradient(*xs), jnp.sum(gradient(*xs), axis=0)),
    "among others": lambda x, y, z, w, *rest: x.T @ y + y.T @ y * 2 + z.T @ w + gradient(*rest),
    "more than a call has": lambda *xs: gradient(*(xs * 6)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
@given(k=st.tuples(*[st.sampled_from([16, 40, 100])] * 3), m=st.sampled_from([17, 32]),
       n=st.sampled_from([24, 33]), dtype=st.sampled_from(list(TOLERANCES)))
@settings(max_examples=3, deadline=None)
def test_programs_with_sums_of_products(name: str, k: tuple[int, ...], m: int, n: int,
                                        dtype: str) -> None:
    m, n = (n, n) if name == "among others" else (m, n)
    args = [draw(s, dtype, k[s // 2], m if s % 2 == 0 else n) for s in range(6)]
    if name == "among others":
        args[2:4] = args[:2]
    f = PROGRAMS[name]
    with ft.config.use_backend("triton"), ft.config.matmul_precision("highest"):
        found = ft.jit(f)(*args)
    wide = [x.astype(np.float64) for x in args]
    with ft.config.disable_jit():
        expected = f(*wide)
    for x, y in zip(*[ft.tree.leaves(v) for v in (found, expected)], strict=True):
        bound = TOLERANCES[dtype] * max(float(np.sqrt(sum(k))), float(np.abs(y).max()))
        np.testing.assert_allclose(np.asarray(x, np.float64), y, atol=bound)
