"""What fuses, and the reasons for what does not: golden schedules."""

import textwrap

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.tensor import Stored
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule import group, kernel, plans
from functrans.lowering.schedule.show import show
from tests.lowering.test_passes import program_of


def plan(fun, *args):
    jaxpr, _ = program_of(fun, *args)
    return plans.CPU.schedule(graph_of(simplify(jaxpr)))[1]


def shown(fun, *args):
    """The schedule of a function of arrays, without the lines of this file."""
    return show(plan(fun, *args), lines=False)


X = np.zeros((64, 128), np.float32)
GAIN = np.zeros(128, np.float32)
IDS = np.zeros(9, np.int32)


def layer_norm(x, gain, bias):
    centred = x - jnp.mean(x, 1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred * centred, 1, keepdims=True) + 1e-5) * gain + bias


PROGRAMS = {
    "softmax": (lambda x: ft.nn.softmax(x, axis=1), (X,), """\
        kernel 1: 64 rows of 128, 3 loops
          reduce_row: max f32[64]
          full: f32[64, 128]
          reduce_row: add f32[64]
          full: f32[64, 128] stored
          reads f32[64, 128]"""),
    "layer_norm": (layer_norm, (X, GAIN, GAIN), """\
        kernel 1: 64 rows of 128, 3 loops
          reduce_row: add f32[64]
          reduce_row: add f32[64]
          row: f32[64]
          full: f32[64, 128] stored
          reads f32[128], f32[64, 128]"""),
    "siblings": (lambda x: (jnp.exp(x), jnp.exp(x) + 1, jnp.sin(x)), (X,), """\
        kernel 1: 8192 elements in pieces of 4096, 1 loop
          full: f32[64, 128] stored
          full: f32[64, 128] stored
          full: f32[64, 128] stored
          reads f32[64, 128]"""),
    "sums_over_everything": (lambda x: (jnp.sum(x, 1), jnp.sum(x, 0), jnp.sum(x)), (X,), """\
        kernel 1: 64 rows of 128, 1 loop
          reduce_row: add f32[64] stored
          reduce_column: add f32[128] stored
          reduce_all: add f32[] stored
          reads f32[64, 128]"""),
    "sum_of_what_is_turned_and_stored": (
        lambda x: (jnp.sin(x[:, :64].T) + x[:, :64], (jnp.sin(x[:, :64].T) + x[:, :64]).sum()),
        (X,), """\
        kernel 1: 64 rows of 64, 1 loop
          full: f32[64, 64] stored
          reads f32[64, 128]
        kernel 2: 1 row of 4096, 1 loop
          reduce_row: add f32[] stored
          reads f32[64, 64]"""),
    "sum_with_prologue_and_epilogue": (lambda x: jnp.sqrt(jnp.sum(jnp.sin(x), 1)) + 1, (X,), """\
        kernel 1: 64 rows of 128, 1 loop
          reduce_row: add f32[64]
          row: f32[64] stored
          reads f32[64, 128]"""),
    "gather_and_consumer": (lambda x, i: jnp.sin(x[i]) + 2, (X, IDS), """\
        kernel 1: 9 rows of 128, 1 loop
          full: f32[9, 128] stored
          reads f32[64, 128], i32[9]"""),
    "scatter_of_an_expression": (
        lambda x, i: jnp.zeros((5, 128), np.float32).at[i].add(jnp.sin(x[:9])), (X, IDS), """\
        kernel 1: 1 row of 640, 1 loop
          full: f32[5, 128] stored
        kernel 2: 9 rows of 128, 1 loop
          scatter: scatter_add f32[5, 128] stored
          reads f32[64, 128], i32[9]"""),
    "concatenate": (lambda x: jnp.concatenate([jnp.sin(x), x]) + 1, (X,), """\
        kernel 1: 128 rows of 128, 1 loop
          full: f32[128, 128] stored
          reads f32[64, 128]"""),
    "pad": (lambda x: jnp.pad(jnp.exp(x), 1) * 2, (X,), """\
        kernel 1: 66 rows of 130, 1 loop
          full: f32[66, 130] stored
          reads f32[64, 128]"""),
    "transpose_and_add": (lambda x, y: x.T + y, (X, X.T), """\
        kernel 1: 128 rows of 64, 1 loop
          full: f32[128, 64] stored
          reads f32[128, 64], f32[64, 128]"""),
    "product_with_epilogue": (lambda x, w: ft.nn.relu(x @ w), (X, np.zeros((128, 64), np.float32)),
                              """\
        gemm with epilogue 1: f32[64, 64]
          full: f32[64, 64] stored"""),
    "rows_too_long": (lambda x: ft.nn.softmax(x, axis=1), (np.zeros((4, 100000), np.float32),), """\
        kernel 1: 100 rows of 4000 in 4 parts, 1 loop
          reduce_all: max f32[4] stored
          reads f32[4, 100000]
        kernel 2: 4 rows of 100000 in 4 parts, 1 loop
          full: f32[4, 100000] stored
          reduce_all: add f32[4] stored
          reads f32[4, 100000], max f32[4]
        kernel 3: 4 rows of 100000, 1 loop
          full: f32[4, 100000] stored
          reads add f32[4], f32[4, 100000]
        apart: f32[4, 100000]: the rows are too long to stay in the cache between two loops"""),
    "known_after_the_loops": (lambda x: x / jnp.max(x, 0), (X,), """\
        kernel 1: 64 rows of 128, 1 loop
          reduce_column: max f32[128] stored
          reads f32[64, 128]
        kernel 2: 64 rows of 128, 1 loop
          full: f32[64, 128] stored
          reads f32[64, 128], max f32[128]
        apart: f32[64, 128]: the max f32[128] folds over the rows of the kernel, and is known after\
 its loops"""),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_schedule(name):
    fun, args, text = PROGRAMS[name]
    assert shown(fun, *args) == textwrap.dedent(text)


def test_layer_norm_and_its_gradient_are_one_kernel():
    """Sums over rows and over columns, and every row read once."""
    def gradient(x, gain, bias, ct):
        return ft.vjp(layer_norm, x, gain, bias)[1](ct)

    schedule = plan(gradient, X, GAIN, GAIN, X)
    (kernel,) = schedule.steps
    roles = [m.role for m in kernel.members]
    assert roles.count("reduce_column") == 2  # the cotangents of gain and bias
    assert roles.count("reduce_row") == 4
    assert sum(m.tensor in schedule.stored for m in kernel.members) == 3
    assert not schedule.notes


def test_the_lines_of_the_user_are_named():
    text = show(plan(lambda x: jnp.sum(jnp.sin(x), 1), X))
    assert "reduce_row: add f32[64] stored  test_fusion.py:" in text
    assert "jnp.sum(jnp.sin(x), 1)" in text


@pytest.mark.parametrize("f", [
    lambda x, y: jnp.where(x > y, jnp.sin(x) * 2, y),
    lambda x, y: two_functions(x) + two_functions(y),
    lambda x, y: ft.nn.gelu(x * y[0, 0]) - jnp.exp(x).sum(),
    lambda x, y: jnp.pad(jnp.tanh(x), 1)[1:, 1:] * 3,
    lambda x, y: jnp.clip(x.astype(jnp.float16) * y, -1, 1)])
@pytest.mark.parametrize("shape", [(64, 128), (1, 5), (3, 1, 7), (40_000,)])
def test_elementwise_roots_have_the_loops_that_expressions_tell(f, shape, monkeypatch):
    x = np.zeros(shape, np.float32)
    jaxpr, _ = program_of(lambda x, y: f(x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])),
                          x, x)
    graph = graph_of(simplify(jaxpr))
    roots = group.choose_roots(graph.items, graph.outputs)

    def loops():
        return {t: kernel.preferred_loop_nest(t, lambda t: isinstance(t, Stored) or t in roots)
                for t in roots}

    known = loops()
    monkeypatch.setattr(kernel, "_pointwise_reads", lambda root, is_stored: None)
    assert known == loops()


def two_functions(x):
    for _ in range(4):
        x = jnp.exp(jnp.sin(x) * 1.5)
    return x
