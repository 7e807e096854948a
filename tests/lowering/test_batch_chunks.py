"""Batches a few lanes at a time: the same numbers, in the memory that there is."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as n
from functrans.core import chunking, config
from functrans.core.check import check_jaxpr
from functrans.core.errors import ArgumentError, MemoryLimitError
from functrans.core.evaluate import eval_jaxpr
from functrans.lowering.passes.batch_chunks import batches_of, chunk_sizes, in_chunks
from functrans.lowering.passes.pipeline import simplify
from tests.lowering.test_rematerialize import draw, peak

WS = [draw(k, 24, 24) for k in range(4)]
X, Y = draw(9, 50, 24), draw(8, 50, 24)


def one(ws, x):
    for w in ws:
        x = ft.nn.gelu(w @ x)
    return (x * x).sum()


def loss(ws, x):
    return ft.vmap(one, (None, 0))(ws, x).mean()


def rows_of_a_table(table, at):
    return (n.tanh(table[at] @ WS[0]) ** 2).mean()


def convolution(w, x):
    dims = ("NHWC", "HWIO", "NHWC")
    return n.tanh(ft.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims)).mean()


def recurrence(w, xs):
    def lane(xs):
        return ft.lax.scan(lambda c, x: (n.tanh(w @ c + x), None), n.zeros(24), xs)[0].sum()

    return ft.vmap(lane)(xs).sum()


def until_small(x):
    return ft.vmap(lambda v: ft.lax.while_loop(lambda u: u @ u > 0.1, lambda u: u * 0.7, v))(x)


def normalised_over_the_batch(ws, x):
    for w in ws:
        x = n.tanh(x @ w)
        x = (x - x.mean(0)) / n.sqrt(x.var(0) + 1e-3)
    return (x ** 3).sum()


CASES = {
    "gradient": (ft.grad(loss), (WS, X)),
    "value and gradient": (ft.value_and_grad(loss), (WS, X)),
    "per-sample gradients": (ft.vmap(ft.grad(one), (None, 0)), (WS, X)),
    "table": (ft.grad(rows_of_a_table), (draw(7, 30, 24), np.arange(40) % 30)),
    "convolution": (ft.grad(convolution, (0, 1)), (draw(3, 3, 3, 4, 4), draw(2, 10, 8, 8, 4))),
    "recurrence": (ft.grad(recurrence), (WS[0], draw(3, 12, 7, 24))),
    "loops that end": (until_small, (X,)),
    "lanes last": (ft.vmap(lambda x: n.sin(n.outer(x, x)), out_axes=2), (X,)),
    "lanes mixed": (ft.grad(normalised_over_the_batch), (WS, X)),
    "pairs of lanes": (lambda x: n.tanh(n.sin(x) @ n.sin(x).T).sum(0), (X,)),
    "sorted lanes": (lambda x: n.cumsum(n.sort(n.sin(x), 0), 0) + x, (X,)),
    "halves": (lambda x: n.tanh(x.astype("bfloat16")).sum(0), (X,)),
}


@pytest.mark.parametrize("case", CASES)
def test_any_chunk_gives_the_same(case):
    f, args = CASES[case]
    closed = ft.make_jaxpr(f)(*args)
    jaxpr = simplify(closed.jaxpr.hoist_consts())
    inputs = [*closed.consts, *ft.tree.leaves(args)]
    expected = eval_jaxpr(jaxpr, (), *inputs)
    found = 0
    for batch in batches_of(jaxpr)[:2]:
        for chunk in sorted({1, 7, batch.size // 2} & set(range(1, batch.size))):
            cut = in_chunks(batch, chunk)
            if cut is None:
                continue
            found += 1
            check_jaxpr(cut)
            for a, b in zip(eval_jaxpr(cut, (), *inputs), expected, strict=True):
                a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
                limit = 2e-2 if case == "halves" else 3e-6
                np.testing.assert_allclose(a, b, atol=limit * max(1e-6, np.abs(b).max()))
    assert found or case == "pairs of lanes"


def test_chunks_divide_lanes_where_they_can():
    assert list(chunk_sizes(12)) == [6, 3, 2, 1]
    assert list(chunk_sizes(7)) == [4, 1]
    assert next(chunk_sizes(97)) == 49 and list(chunk_sizes(1)) == []


BATCH = draw(5, 1024, 32)
LAYERS = [draw(k, 32, 32) for k in range(3)]


def test_a_limit_chunks_a_batch_where_computing_again_is_not_enough():
    g = ft.grad(loss)
    whole, expected = peak(g, LAYERS, BATCH), ft.jit(g)(LAYERS, BATCH)
    limit = BATCH.nbytes + 2 * 3 * LAYERS[0].nbytes + 90_000
    assert limit < whole / 2
    less = ft.jit(g, memory_limit=limit)
    for a, b in zip(less(LAYERS, BATCH), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6 * np.abs(b).max())
    assert peak(g, LAYERS, BATCH, memory_limit=limit) <= limit
    said = str(ft.explain(less, LAYERS, BATCH))
    assert "lanes are computed" in said and "at a time, in" in said


def test_auto_in_a_compiled_function_is_decided_by_the_limit():
    f = ft.vmap(one, (None, 0), chunk_size="auto")
    expected = ft.vmap(one, (None, 0))(LAYERS, BATCH)
    for limit, is_cut in (("1GB", False), (400_000, True)):
        jitted = ft.jit(f, memory_limit=limit)
        np.testing.assert_allclose(jitted(LAYERS, BATCH), expected, rtol=1e-5)
        assert ("lanes are computed" in str(ft.explain(jitted, LAYERS, BATCH))) == is_cut
    np.testing.assert_allclose(ft.jit(f)(LAYERS, BATCH), expected, rtol=1e-5)
    # in a function that another one calls, and under a gradient
    inner = ft.jit(f)
    outer = ft.jit(ft.grad(lambda ws: inner(ws, BATCH).mean()), memory_limit=400_000)
    for a, b in zip(outer(LAYERS), ft.grad(loss)(LAYERS, BATCH), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6 * np.abs(b).max())


def test_auto_of_what_no_compiler_cuts_is_traced_in_chunks():
    def lane(x):  # what Python computes of a batch may be anything
        y = n.outer(x, x)
        return ft.pure_callback(np.sin, y, y, vmap_method="expand_dims").sum(1)

    f = ft.vmap(lane, chunk_size="auto")
    expected = ft.vmap(lane)(X)
    limit = peak(f, X) // 2
    jitted = ft.jit(f, memory_limit=limit)
    assert peak(f, X, memory_limit=limit) <= limit
    np.testing.assert_allclose(jitted(X), expected, atol=1e-6)
    with pytest.raises(MemoryLimitError):
        ft.jit(f, memory_limit=1000)(X)


def test_auto_without_jit_is_decided_by_an_estimate(monkeypatch):
    f, expected = ft.vmap(one, (None, 0), chunk_size="auto"), ft.vmap(one, (None, 0))(WS, X)
    g = ft.grad(lambda ws: f(ws, X).mean())

    def lengths():
        return [e.params["length"] for e in ft.make_jaxpr(f)(WS, X).eqns
                if e.primitive.name == "scan"]

    np.testing.assert_allclose(f(WS, X), expected, rtol=1e-6)
    assert lengths() == []
    seen = []
    for limit in (14_000, 11_000, 1):
        with config.scope(memory_limit=limit):
            np.testing.assert_allclose(f(WS, X), expected, rtol=1e-6)
            seen += lengths()
            for a, b in zip(g(WS), ft.grad(loss)(WS, X), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
    assert 1 < seen[0] < seen[1] < seen[2] == 50
    monkeypatch.setattr(chunking, "_free_on_host", lambda: 16_000)
    assert lengths() and chunking.default_limit(None) == 4096


def test_auto_is_text_and_axis_names_exclude_chunks():
    for wrong in ("many", True, 0):
        with pytest.raises(ArgumentError, match="chunk_size must be a positive int or"):
            ft.vmap(one, chunk_size=wrong)
    with config.scope(memory_limit=1), pytest.raises(ArgumentError, match="exclude each other"):
        ft.vmap(lambda x: n.sin(x), axis_name="i", chunk_size="auto")(X)


def test_auto_decides_for_each_number_of_elements():
    """No program of all sizes: what fits depends on the size."""
    jitted = ft.jit(ft.vmap(one, (None, 0), chunk_size="auto"))
    for x in (X, X[:30], X[:40]):
        np.testing.assert_allclose(jitted(WS, x), ft.vmap(one, (None, 0))(WS, x), rtol=1e-5)
    assert len(jitted.calls.traces.exact) == 3
