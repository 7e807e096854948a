"""What runs block by block between products, and that it is the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.memory import aliasing
from functrans.lowering.schedule.chains import Chain
from tests.lowering.schedules import plan, reasons, steps
from tests.lowering.test_epilogues import array, check


def attention(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    return ft.nn.softmax(scores, axis=-1) @ v


def causal(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    mask = jnp.arange(q.shape[-2])[:, None] >= jnp.arange(k.shape[-2])
    return ft.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1) @ v


def gradients(f):
    def both(ct, *args):
        out, pull = ft.vjp(f, *args)
        return out, *pull(ct)

    return both


def heads(*shape):
    return [array(*shape) for _ in range(3)]


SMALL, LONG = (2, 3, 128, 16), (2, 2, 1024, 16)
ROWS = "reduce_row full reduce_row full"


def test_attention_is_one_chain():
    assert steps(attention, *heads(*SMALL)) == [f"chain 6: gemm; {ROWS}; gemm"]
    assert steps(causal, *heads(*SMALL)) == [f"chain 6: gemm; {ROWS}; gemm"]


def test_long_rows_are_split_further():
    assert steps(attention, *heads(*LONG)) == [f"chain 16: gemm; {ROWS}; gemm"]


def test_the_gradient_too():
    (chain,) = plan(gradients(attention), array(*SMALL), *heads(*SMALL)).steps
    assert isinstance(chain, Chain)
    assert chain.count == 6
    assert {t.shape for t in chain.results} == {SMALL}


def test_memory_is_that_of_blocks():
    q, k, v = heads(*LONG)
    executable = ft.jit(attention).lower(q, k, v).compile()
    assert executable.memory_analysis()["temporaries"] == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("f", [attention, causal])
@pytest.mark.parametrize("shape", [SMALL, LONG, (5, 96, 8), (4, 2, 70, 33)])
def test_values(f, shape):
    check(f, *heads(*shape))
    check(gradients(f), array(*shape), *heads(*shape))


def test_other_rows_are_read():
    def f(x, w):
        y = x @ w
        z = jnp.tanh(y - y[::-1])
        return z @ w

    x, w = array(8, 64, 64), array(8, 64, 64)
    assert not any("chain" in s for s in steps(f, x, w))
    assert any("read from other blocks too" in r for r in reasons(f, x, w))
    check(f, x, w)


def test_steps_that_share_nothing_stay_apart():
    def f(q, k, v, x, y):
        return attention(q, k, v), x @ y

    found = steps(f, *heads(*SMALL), *[array(6, 128, 128) for _ in range(2)])
    assert sorted(found) == [f"chain 6: gemm; {ROWS}; gemm", "gemm"]


def test_what_others_read_has_memory():
    def f(q, k, v):
        weights = ft.nn.softmax(q @ k.swapaxes(-1, -2), axis=-1)
        return weights @ v, weights

    q, k, v = heads(*SMALL)
    chain = next(s for s in plan(f, q, k, v).steps if isinstance(s, Chain))
    assert {t.shape for t in chain.results} == {SMALL, (2, 3, 128, 128)}
    check(f, q, k, v)


def test_a_value_of_a_row_beside_a_product():
    def f(x, w):
        y = jnp.tanh(x)
        return x @ w - y.sum(axis=-1, keepdims=True) * y.max()

    check(f, array(2, 4, 70, 32), array(2, 4, 32, 64))


def test_heads_go_beside_each_other():
    def f(q, k, v):
        return attention(q, k, v).swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1)

    assert steps(f, *heads(*SMALL)) == [f"chain 6: gemm; {ROWS}; gemm"]
    check(f, *heads(*SMALL))


PROJECTED = array(256, 512), [array(512, 512) * 0.05 for _ in range(4)], array(256, 512)


def projected(x, ws, y):
    """The gradient of attention whose operands are products, a loss that y multiplies."""
    def loss(x, ws):
        q, k, v = (jnp.moveaxis((x @ w).reshape(len(x), 8, -1), 1, 0) for w in ws[:3])
        return (jnp.moveaxis(attention(q, k, v), 0, 1).reshape(x.shape) @ ws[3] * y).sum()

    return ft.grad(loss, (0, 1))(x, ws)


def test_cotangents_take_the_memory_of_what_the_chain_read(monkeypatch):
    x, ws, y = PROJECTED

    def compiled():
        f = ft.jit(lambda *args: projected(*args))
        return f, f.lower(x, ws, y).compile().memory_analysis()["temporaries"]

    f, nbytes = compiled()
    found = ft.tree.leaves(f(x, ws, y))
    monkeypatch.setattr(aliasing, "in_chains", lambda *_: {})
    f, usual = compiled()
    assert usual - nbytes >= 2 * x.nbytes
    for a, b in zip(found, ft.tree.leaves(f(x, ws, y)), strict=True):
        np.testing.assert_array_equal(a, b)
    check(projected, x, ws, y)


def test_what_is_read_with_its_cotangent_stays():
    def both(x, ws, y):
        out = projected(x, ws, y)
        return out, x @ ws[0]  # the queries are read after the chain

    check(both, *PROJECTED)


def test_few_blocks_are_no_chain():
    assert "chain" not in " ".join(steps(attention, *heads(2, 256, 16)))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtypes(dtype):
    args = [x.astype(dtype) for x in heads(*SMALL)]
    check(attention, *args, tolerance=1e-6 if dtype == "float64" else 1e-2)


@given(st.integers(4, 6), st.integers(1, 150), st.integers(1, 150), st.integers(1, 20),
       st.booleans())
@settings(max_examples=20, deadline=None)
def test_shapes(batch, rows, columns, depth, with_gradient):
    q, k, v = array(batch, rows, depth), array(batch, columns, depth), array(batch, columns, depth)
    if with_gradient:
        check(gradients(attention), array(batch, rows, depth), q, k, v)
    else:
        check(attention, q, k, v)


def test_threads_do_not_change_results():
    q, k, v = heads(4, 2, 256, 32)
    f = ft.jit(attention)
    first = np.asarray(f(q, k, v))
    for _ in range(5):
        np.testing.assert_array_equal(np.asarray(f(q, k, v)), first)
