"""What is computed again where it is read, and what is stored: less is moved."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.tensor import Gemm, Map
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule.group import schedule_of
from functrans.lowering.schedule.recompute import recompute
from tests.lowering.test_passes import program_of

W = np.ones((256, 256), np.float32)
X = np.ones((512, 256), np.float32)


def stored(f, *args):
    """How many values of at least 2**16 elements kernels store, before and after; outputs not."""
    program, _ = program_of(f, *args)
    graph = graph_of(simplify(program))
    schedule = schedule_of(graph)
    return [sum(isinstance(t, Map) and t.size >= 2**16 and t not in graph.outputs
                for t in s.stored) for s in (schedule, recompute(schedule, graph.outputs))]


def gelu_layer(w, v, x):
    return ((ft.nn.gelu(x @ w + 1) @ v) ** 2).sum()


def test_what_a_gradient_needs_of_an_activation_is_computed_from_its_input():
    # three that products read: the activation, and what flows back to both of them
    assert stored(ft.grad(gelu_layer, (0, 1)), W, W, X) == [4, 3]


def test_expensive_values_are_stored():
    def twice(x):
        y = jnp.tanh(jnp.tanh(jnp.tanh(jnp.tanh(jnp.tanh(x)))))
        return y.sum(0), (y * jnp.arange(512)[:, None]).T @ y

    before, after = stored(twice, X)
    assert before == after > 0


def test_outputs_are_stored():
    program, _ = program_of(lambda x: (jnp.tanh(x), jnp.tanh(x).T.reshape(512, 256)), X)
    graph = graph_of(simplify(program))
    schedule = recompute(schedule_of(graph), graph.outputs)
    assert set(graph.outputs) <= schedule.stored


@pytest.mark.parametrize("backend", ["triton", "c"])
def test_values(backend):
    rng = np.random.default_rng(0)
    args = [rng.normal(size=s).astype("f") * 0.2 for s in ((32, 48), (48, 16), (64, 32))]
    with ft.config.use_backend(backend), ft.config.matmul_precision("highest"):
        found = ft.jit(ft.grad(gelu_layer, (0, 1, 2)))(*args)
    with ft.config.disable_jit():
        expected = ft.grad(gelu_layer, (0, 1, 2))(*args)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_products_that_want_an_operand_in_another_order_share_the_copy():
    def f(q, x, w):
        return jnp.einsum("bsm,bhsd->mhd", x, q), jnp.einsum("bhsd,mhd->bsm", q, w)

    q, x, w = np.ones((2, 4, 32, 16), "f"), np.ones((2, 32, 64), "f"), np.ones((64, 4, 16), "f")
    program, _ = program_of(f, q, x, w)
    calls = [s for s in schedule_of(graph_of(simplify(program))).steps if isinstance(s, Gemm)]
    copies = [t for c in calls for t in c.operands if isinstance(t, Map)]
    assert len(copies) == 2 and copies[0] is copies[1]
    assert copies[0].shape == (2, 32, 4, 16)
