"""Kernels whose neighbouring lanes read neighbours in memory, with much to do for a program."""

from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.steps import step_along
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.plans import GPU
from functrans.lowering.schedule.split_reductions import split_scattered_reads
from functrans.lowering.triton.kernels import column_reductions, packed_operands
from tests.triton.emulated import check
from tests.triton.test_layouts import S, graph

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("f")


def test_how_far_indices_move():
    o, i = LoopVar("o", 4112), LoopVar("i", 300)
    at_o, at_i = Index.of(o), Index.of(i)
    assert step_along(at_o % 257 + at_i * 257, o) == 1
    assert step_along(at_o // 257 * 90 + at_i * 257, o) == 0
    assert step_along((at_o * 300 + at_i) % 4112, o) == 300
    assert step_along((at_o * 300 + at_i) // 100, i) == 0
    assert step_along((at_o * 300 + at_i) // 100, o) == 3
    s = ExprBuilder(lambda t: True)
    clamped = s.clamped(at_i - 7, 200)
    assert step_along(clamped * 257 + at_o, i) == 257
    assert step_along(clamped * 257 + at_o, o) == 1


@pytest.mark.parametrize("middle", [64, 100])
def test_transposed_reads_within_runs_of_rows(middle):
    x, y = normal(3, 33, middle), normal(3, middle, 33)
    program = check(lambda x, y: jnp.swapaxes(x, 1, 2) * y, x, y)
    (text,) = program.sources
    assert ("run = " in text) == (middle == 100) and "tl.arange(0, 64)[:, None]" in text


def test_what_a_test_leaves_out_is_not_read():
    x, y, z = normal(40, 5), normal(40, 6), normal(40, 3)
    check(lambda x, y, z: jnp.pad(jnp.concatenate([x, y, z], 1) ** 2, ((0, 0), (2, 1))), x, y, z)
    program = check(lambda x, y, z: jnp.concatenate([x, y, z], 1) ** 2, x, y, z)
    assert not any("tl.minimum" in text for text in program.sources)


def test_clipped_places_of_a_program_are_read():
    check(lambda x: x.at[jnp.arange(9, dtype="int64") - 3].get(mode="clip"), normal(5))
    check(lambda x: x.at[jnp.arange(9) * 2 - 3].get(mode="clip"), normal(5))


@pytest.mark.parametrize("row", [40, 33])
def test_columns_of_short_parts_stay_in_a_thread(row, monkeypatch):
    monkeypatch.setattr(column_reductions, "WAVES", 0)
    program = check(lambda x: (x * x).sum(1), normal(3, 7, row))
    assert not any("atomic" in text for text in program.sources)


def test_many_short_reductions_are_rows():
    x, y = normal(1100, 3, 2, 5), normal(1100, 5)
    program = check(lambda x, y: ((x * y[:, None, None]).sum((1, 3)), x.sum((1, 2))), x, y)
    assert not any("part = pid" in text for text in program.sources)


@pytest.mark.parametrize("frames", [19, 300])
def test_sums_over_what_lies_between_what_is_kept(frames):
    x, w = normal(2, 3, frames, 40), normal(2, frames, 40)
    program = check(lambda x, w: jnp.einsum("bctf,btf->bfc", x, w, precision="highest"), x, w)
    assert any("+ c * 3 + " in text for text in program.sources)


def transposed_beside_sums(x, w):
    return x.T.copy(), (x * w[:, None]).sum(0)


def test_members_that_read_across_memory_are_apart():
    args = S((4096, 256), "float32"), S((4096,), "float32")
    _, whole = replace(GPU, schedules={}).schedule(graph(transposed_beside_sums, *args))
    apart = split_scattered_reads(whole, small=0)
    roles = [[m.role for m in s.members] for s in apart.steps if isinstance(s, Kernel)]
    assert sorted(roles) == [["full"], ["reduce_column"]]
    check(transposed_beside_sums, normal(70, 33), normal(70))


def test_small_operands_are_packed(monkeypatch):
    monkeypatch.setattr(packed_operands, "LEAST_READS", 0)
    x, w = normal(2, 70, 4, 40), normal(2, 40, 4)
    program = check(lambda x, w: jnp.einsum("btcf,bfc->btf", x, w, precision="highest")
                    + x[:, :, 0], x, w)
    assert any("pid // 2 % 1" in text for text in program.sources)


def test_scatters_to_few_rows_are_sums():
    at, updates = RNG.integers(-1, 4, 2500), normal(2500, 3)
    program = check(lambda x, i, u: x.at[i].add(u), normal(3, 3), at, updates)
    assert not any("atomic_add(p0 + v" in text for text in program.sources)
    program = check(lambda x, i, u: x.at[i].add(u, mode="clip"), normal(3, 3), at, updates)
    check(lambda i: jnp.bincount(i, length=5), np.abs(at))


def test_scatters_of_much_have_several_sums_of_each_place():
    at = RNG.integers(-70, 70, 60000)
    program = check(lambda x, i, u: x.at[i].add(u), normal(70), at, np.ones(60000, "f"))
    assert any("atomic_add" in text and "pid %" in text for text in program.sources)


def test_gradients_of_concatenations_beside_sums():
    x, y = normal(64, 8), normal(64, 24)

    def loss(x, y, b):
        return (jnp.sin(jnp.concatenate([x, y], 1) + b) ** 2).sum()

    check(ft.grad(loss, (0, 1, 2)), x, y, normal(32))


ROLLED = {
    "one row": (lambda x: jnp.roll(x, 1, 1), 1),
    "both": (lambda x: jnp.roll(x, 5, 0) + jnp.roll(x, -7, 1), 2),
    "halves exchanged": (lambda x: jnp.concatenate([x[:, 10:], x[:, :10]], 1) * 2, 1),
    "the same twice": (lambda x: jnp.concatenate([x[:, 5:20], x[:, 10:15]], 1) * 2, 1),
    "three parts": (lambda x: jnp.concatenate([x[:, 5:9], x[:, :5], x[:, 9:]], 1) + 1, 3),
    "backwards": (lambda x: jnp.concatenate([x[:, 5:20][:, ::-1], x[:, :15]], 1) * 2, 2),
    "sums": (lambda x: (jnp.roll(x, -1, 0) + jnp.roll(x, -1, 1)).sum(1), 2),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ROLLED)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_what_is_rolled_is_loaded_once(name, dtype):
    """Not as two parts, each with a mask; where their places are a constant apart."""
    f, loads = ROLLED[name]
    x = np.random.default_rng(0).integers(-3, 4, (24, 40)).astype(dtype)
    with ft.config.use_backend("triton"):
        found = ft.jit(f)(x)
    with ft.config.disable_jit():
        np.testing.assert_array_equal(found, f(x))
    (kernel,) = ft.lower(f, x, target="cuda:90").compile().kernels
    assert kernel.text.count("tl.load(") == loads
