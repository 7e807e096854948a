"""What programs for GPUs keep for later: less, in no more time, or as little as a limit says."""

from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as n
from functrans.core import config
from functrans.core.errors import MemoryLimitError
from functrans.lowering.passes.hidden_values import hidden_values
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rematerialize import rematerialize
from functrans.lowering.schedule.recomputation_prices import cheaper_memory, gpu_prices
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.memory_plans import plan_memory_of
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.records import program_seconds
from tests.triton.emulated import kernels_of

HEADS = 8


def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / n.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def attend(x, p, heads):
    m, d = x.shape
    q, k, v = ((x @ w).reshape(m, heads, d // heads).transpose(1, 0, 2) for w in p[:3])
    scores = ft.nn.softmax(q @ k.transpose(0, 2, 1) / (d // heads) ** 0.5, axis=-1)
    return (scores @ v).transpose(1, 0, 2).reshape(m, d) @ p[3]


def transformer(heads):
    def loss(ps, x):
        for p in ps:
            x = x + attend(norm(x), p, heads)
            x = x + ft.nn.gelu(norm(x) @ p[4]) @ p[5]
        return (x * x).mean()

    return ft.grad(loss)


def weights(count, d):
    def draw(*shape):
        return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / d ** 0.5

    return [[*(draw(d, d) for _ in range(4)), draw(d, 4 * d), draw(4 * d, d)]
            for _ in range(count)], draw(2 * d, d)


def lowered(f, args, limit=None):
    """A program for Hopper that is not compiled."""
    jaxpr = ft.lower(f, *args, target="cuda:90").jaxpr
    with config.scope(memory_limit=limit):
        return lower(jaxpr, frozenset(), False, False, HOPPER, None)


TYPES = ft.tree.map(lambda x: ft.ShapeDtypeStruct(x.shape, x.dtype), weights(3, 512))


def test_a_transformer_keeps_less_in_the_same_time(monkeypatch):
    planned = lowered(transformer(HEADS), TYPES)
    monkeypatch.setattr("functrans.lowering.triton.memory_plans.rematerialize", lambda j, *_: j)
    before = lowered(transformer(HEADS), TYPES)
    assert planned.program.arena_bytes < 0.8 * before.program.arena_bytes
    assert program_seconds(planned.program, HOPPER) \
        <= 1.02 * program_seconds(before.program, HOPPER)
    attentions = [sum(k.startswith("attention") for k in kernels_of(p.program))
                  for p in (planned, before)]
    assert attentions[0] == attentions[1] > 0
    assert any("computed again later, not kept" in str(r) for r in planned.plan.residuals)


def test_a_program_that_is_compared_is_not_written_again(monkeypatch):
    """It is the one that is written without what is known; a third of the time of this call."""
    written = []

    def writes(jaxpr, *args, **how):
        written.append(jaxpr)
        return write_program(jaxpr, *args, **how)

    for module in ("lower", "memory_plans"):
        monkeypatch.setattr(f"functrans.lowering.triton.{module}.write_program", writes)
    planned = lowered(transformer(HEADS), TYPES)
    assert len(written) == 2 and written[0] is not written[1]
    monkeypatch.setattr("functrans.lowering.triton.lower.plan_memory_of",
                        lambda *args: replace(plan_memory_of(*args), written=None))
    assert lowered(transformer(HEADS), TYPES).as_text() == planned.as_text()
    assert len(written) == 5


def test_a_limit_computes_attention_again_as_a_whole():
    usual = lowered(transformer(HEADS), TYPES)
    known = usual.memory_analysis()
    limit = known["peak"] - known["temporaries"] // 2
    less = lowered(transformer(HEADS), TYPES, limit)
    assert less.memory_analysis()["peak"] <= limit
    assert "computed again in" in less.plan.said and "computed again in" in less.as_text()
    assert sum(k.startswith("attention") for k in kernels_of(less.program)) > sum(
        k.startswith("attention") for k in kernels_of(usual.program))


def test_a_limit_takes_batches_in_chunks():
    def loss(ws, x):
        for w in ws:
            x = n.tanh(x @ w)
        return (x * x).mean()

    ws, x = [ft.ShapeDtypeStruct((128, 128), "float32")] * 3, ft.ShapeDtypeStruct(
        (1 << 14, 128), "float32")
    usual = lowered(ft.grad(loss), (ws, x)).memory_analysis()
    less = lowered(ft.grad(loss), (ws, x), usual["peak"] - 7 * usual["temporaries"] // 8)
    assert "lanes are computed" in less.plan.said
    assert less.memory_analysis()["temporaries"] <= usual["temporaries"] / 8
    with pytest.raises(MemoryLimitError, match="may need 1 kB"):
        lowered(n.sin, (x,), 1000)


def test_planned_programs_compute_the_same():
    """Attention that is computed again, behind what it waits for, in the interpreter."""
    args = weights(2, 32)
    closed = ft.make_jaxpr(transformer(2))(*args)
    jaxpr = simplify(closed.jaxpr.hoist_consts())
    inputs = [*map(np.asarray, closed.consts), *ft.tree.leaves(args)]
    expected = InterpretedProgram(write_program(jaxpr))(inputs)
    prices = [p for p in cheaper_memory(gpu_prices(HOPPER)) if p.then is not None][1]
    assert prices.then is not None
    prices = replace(prices, least_bytes=1, then=replace(prices.then, least_bytes=1))
    planned = rematerialize(jaxpr, prices)
    assert planned is not jaxpr and len(hidden_values(planned)) > len(hidden_values(jaxpr)) > 0
    program = write_program(planned)
    assert sum(k.startswith("attention") for k in kernels_of(program)) >= 4
    for a, b in zip(InterpretedProgram(program)(inputs), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * np.abs(b).max())
