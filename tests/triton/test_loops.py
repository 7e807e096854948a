"""Loops and branches on a GPU: where the steps of a body are, and what goes to the host."""

from collections import Counter

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.loops import forms, iterations
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.steps.spec import (
    DoubleBufferedSteps,
    HostStep,
    Launch,
    RepeatedSteps,
)
from tests.triton.test_programs import program_of

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("f")


def rnn(w, u, h, xs):
    def step(h, x):
        h = jnp.tanh(x @ w + h @ u)
        return h, h
    return lax.scan(step, h, xs)


def nested(c, xs):
    def inner(d, y):
        return d * 0.9 + jnp.sin(y), d
    return lax.scan(lambda c, x: lax.scan(inner, c, x), c, xs)


def until_ten(v):
    return lax.while_loop(lambda v: v.sum() < 10, lambda v: v + 1, v)


RNN = normal(5, 8), normal(8, 8), normal(3, 8), normal(6, 3, 5)
C, XS = normal(5), normal(4, 5)

LOOPS = {  # a function, its arguments, how many steps of the host
    "rnn": (rnn, RNN, 0),
    "rnn of aligned rows": (rnn, (normal(16, 16), normal(16, 16), normal(4, 16), normal(3, 4, 16)),
                            0),
    "gradient of rnn": (ft.grad(lambda *a: rnn(*a)[1].sum(), (0, 1, 2)), RNN, 0),
    "batch of rnn": (lambda w, u, h, xs: ft.vmap(lambda h, x: rnn(w, u, h, x), (None, 1))(h, xs),
                     (*RNN[:2], normal(8), RNN[3]), 0),
    "reverse": (lambda xs: lax.scan(lambda c, x: (c * 0.5 + x, c), jnp.zeros(3), xs, reverse=True),
                (normal(7, 3),), 0),
    "no carry": (lambda xs: lax.map(lambda x: jnp.sin(x).sum(), xs), (XS,), 0),
    "no xs": (lambda c: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) + i, c), (C,), 0),
    "one iteration": (lambda c, xs: lax.scan(lambda c, x: (jnp.sin(c) + x, x * 2), c, xs),
                      (C, XS[:1]), 0),
    "no iteration": (lambda c, xs: lax.scan(lambda c, x: (jnp.sin(c) + x, x * 2), c, xs),
                     (C, XS[:0]), 0),
    "saved, in reverse": (lambda c, xs: lax.scan(
        lambda c, x: (jnp.sin(c) + x, (c, x * 2, c)), c, xs, reverse=True), (C, XS), 0),
    "saved and collected": (lambda c, xs: lax.scan(
        lambda c, x: (lambda v: (v, (c, v)))(jnp.sin(c) + x), c, xs), (C, XS), 0),
    "exchanged and saved": (lambda a, b, xs: lax.scan(
        lambda c, x: ((c[1], c[0] * x), (c[0], c[1])), (a, b), xs), (C, C[::-1].copy(), XS), 0),
    "exchanged": (lambda a, b, xs: lax.scan(
        lambda c, x: ((c[1], c[0] * x), c[0] + 1), (a, b), xs), (C, C[::-1].copy(), XS), 0),
    "fixed": (lambda a, b, xs: lax.scan(
        lambda c, x: ((c[0] + x * c[1], c[1]), c[1] + c[0]), (a, b), xs), (C, C[::-1].copy(), XS),
        0),
    "collected twice": (lambda c, xs: lax.scan(
        lambda c, x: ((lambda v: ((v, v), (v, v)))(jnp.sin(c[0] * x + c[1]))), (c, c), xs),
        (C, XS), 0),
    "nested": (nested, (normal(3), normal(4, 5, 3)), 0),
    "gradient of nested": (ft.grad(lambda c, xs: nested(c, xs)[0].sum(), (0, 1)),
                           (normal(3), normal(2, 3, 3)), 0),
    "updates": (lambda c, x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(jnp.sin(x) * i), c),
                (normal(7, 3), normal(3)), 0),
    "updates from what is there": (lambda c: lax.fori_loop(
        1, 5, lambda i, c: c.at[i].set(c[i - 1] * 1.5), c), (normal(7, 3),), 0),
    "updates, collected before": (lambda c, xs: lax.scan(
        lambda c, x: (c.at[2].add(x.sum()), c), c, xs), (C, XS), 0),
    "while inside": (lambda c, xs: lax.scan(
        lambda c, x: (until_ten(c) * 0.5 + x, jnp.sin(c)), c, xs), (C, XS), 0),
    "inside while": (lambda c, xs: lax.while_loop(
        lambda v: v.sum() < 10,
        lambda v: lax.scan(lambda v, x: (v + jnp.abs(x), None), v, xs)[0], c), (C, XS), 0),
    "while and nothing else": (lambda xs: lax.map(until_ten, xs), (XS,), 0),
    "while of constants": (lambda v: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + np.arange(5, dtype="f") * v), (0, v)),
        (C,), 0),
    "while, not once": (lambda v: lax.while_loop(
        lambda c: c[0] > 3, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (0, v, v)), (C,), 0),
    "while that updates": (lambda v: lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1].at[c[0]].set(c[0] * 2.0)), (0, v)), (C,), 0),
    "branch": (lambda i, x: lax.cond(i > 0, lambda x: jnp.sin(x), lambda x: x * 2, x),
               (np.int32(1), C), 0),
    "one of three": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], x),
                     (np.int32(2), C), 0),
    "branch inside": (lambda c, xs: lax.scan(
        lambda c, x: (lax.cond(x.sum() > 0, jnp.sin, lambda c: c * 2, c), c), c, xs), (C, XS), 0),
    "loop in a branch": (lambda i, x, xs: lax.cond(
        i > 0, lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), None), x, xs)[0], lambda x: x * 2,
        x), (np.int32(1), C, XS), 0),
    "long loop in a branch": (lambda i, x: lax.cond(
        i > 0, lambda x: lax.fori_loop(0, 1000, lambda i, c: jnp.sin(c + i), x), lambda x: x * 2,
        x), (np.int32(0), C), 0),
    "long loop in the branch that is taken": (lambda i, x: lax.switch(i, [
        jnp.sin, lambda x: lax.fori_loop(0, 200, lambda i, c: jnp.sin(c + i), x),
        lambda x: until_ten(jnp.abs(x)) * 2], x), (np.int32(1), C), 0),
    "while in the branch that is taken": (lambda p, x: lax.cond(
        p, lambda x: (until_ten(jnp.abs(x)), x[0]), lambda x: (x * 2, x[1]), x),
        (np.bool_(True), C), 0),
    "loop in a branch in a while": (lambda x, xs: lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, lax.cond(
            c[0] % 2 == 0, lambda x: lax.scan(lambda c, y: (jnp.sin(c + y), None), x, xs)[0],
            lambda x: x * 2, c[1])), (0, x))[1], (C, XS), 0),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name):
    fun, args, hosts = LOOPS[name]
    jaxpr, program, consts = program_of(fun, *args)
    assert sum(isinstance(s, HostStep) for s in program.steps) == hosts
    arrays = [*consts, *map(np.asarray, ft.tree.leaves(args))]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a.astype("f8"), e.astype("f8"), 2e-4, 2e-4)


def not_one_kernel(call, scope):
    raise UnsupportedKernel("as if its values were large")


@pytest.fixture
def launched(monkeypatch):
    """Loops whose bodies are launched, however small."""
    for form in ("lanes_in_threads", "mapped_scan", "resident_loop"):
        monkeypatch.setattr(forms, form, not_one_kernel)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [name for name in LOOPS if "while" not in name])
def test_launched_loops(name, launched):
    test_loops(name)


@pytest.mark.parametrize("name", [name for name in LOOPS if "while" in name])
def test_loops_with_large_values_take_turns(name, launched, monkeypatch):
    """As if all values were large, no loop is one kernel."""
    fun, args, _ = LOOPS[name]
    nested = {"while inside": 0, "inside while": 1, "while and nothing else": 0}
    jaxpr, program, consts = program_of(fun, *args)
    assert sum(isinstance(s, DoubleBufferedSteps)
               for s in program.steps) == nested.get(name, 1) or name in nested
    assert not any(isinstance(s, HostStep) for s in program.steps)
    arrays = [*consts, *map(np.asarray, ft.tree.leaves(args))]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        np.testing.assert_allclose(a.astype("f8"), e.astype("f8"), 2e-4, 2e-4)


def test_the_host_takes_part_in_a_loop_and_sees_only_what_happens(launched):
    seen = []

    def told(v):
        seen.append(float(v.sum()))
        return v[::-1]

    def fun(x):
        return lax.while_loop(lambda v: v.sum() < 10, lambda v: jnp.abs(ft.pure_callback(
            told, ft.ShapeDtypeStruct(v.shape, v.dtype), v + 1)), x)

    x = np.arange(4, dtype="f")
    _, program, _ = program_of(fun, x)
    (turns,) = [s for s in program.steps if isinstance(s, DoubleBufferedSteps)]
    assert not turns.ahead
    assert sum(isinstance(s, HostStep) for s in turns.sides[0].body) == 1
    assert any(isinstance(s, Launch) for s in turns.sides[0].body)
    (out,) = InterpretedProgram(program)([x])
    np.testing.assert_allclose(out, x[::-1] + 1 if len(seen) % 2 else x + 2)
    assert seen == [10.0]


def test_effects_in_a_branch_happen_where_it_is_chosen(capsys):
    def loud(x):
        ft.debug.print("at {}", x[0])
        return jnp.sin(x)

    def fun(p, x):
        return lax.cond(p, loud, lambda x: x * 2, x)

    x = np.ones(3, "f")
    _, program, _ = program_of(fun, np.bool_(True), x)
    for chosen, expected, said in ((False, x * 2, ""), (True, np.sin(x), "at 1.0\n")):
        (out,) = InterpretedProgram(program)([np.bool_(chosen), x])
        np.testing.assert_allclose(out, expected, 1e-6)
        assert capsys.readouterr().out == said


def test_effects_in_a_loop_happen_once_an_iteration(capsys):
    def fun(x):
        def body(v):
            ft.debug.print("at {}", v[0])
            return v * 2
        return lax.while_loop(lambda v: v.sum() < 20, body, x)

    x = np.arange(1, 4, dtype="f")
    _, program, _ = program_of(fun, x)
    assert any(isinstance(s, DoubleBufferedSteps) for s in program.steps)
    (out,) = InterpretedProgram(program)([x])
    np.testing.assert_array_equal(out, x * 4)
    assert capsys.readouterr().out.split() == ["at", "1.0", "at", "2.0"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [
    "rnn", "gradient of rnn", "reverse", "saved, in reverse", "saved and collected",
    "exchanged and saved", "exchanged", "fixed", "updates, collected before", "collected twice"])
@pytest.mark.parametrize("length", [6, 9])
def test_long_loops_go_in_rounds(name, length, launched, monkeypatch):
    monkeypatch.setattr(iterations, "MOST_STEPS", 3)
    fun, args, _ = LOOPS[name]
    args = [*args[:-1], normal(length, *args[-1].shape[1:])]
    assert any(isinstance(s, RepeatedSteps) for s in program_of(fun, *args)[1].steps)
    monkeypatch.setitem(LOOPS, name, (fun, args, 0))
    test_loops(name)


def steps_of(fun, *args):
    return Counter(type(s).__name__ for s in program_of(fun, *args)[1].steps)


def test_the_carry_is_not_copied(launched):
    def step(c, x):
        return jnp.sin(c) + x, None
    assert steps_of(lambda c, xs: lax.scan(step, c, xs)[0], C, XS) == {"Launch": 4}


def test_a_carry_that_is_collected_is_where_it_is_collected(launched):
    def step(c, x):
        c = jnp.sin(c) + x
        return c, c
    assert steps_of(lambda c, xs: lax.scan(step, c, xs), C, XS) == {"Launch": 4, "CopyStep": 1}


def test_a_carry_is_where_it_is_saved_before_an_iteration(launched):
    def step(c, x):
        return jnp.sin(c) + x, c
    for reverse in (False, True):
        assert steps_of(lambda c, xs, r=reverse: lax.scan(step, c, xs, reverse=r), C, XS) == {
            "Launch": 4, "CopyStep": 1}
    assert steps_of(ft.grad(lambda c, xs: lax.scan(lambda c, x: (jnp.sin(c) * x, None), c,
                                                   xs)[0].sum()), C, XS)["CopyStep"] <= 2


def test_a_carry_that_is_updated_stays_where_it_is(launched):
    def step(i, c):
        return c.at[i].set(jnp.float32(3) * i)
    _, program, _ = program_of(lambda c: lax.fori_loop(0, 5, step, c), normal(7, 3))
    assert sum(s.target.kind == "output" for s in program.steps if not isinstance(s, Launch)) == 1


def test_places_that_are_not_aligned_are_not_said_to_be(launched):
    for width, aligned in ((5, False), (8, True)):
        _, program, _ = program_of(lambda xs: lax.map(jnp.sin, xs), normal(3, width))
        for launch in program.steps:
            assert set(launch.divisible) == {aligned}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["rnn", "rnn of aligned rows", "updates", "nested",
                                  "branch inside"])
def test_loops_compile_without_a_gpu(name):
    fun, args, _ = LOOPS[name]
    _, program, _ = program_of(fun, *args)
    found = binaries(program)
    assert all(b.cubin[:4] == b"\x7fELF" for b in found.values())
