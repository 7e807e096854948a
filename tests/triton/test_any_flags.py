"""Any flags: the kernel that computes a value sets the flag of a condition on its elements."""

from itertools import pairwise

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.rules import graph
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.kernels import row_reductions
from tests.triton.emulated import kernels_of, program_of

RNG = np.random.default_rng(8)


def x(*shape):
    return RNG.normal(size=shape).astype("f")


def softmax(x, limit):
    y = ft.nn.softmax(x)
    return y, (x > limit).any(), (y.sum(1) > limit).any()


def scanned(x, limit):
    def body(c, row):
        y = jnp.tanh(row @ row.T) + c
        return y, (y > limit).any()
    return ft.lax.scan(body, jnp.zeros((x.shape[1], x.shape[1]), "float32"), x)


WAYS = {  # a function of arrays and a limit, arrays, launches without the one that clears the flags
    "elements": (lambda x, limit: (jnp.sin(x), (x > limit).any()), [x(50, 70)], 1),
    "a line": (lambda x, limit: (x + 1, (x > limit).any(), (x < -limit).any()), [x(20000)], 1),
    "alone": (lambda x, limit: (x > limit).any(), [x(37, 61)], 1),
    "rows and numbers of rows": (softmax, [x(70, 40)], 1),
    "long rows": (softmax, [x(70, 70)], 1),
    "beside sums of columns": (lambda x, limit: (x.sum(0), (x > limit).any()), [x(900, 33)], 1),
    "beside sums of rows and columns": (
        lambda x, limit: (x - x.mean(1, keepdims=True), (x * 2).sum(0), (x > limit).any()),
        [x(2000, 60)], 1),
    "turned": (lambda x, limit: ((x * 2).T, (x > limit).any()), [x(90, 130)], 1),
    "after a product": (lambda x, y, limit: (x @ y, (x @ y > limit).any()), [x(70, 33), x(33, 90)],
                        1),
    "in the epilogue of a product": (
        lambda x, y, limit: (jnp.tanh(x @ y), (x @ y + 1 > limit).any()), [x(70, 33), x(33, 90)],
        1),
    "of a product alone": (lambda x, y, limit: (x @ y > limit).any(), [x(70, 33), x(33, 90)], 2),
    "chosen by": (
        lambda x, limit: jnp.where((x > limit).any(), x, -x), [x(50, 70)], 2),
    "few": (
        lambda x, limit: jnp.where((x > limit).any(), x, -x), [x(5, 7)], 1),
    "in a loop": (scanned, [x(4, 40, 8)], None),
}


@pytest.fixture(autouse=True)
def one_is_enough(monkeypatch):
    monkeypatch.setattr(graph, "LEAST_CONDITIONS", 1)


@pytest.fixture
def long_rows(monkeypatch):
    monkeypatch.setattr(row_reductions, "LONGEST_ROW", 64)
    monkeypatch.setattr(row_reductions, "CHUNK", 64)
    monkeypatch.setattr(graph, "FEW_ELEMENTS", 50)


@pytest.mark.one_in(15)
@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("limit", [-np.inf, 2.9, np.inf, np.nan])
@pytest.mark.parametrize("name", WAYS)
def test_marks(name, limit):
    fun, arrays, _ = WAYS[name]
    args = [*arrays, np.float32(limit)]
    with ft.config.use_backend("reference"):
        expected = ft.jit(fun)(*args)
    for named in (False, True):
        run = ft.jit(fun, dynamic_shapes={0: {0: "B"}}) if named else ft.jit(fun)
        with ft.config.use_backend("triton"):
            found = run(*args)
        for y, e in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(y, e, rtol=2e-5, atol=1e-4)


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("name", [n for n, (_, _, count) in WAYS.items() if count])
def test_marks_take_no_launch_but_the_one_that_clears_them(name):
    fun, arrays, count = WAYS[name]
    _, program, _ = program_of(fun, *arrays, np.float32(0))
    assert len(kernels_of(program)) == count + (name != "few")
    assert not program.arrival_counters or name.startswith("beside")


def test_marks_are_cleared_before_each_run():
    _, program, _ = program_of(lambda x: (x > 1).any(), np.ones((40, 40), "f"))
    run = InterpretedProgram(program)
    for value in (0, 2, 0):
        (found,) = run([np.full((40, 40), value, "f")])
        assert found == (value == 2)


def test_nothing_is_compared_before_it_is_known():
    """A flag on which a cond branches is read after the kernel that sets it."""
    def fun(x):
        return ft.lax.cond((x > 1).any(), lambda x: x * 2, lambda x: x * 3, x)

    with ft.config.use_backend("triton"):
        for value in (0.5, 2.0):
            y = ft.jit(fun)(np.full((40, 40), value, "f"))
            np.testing.assert_array_equal(y, value * (2 if value > 1 else 3))


GRADIENTS = {
    "an MLP": lambda w, x: jnp.tanh(jnp.tanh(x @ w) @ w.T).sum(),
    "attention": lambda w, x: (ft.nn.softmax(jnp.where(
        jnp.tri(x.shape[0], dtype=bool), x @ w @ w.T @ x.T, -np.inf)) @ x).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_checked_programs_have_the_kernels_of_unchecked_ones(name):
    """One launch clears the flags, one reduces the first; transposed results are stored so."""
    fun = ft.value_and_grad(GRADIENTS[name])
    args = [ft.ShapeDtypeStruct((64, 48), "float32"), ft.ShapeDtypeStruct((128, 64), "float32")]
    counts = []
    for checks in (frozenset(), frozenset(ft.core.config.CHECKS)):
        with ft.core.config.scope(checks=checks):
            compiled = ft.jit(fun).lower(*args, target="cuda:90").compile()
        counts.append(sum(k.launches for k in compiled.kernels))
    assert counts[1] <= counts[0] + 3


def test_conditions_on_small_results_are_told_apart():
    def fun(*arrays):
        found = [jnp.log(x) for x in arrays]
        return found, [(y != y).any() for y in found]

    arrays = [np.full((2 + k % 3, 5 * k + 1), 2, "f") for k in range(40)]
    _, program, _ = program_of(fun, *arrays)
    assert program.arrival_counters == 0 and len(program.steps) <= 2 * len(arrays) + 3
    run = InterpretedProgram(program)
    for bad in (None, 0, 1, 29, 30, 31, 39):
        given = [x * (-1 if k == bad else 1) for k, x in enumerate(arrays)]
        *_, flags = np.split(np.array(run(given), dtype=object), 2)
        assert [bool(f) for f in flags] == [k == bad for k in range(40)]


def test_small_gradients_of_a_checked_program_take_one_launch():
    def loss(parameters, x):
        for w, b in parameters:
            x = jnp.tanh(x @ w + b)
        return (x * x).mean()

    def spec(*shape):
        return ft.ShapeDtypeStruct(shape, "float32")

    sizes = (64, 48, 32, 16, 8)
    args = [(spec(i, o), spec(o)) for i, o in pairwise(sizes)], spec(200, 64)
    counts = []
    for checks in (frozenset(), frozenset(ft.core.config.CHECKS)):
        with ft.core.config.scope(checks=checks):
            compiled = ft.jit(ft.value_and_grad(loss)).lower(*args, target="cuda:90").compile()
        counts.append(sum(k.launches for k in compiled.kernels))
    assert counts[1] <= counts[0] + 2


def test_a_single_condition_is_folded(monkeypatch):
    monkeypatch.undo()
    _, program, _ = program_of(lambda x: (x > 1).any(), np.ones((300, 300), "f"))
    assert len(kernels_of(program)) == 1
    assert program.arrival_counters


def test_bits_of_all_are_no_mark():
    x = RNG.integers(0, 2**20, (50, 70)).astype("i4")
    with ft.config.use_backend("triton"):
        found = ft.jit(ft.lax.reduce_or, static_argnums=1)(x, (0, 1))
    assert found == np.bitwise_or.reduce(x, None)
