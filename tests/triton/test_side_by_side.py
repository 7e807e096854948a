"""Small kernels that do not depend on each other share a launch."""

import random

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.schedule.side_by_side import (
    MOST_TOGETHER,
    StepAccess,
    levels_of_small_steps,
    worth_compiling,
)
from functrans.lowering.triton import joining
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.kernels.joined import WAIT
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import launch_key, launches_in
from tests.triton.emulated import check, kernels_of, program_of
from tests.triton.test_last_program import Repeated

RNG = np.random.default_rng(3)
SHAPES = [(48, 64), (3000,), (64, 48), (70, 33)] * 10


def arrays(shapes=SHAPES):
    return [np.abs(RNG.normal(size=shape)).astype("f") + 0.1 for shape in shapes]


def adam(params, first, second, gradients):
    first = ft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = ft.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
    params = ft.tree.map(lambda p, m, v: p - 1e-2 * m / (jnp.sqrt(v) + 1e-8), params, first,
                         second)
    return params, first, second


def without_joining(monkeypatch, make):
    with monkeypatch.context() as patched:
        patched.setattr(joining, "MOST_PROGRAMS", 0)
        return make()


def kernel_count(program):
    return len({launch_key(step) for step in launches_in(program.steps)})


def test_an_optimizer_step_of_forty_arrays_is_two_launches(monkeypatch):
    args = [arrays() for _ in range(4)]
    _, apart, _ = without_joining(monkeypatch, lambda: program_of(adam, *args))
    assert len(kernels_of(apart)) == 40
    program = check(adam, *args)
    assert len(kernels_of(program)) == 2  # a group has so many kernels at most
    assert kernel_count(program) <= kernel_count(apart)
    a, b = (InterpretedProgram(p)(ft.tree.leaves(args)) for p in (program, apart))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
    for binary in binaries(program).values():
        assert not binary.spills and "ld.global.v4" in binary.ptx


def test_donated_parameters_are_updated_in_place():
    jaxpr, _, _ = program_of(adam, *[arrays(SHAPES[:4]) for _ in range(4)])
    program = write_program(jaxpr, donated=range(12))
    assert len(kernels_of(program)) == 1 and len(program.steps) == 1
    assert len(program.aliases.inputs) == 12


def test_nothing_is_written_to_what_another_kernel_of_the_launch_reads():
    """The first result could be in the memory of `x`, which its kernel reads at the same place."""
    def fun(x):
        return jnp.sin(x) * 2, x.reshape(-1)[:2500][::-1] + 1

    x = arrays([(64, 64)])[0]
    jaxpr, _, consts = program_of(fun, x)
    program = write_program(jaxpr, donated=[0])
    assert len(kernels_of(program)) == 1 and "2 kernels side by side" in program.notes[0]
    assert not program.aliases.inputs
    for found, expected in zip(InterpretedProgram(program)([*consts, x]), fun(x), strict=True):
        np.testing.assert_allclose(found, expected, 1e-5)
    alone, _, _ = program_of(lambda x: jnp.sin(x) * 2, x)
    assert write_program(alone, donated=[0]).aliases.inputs == {0: 0}


def test_reductions_beside_each_other_have_counters_of_their_own():
    def fun(xs):
        return [x.sum(0) for x in xs]

    xs = arrays([(3000, 22), (2900, 5), (2000, 70)])
    _, program, _ = program_of(fun, xs)
    assert len(kernels_of(program)) == 1
    run = Repeated(program)
    for outs in run(xs):
        for out, x in zip(outs, xs, strict=True):
            np.testing.assert_allclose(out, x.sum(0), 1e-4)
    assert not run.arrival_counters.any()
    (binary,) = binaries(program).values()
    assert not binary.spills


def test_every_program_waits_for_the_launches_before():
    """The launch begins early if one member waits for them in its own time."""
    def fun(x, y, w):
        h = jnp.tanh(x @ w)
        return [jnp.exp(y) * h[0, 0], (h * 2).T, h.sum(0)]

    args = [*arrays([(64, 48), (2500,), (48, 96)])]
    program = check(fun, *args)
    text = program.sources[0]
    members = text.split("@triton.jit")
    (caller,) = [part for part in members if "(pid >= " in part]
    waiting = [part.split("def ")[1].split("(")[0] for part in members
               if WAIT in part and part is not caller]
    assert waiting
    for branch in caller.split("if (pid >= ")[1:]:
        assert (WAIT in branch) != any(f"{name}(" in branch for name in waiting)


@pytest.mark.thorough
def test_steps_of_a_launched_loop_are_joined():
    w = arrays([(256, 256)])[0] / 256

    def fun(x, y, z):
        def body(k, c):
            x, y, z = c
            h = x @ w
            return h / (1 + h.max()), jnp.sin(y) + h[0, 0], (z * 0.5).T + h[0, 1]
        return ft.lax.fori_loop(0, 3, body, (x, y, z))

    program = check(fun, *arrays([(256, 256), (5000,), (90, 90)]))
    assert any("side by side" in note for note in program.notes)


def test_explain_says_what_shares_a_launch():
    told = str(ft.explain(adam, *[arrays(SHAPES[:4]) for _ in range(4)], target="cuda:90"))
    assert "4 kernels side by side" in told


# --------------------------------------------------------------------------- random programs


def program_of_choices(seed):
    """A program of elementwise functions, reductions, transposes and products of some arrays."""
    choose = random.Random(seed)

    def fun(*xs):
        values = list(xs)
        for _ in range(choose.randint(6, 14)):
            x = choose.choice(values)
            y = choose.choice([v for v in values if v.shape == x.shape])
            values.append(choose.choice([
                lambda x, y: jnp.sin(x) + y, lambda x, y: (x * 0.5).T, lambda x, y: x[::-1] * 2,
                lambda x, y: x - x.mean(0), lambda x, y: x / (1 + jnp.abs(x).sum(1)[:, None]),
                lambda x, y: x @ y.T / 64 if x.shape == (64, 64) else x + 1,
                lambda x, y: x + jnp.max(y), lambda x, y: x.astype("bfloat16").astype("float32"),
            ])(x, y))
        return values[len(xs):]

    return fun


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_have_the_same_results(monkeypatch, seed):
    args = arrays([(64, 64), (37, 53), (53, 37), (64, 64), (2, 1500)])
    fun = program_of_choices(seed)
    _, apart, consts = without_joining(monkeypatch, lambda: program_of(fun, *args))
    _, program, _ = program_of(program_of_choices(seed), *args)
    assert len(kernels_of(program)) <= len(kernels_of(apart))
    assert kernel_count(program) <= kernel_count(apart)
    found, expected = (InterpretedProgram(p)([*consts, *args]) for p in (program, apart))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, 1e-6)


# --------------------------------------------------------------------------- order and groups


@pytest.mark.parametrize("seed", range(20))
def test_groups_keep_dependencies(seed):
    choose = random.Random(seed)
    steps = [StepAccess(frozenset(choose.sample(range(12), 3)), frozenset([choose.randrange(12)]),
                        choose.random() < 0.7, 1) for _ in range(60)]
    groups = levels_of_small_steps(steps, most_bytes=choose.choice([5, 1000]))
    assert sorted(k for group in groups for k in group) == list(range(60))
    place = {k: n for n, group in enumerate(groups) for k in group}
    for k, step in enumerate(steps):
        assert step.waits or groups[place[k]] == [k]
        assert len(groups[place[k]]) <= MOST_TOGETHER
        for j in range(k):
            if step.depends_on(steps[j]):
                assert place[j] < place[k]
    others = [group[0] for group in groups if not steps[group[0]].waits]
    assert others == sorted(others)


def test_groups_do_not_make_more_kernels():
    # a is launched in each of three groups, beside another kernel that is launched elsewhere
    groups = [["a", "b"], ["a", "c"], ["a", "d"], ["b"], ["c"], ["d"]]
    taken = worth_compiling(groups)
    compiled = {k for group, t in zip(groups, taken, strict=True) if not t for k in group}
    assert len(compiled) + sum(taken) <= 4
    assert worth_compiling([["a", "a"], ["a", "a"], ["b", "c"], ["c"]]) == [True, True, True, False]
