"""Operands of products in the order of tensor cores, and kernels that read across their rows."""

from dataclasses import replace

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.tensor import Gemm
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule.contiguous_operands import copy_operands_contiguous
from functrans.lowering.schedule.group import schedule_of
from functrans.lowering.schedule.kernel import Kernel, Reads
from functrans.lowering.schedule.memory_steps import has_transposed_reads
from functrans.lowering.schedule.plans import GPU
from functrans.lowering.schedule.split_reductions import (
    fuse_transposed_column_sums,
    split_transposed_reads,
)
from functrans.lowering.schedule.target import H100, HOPPER

S = ft.ShapeDtypeStruct
RNG = np.random.default_rng(0)


def graph(f, *args):
    return graph_of(simplify(ft.make_jaxpr(f)(*args).jaxpr.hoist_consts()))


def strides(f, *args, precision="default", target=HOPPER):
    """How far apart neighbours along the sum are in the operands of the products of f."""
    with ft.config.matmul_precision(precision):
        found = copy_operands_contiguous(graph(f, *args), target)
    return [(c.fields["a_col"], c.fields["b_row"]) for c in found.items if isinstance(c, Gemm)]


def test_large_products_of_float32_read_along_the_sum():
    x = S((4096, 2048), "float32")
    assert strides(lambda x, y: x @ y.T, x, x) == [(1, 1)]
    assert strides(lambda x, y: x.T @ y, x, x) == [(1, 1)]
    assert strides(lambda x, y: (x.T @ y, y.T @ y), x, x) == [(1, 1), (1, 1)]


def test_small_products_and_others_stay():
    assert strides(lambda x: x.T @ x, S((64, 32), "float32")) == [(32, 32)]
    # as fast by the instructions of one warp as with copies
    assert strides(lambda x: x.T @ x, S((131072, 256), "float32")) == [(256, 256)]
    assert strides(lambda x: x.T @ x, S((2048, 1024), "bfloat16")) == [(1024, 1024)]
    x = S((2048, 1024), "float32")
    assert strides(lambda x: x.T @ x, x, precision="highest") == [(1024, 1024)]


def test_a_copy_serves_all_products():
    x = S((4096, 2048), "float32")
    found = copy_operands_contiguous(graph(lambda x, y, z: (x.T @ y, x.T @ z), x, x, x))
    a, b = (c for c in found.items if isinstance(c, Gemm))
    assert a.operands[0] is b.operands[0] and a.operands[0].shape == (2048, 4096)


def test_values_of_products_with_copies(monkeypatch):
    batched = RNG.normal(size=(3, 512, 320)).astype("f")
    wide = RNG.normal(size=(512, 640)).astype("f")

    def f(x, w):
        return jnp.einsum("bki,kj->bij", x[:, :, 40:296], w[:, ::-1])

    eager = replace(HOPPER, measured=replace(H100, copy_bandwidth=1e9, copy_launch=0.0))
    args = S((3, 512, 320), "float32"), S((512, 640), "float32")
    assert strides(f, *args, target=eager) == [(1, 1)]
    monkeypatch.setitem(GPU.graphs, "operands of products contiguous along the sum",
                        lambda graph, target: copy_operands_contiguous(graph, eager))
    with ft.config.use_backend("triton"):
        found = np.asarray(ft.jit(f)(batched, wide))
    expected = np.einsum("bki,kj->bij", batched[:, :, 40:296], wide[:, ::-1])
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=0.2)


def bias_gradient(z, g):
    d = jnp.where(z > 0, g, 0)
    return d.sum(0), d.T.copy()


def test_sums_of_many_columns_beside_a_transposed_copy_are_kernels_apart():
    args = S((8192, 512), "float32"), S((8192, 512), "float32")
    whole = schedule_of(graph(bias_gradient, *args))
    apart = split_transposed_reads(whole)
    roles = [[m.role for m in s.members] for s in apart.steps if isinstance(s, Kernel)]
    assert roles == [["full"], ["reduce_column"]]
    fold = apart.steps[1]
    assert not has_transposed_reads(fold, fold.builder(apart.is_stored))
    args = S((4096, 512), "float32"), S((4096, 512), "float32")
    (together,) = split_transposed_reads(schedule_of(graph(bias_gradient, *args))).steps
    assert {m.role for m in together.members} == {"full", "reduce_row"}


def test_sums_of_columns_join_what_turns_the_same_later():
    def joined(rows):
        apart = split_transposed_reads(schedule_of(graph(bias_gradient,
                                                         *[S((rows, 512), "float32")] * 2)),
                                       in_tiles=False)
        return fuse_transposed_column_sums(replace(apart, steps=apart.steps[::-1]), Reads()).steps

    (together,) = joined(4096)
    assert [m.role for m in together.members] == ["full", "reduce_row"]
    assert len(joined(8192)) == 2


def test_sums_beside_transposed_copies_are_those_of_columns():
    z, g = RNG.normal(size=(2, 70, 33)).astype("f")
    with ft.config.use_backend("triton"):
        sums, copy = ft.jit(bias_gradient)(z, g)
    expected = np.where(z > 0, g, 0)
    np.testing.assert_allclose(sums, expected.sum(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(copy, expected.T)
