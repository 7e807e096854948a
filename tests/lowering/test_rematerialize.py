"""What is needed late is kept, or computed again: the same numbers in less memory."""

import math
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as n
from functrans.core.byte_text import bytes_of
from functrans.core.check import check_jaxpr
from functrans.core.errors import MemoryLimitError
from functrans.core.evaluate import eval_jaxpr
from functrans.lowering.c import lower
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.passes.rematerialize import rematerialize
from functrans.lowering.schedule.recomputation_prices import CPU_PRICES, cheaper_memory

SMALL = replace(CPU_PRICES, least_bytes=1 << 12)
LAYERS, ROWS, WIDTH = 8, 64, 48


def draw(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / shape[-1] ** 0.5


def network(ws, x):
    for w in ws:
        x = ft.nn.gelu(x @ w)
    return (x * x).sum()


WEIGHTS = [draw(k, WIDTH, WIDTH) for k in range(LAYERS)]
X = draw(99, ROWS, WIDTH)


def attention(ws, x):
    for w in ws:
        q, k, v = ((x @ p).reshape(128, 4, 16).transpose(1, 0, 2) for p in w)
        scores = q @ k.transpose(0, 2, 1) / 4.0
        x = x + (ft.nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(128, 64)
    return (x * x).sum()


HEADS = [[draw(3 * k + j, 64, 64) for j in range(3)] for k in range(3)]
POSITIONS = draw(98, 128, 64)


def simplified(f, *args):
    jaxpr = ft.make_jaxpr(f)(*args)
    return simplify(jaxpr.jaxpr.hoist_consts()), jaxpr.consts


def temporaries(f, *args, **options):
    return ft.jit(f, **options).lower(*args).compile().memory_analysis()["temporaries"]


def peak(f, *args, **options):
    return ft.jit(f, **options).lower(*args).compile().memory_analysis()["peak"]


def same_bits(a, b):
    return all(np.asarray(x).tobytes() == np.asarray(y).tobytes()
               for x, y in zip(ft.tree.leaves(a), ft.tree.leaves(b), strict=True))


@pytest.mark.parametrize(("f", "args"), [(network, (WEIGHTS, X)), (attention, (HEADS, POSITIONS))],
                         ids=["network", "attention"])
def test_programs_compute_the_same_and_are_planned_once(f, args):
    jaxpr, consts = simplified(ft.grad(f), *args)
    leaves = [*consts, *ft.tree.leaves(args)]
    expected = eval_jaxpr(jaxpr, (), *leaves)
    for prices in [SMALL, list(cheaper_memory(CPU_PRICES))[3]]:
        planned = rematerialize(jaxpr, prices)
        assert planned is not jaxpr
        check_jaxpr(planned)
        assert rematerialize(planned, prices) is planned
        assert same_bits(eval_jaxpr(planned, (), *leaves), expected)


def layers_of_attention(ws, x):
    for q, k, v, o in ws:
        q, k, v = ((x @ p).reshape(256, 4, 16).transpose(1, 0, 2) for p in (q, k, v))
        scores = q @ k.transpose(0, 2, 1) / 4.0
        x = x + (ft.nn.softmax(scores) @ v).transpose(1, 0, 2).reshape(256, 64) @ o
    return (x * x).sum()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("spare", [0.02, 0.001, 0.1])
def test_products_are_computed_again_in_spare_time(spare, monkeypatch):
    """The same bits, in no more time than that, and never in more memory."""
    ws, x = [[draw(4 * k + j, 64, 64) for j in range(4)] for k in range(4)], draw(98, 256, 64)
    g = ft.grad(layers_of_attention)
    jaxpr, consts = simplified(g, ws, x)
    leaves = [*consts, *ft.tree.leaves((ws, x))]
    without, prices = (replace(SMALL, spare=s) for s in (0.0, spare))
    kept, again = rematerialize(jaxpr, without), rematerialize(jaxpr, prices)
    check_jaxpr(again)
    times = [sum(t for t in map(prices.any_time, p.eqns) if t < math.inf) for p in (kept, again)]
    assert times[0] * (spare > 0.001) < times[1] <= times[0] * (1 + spare)
    assert same_bits(eval_jaxpr(again, (), *leaves), eval_jaxpr(kept, (), *leaves))
    found = []
    for planned in (without, prices):
        monkeypatch.setattr(lower, "CPU_PRICES", planned)
        found.append(lower.lower(jaxpr, frozenset()).memory_analysis()["temporaries"])
    assert found[1] <= found[0]


def test_one_activation_of_a_layer_is_kept():
    ws, x = [draw(k, 64, 64) for k in range(LAYERS)], draw(9, 4096, 64)
    assert temporaries(ft.grad(network), ws, x) <= (LAYERS + 3) * x.nbytes


def test_compiled_values_do_not_depend_on_what_is_kept():
    """The same bits, but for sums, which are added up as the kernel that they are in does."""
    for f, args, close in ((network, (WEIGHTS, X), 0.0), (attention, (HEADS, POSITIONS), 2e-6)):
        g = ft.grad(f)
        whole = peak(g, *args)
        less = ft.jit(g, memory_limit=int(whole * 0.9))
        for a, b in zip(ft.tree.leaves(less(*args)), ft.tree.leaves(ft.jit(g)(*args)),
                        strict=True):
            assert np.abs(a - b).max() <= close * np.abs(b).max()
        assert less.lower(*args).compile().memory_analysis()["peak"] <= whole * 0.9


def test_scores_of_attention_are_in_the_cache_of_a_block():
    """Also in the backward part: nothing of the size of all scores is a temporary."""
    g = ft.grad(attention)
    scores = 4 * 128 * 128 * 4
    least = peak(g, HEADS, POSITIONS) - int(1.5 * scores)
    limited = ft.jit(g, memory_limit=least).lower(HEADS, POSITIONS).compile()
    assert limited.memory_analysis()["peak"] <= least


def test_segments_need_less_than_one_activation_a_layer():
    ws = [draw(k, 32, 32) for k in range(24)]
    x = draw(1, 2048, 32)

    def f(ws, x):
        for w in ws:
            x = n.tanh(x @ w)
        return (x * x).sum()

    g = ft.grad(f)
    kept = 24 * x.nbytes
    limit = peak(g, ws, x) - kept // 3
    less = ft.jit(g, memory_limit=limit)
    assert same_bits(less(ws, x), ft.jit(g)(ws, x))


def test_random_programs_give_the_same_bits():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        kinds = rng.integers(0, 5, 10)

        def f(ws, x, kinds=kinds):
            values = [x]
            for kind, w in zip(kinds, ws, strict=True):
                y = values[-1]
                values.append((n.sin(y @ w), n.where(y > 0, y @ w, 0.1 * y),
                               y * ft.nn.sigmoid(values[kind % len(values)]), n.exp(-y * y) @ w,
                               y + n.tanh(values[0] @ w))[kind])
            return (values[-1] ** 2).sum() + (values[4] * values[7]).sum()

        ws = [draw(seed * 20 + k, WIDTH, WIDTH) for k in range(10)]
        g = ft.grad(f)
        jaxpr, consts = simplified(g, ws, X)
        assert not consts
        leaves = [*ws, X]
        expected = eval_jaxpr(jaxpr, (), *leaves)
        for prices in (SMALL, list(cheaper_memory(CPU_PRICES))[3]):
            assert same_bits(eval_jaxpr(rematerialize(jaxpr, prices), (), *leaves), expected)
        whole, known = peak(g, ws, X), ft.jit(g)(ws, X)
        try:
            less = ft.jit(g, memory_limit=whole - 2 * X.nbytes)(ws, X)
        except MemoryLimitError:
            continue
        assert same_bits(less, known)


def test_effects_happen_once_and_random_numbers_are_the_same():
    calls = []

    def f(x, key):
        for _ in range(6):
            x = n.sin(x) * ft.random.bernoulli(key, 0.5, x.shape)
            x = ft.pure_callback(lambda y: (calls.append(1), y)[1], x, x)
        return (x * x).sum()

    def value(x):
        return f(x, ft.random.key(3))

    x = draw(0, 64, 64)
    jaxpr, consts = simplified(value, x)
    planned = rematerialize(jaxpr, replace(SMALL, byte=1e9, least_saved=0.0))
    count = [e.primitive.name for e in jaxpr.eqns].count("pure_callback")
    assert [e.primitive.name for e in planned.eqns].count("pure_callback") == count == 6
    assert same_bits(eval_jaxpr(planned, (), *consts, x), eval_jaxpr(jaxpr, (), *consts, x))


def test_what_a_policy_keeps_is_kept():
    def layer(w, x):
        return n.sin(ft.checkpoint_name(n.sin(n.sin(x @ w)), "kept"))

    policy = ft.checkpoint_policies.save_only_these_names("kept")

    def f(ws, x):
        for w in ws:
            x = ft.checkpoint(layer, policy=policy)(w, x)
        return (x * x).sum()

    jaxpr, _ = simplified(ft.grad(f), WEIGHTS, X)
    held = [a for e in jaxpr.eqns if e.primitive.name == "optimization_barrier" for a in e.invars]
    planned = rematerialize(jaxpr, SMALL)
    left = [a for e in planned.eqns if e.primitive.name == "optimization_barrier"
            and not e.params.get("last_first") for a in e.invars]
    made = {v for e in jaxpr.eqns for v in e.outvars} | set(jaxpr.invars)
    assert held and len(left) == len(held) and all(a in made for a in left)


def test_explain_says_what_is_kept_and_what_is_not():
    ws, x = [draw(k, 256, 256) for k in range(6)], draw(9, 4096, 256)
    notes = "\n".join(map(str, ft.explain(ft.jit(ft.grad(network)), ws, x).reasons))
    assert "mul f32[4096,256] is computed again later, not kept: keeping it costs" in notes
    assert "dot_general f32[4096,256] is kept for later: computed again it would be" in notes


def test_what_does_not_fit_is_named():
    def f(x):
        y = n.sort(x)
        return (y * n.flip(x)).sum()

    with pytest.raises(MemoryLimitError) as info:
        ft.jit(ft.grad(f), memory_limit="1KB")(X)
    text = str(info.value)
    assert "may need 1 kB" in text and "test_rematerialize.py" in text and "chunk_size" in text

    def loop(x):
        return ft.lax.scan(lambda c, _: (n.sort(c) + n.cumsum(c, 0), None), x, None, 3)[0]

    with pytest.raises(MemoryLimitError, match=r"test_rematerialize\.py"):  # also in a loop
        ft.jit(loop, memory_limit=1000)(X)
    with ft.config.use_backend("reference"), pytest.raises(MemoryLimitError):
        ft.jit(f, memory_limit="1KB")(X)


def test_limits_are_numbers_of_bytes():
    assert [bytes_of(t) for t in ("4GB", "1.5 KiB", 7, "3b")] == [4 * 10**9, 1536, 7, 3]
    for wrong in ("much", "4 GBs", "-1", "", True):
        with pytest.raises(ValueError, match="a number of bytes"):
            bytes_of(wrong)


def one_attention(g, q, k, v):
    def weighted(q, k, v):
        return ft.nn.softmax(q @ k.transpose(0, 2, 1) / 4.0) @ v

    y, back = ft.vjp(weighted, q, k, v)
    return (y, *back(g))


@pytest.mark.parametrize("heads", [2, 8])
def test_what_a_chain_has_block_by_block_is_not_computed_again(heads):
    # with fewer heads than a chain has blocks the weights are in memory
    args = [draw(k, heads, 256, 16) for k in range(4)]
    jaxpr, _ = simplified(one_attention, *args)
    prices = replace(CPU_PRICES, least_bytes=1 << 16)
    assert (rematerialize(jaxpr, prices) is jaxpr) == (heads == 8)
    assert rematerialize(jaxpr, replace(prices, hidden=lambda _: frozenset())) is not jaxpr


def test_what_is_read_after_other_work_is_not_chained():
    def projected(g, w, q, k, v):
        def run(q, k, v):
            weights = ft.nn.softmax(q @ k.transpose(0, 2, 1) / 4.0)
            return (weights @ v).transpose(1, 0, 2).reshape(256, 128) @ w

        y, back = ft.vjp(run, q, k, v)
        return (y, *back(g))

    args = [draw(0, 256, 32), draw(1, 128, 32), *[draw(k, 8, 256, 16) for k in range(3)]]
    jaxpr, _ = simplified(projected, *args)
    scores = {v for eqn in jaxpr.eqns for v in eqn.outvars if v.aval.shape == (8, 256, 256)}
    assert scores - CPU_PRICES.hidden(jaxpr)
    assert rematerialize(jaxpr, replace(CPU_PRICES, least_bytes=1 << 16)) is not jaxpr
