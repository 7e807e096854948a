"""Kernels that cannot be had: other forms take their place, and the program stays where it is."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as xp
from functrans.core.errors import FallbackWarning
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.kernels.kernel import write_kernel
from functrans.lowering.triton.kernels.source import RejectedKernels
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.machine.device import binaries, unit_of
from functrans.lowering.triton.machine.unit import KernelError
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import HostStep, launches_in
from tests.triton.compiled import compile_kernels

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("f4")


def network(x, w, b):
    h = nn.gelu(x @ w + b)
    return xp.mean((h - h.mean(-1, keepdims=True)) ** 2) + xp.sum(xp.max(h, axis=0))


def attention(q, k, v):
    weights = nn.softmax(xp.einsum("bqhd,bkhd->bhqk", q, k))
    return xp.sum(xp.einsum("bhqk,bkhd->bqhd", weights, v) ** 2)


def recurrence(x, w):
    return lax.scan(lambda c, y: ((d := xp.tanh(c @ w + y)), d.sum()), x[0], x)


def until(x):
    return lax.while_loop(lambda c: xp.sum(c) < 100, lambda c: c * 1.5 + xp.roll(c, 1), x)


PROGRAMS = {
    "a network's gradient": (ft.value_and_grad(network, (0, 1, 2)),
                             (normal(24, 16), normal(16, 32), normal(32))),
    "attention's gradient": (ft.grad(attention, (0, 1, 2)), (normal(1, 16, 2, 16),) * 3),
    "a convolution": (lambda x, w: nn.relu(lax.conv(x, w, (1, 1), "SAME")).sum(0),
                      (normal(2, 3, 6, 6), normal(4, 3, 3, 3))),
    "sorts and running sums": (lambda x: (xp.sort(x, 0), xp.cumsum(x, 1), lax.top_k(x, 2)),
                               (normal(12, 20),)),
    "a scatter": (lambda x, i: xp.zeros((7, 5)).at[i].add(x).at[i[0]].set(1.0),
                  (normal(9, 5), RNG.integers(0, 7, 9))),
    "a scan": (recurrence, (normal(6, 4), normal(4, 4))),
    "a loop": (until, (xp.abs(normal(10)),)),
}


def agree(program, arrays, expected):
    for a, e in zip(InterpretedProgram(program)(arrays), expected, strict=True):
        np.testing.assert_allclose(a, e, 3e-3, 3e-3)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_kernels_are_refused(name):
    """All are, several times, and the values stay as they were."""
    refuse_all(*PROGRAMS[name], rounds=4)


@pytest.mark.parametrize("fun, args", [
    (lambda x, w: xp.sum(xp.tanh(x @ w), 0), (normal(6, 4), normal(4, 8))),
    (lambda x: (xp.sort(x), xp.cumsum(x), 3.0), (normal(9),))], ids=["a product", "orders"])
def test_the_last_form_is_the_host(fun, args):
    program = refuse_all(fun, args, rounds=100)
    assert not list(launches_in(program.steps))
    assert any("runs on the host" in note and __file__ in note for note in program.notes)


def refuse_all(fun, args, rounds):
    """The program when all kernels were refused so many times, or none is left."""
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = closed.jaxpr.hoist_consts()
    arrays = [*map(np.asarray, closed.consts), *map(np.asarray, ft.tree.leaves(args))]
    expected = interpret(jaxpr, arrays)
    simplified, rejected = simplify(jaxpr), RejectedKernels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(rounds):
            program = write_program(simplified, choose=Chooser(HOPPER, rejected))
            agree(program, arrays, expected)
            launches = {(step.module, step.kernel, step.warps, step.stages): step
                        for step in launches_in(program.steps)}
            for launch in launches.values():
                assert rejected.add(program, launch, "nobody wants it")
            if not launches:
                break
    return program


def test_an_epilogue_is_a_kernel_of_its_own_before_all_else():
    args = (normal(64, 32), normal(32, 48))
    jaxpr = simplify(ft.make_jaxpr(lambda x, w: xp.tanh(x @ w))(*args).jaxpr.hoist_consts())
    choose = Chooser(HOPPER, RejectedKernels())
    first = write_program(jaxpr, choose=choose)
    (launch,) = launches_in(first.steps)
    while len(list(launches_in(first.steps))) == 1:  # other tiles come first
        (launch,) = launches_in(first.steps)
        choose.rejected.add(first, launch, "too large")
        first = write_program(jaxpr, choose=choose)
    assert not any(isinstance(s, HostStep) for s in first.steps)
    assert any("no epilogue of a product" in str(note) for note in first.apart)


def test_a_kernel_that_triton_does_not_compile_is_told_and_replaced():
    """With the line of the user and Triton's words."""
    args = (normal(64, 32), normal(32, 48))
    jaxpr = ft.make_jaxpr(lambda x, w: xp.sum(xp.tanh(x @ w), axis=0))(*args).jaxpr.hoist_consts()
    asked = []

    def machine_code(program, target):
        asked.append(program)
        if len(asked) == 1:
            unit = compile_units(program)[0]
            raise KernelError(unit, "the moon is full")
        return binaries(program, target)

    with pytest.warns(FallbackWarning, match="defect of functrans") as told:
        lowered = lower(jaxpr, frozenset(), False, False, HOPPER, None, machine_code)
    assert told[0].filename == __file__ and "the moon is full" in str(told[0].message)
    assert lowered.program is asked[1] and not any(
        isinstance(s, HostStep) for s in lowered.program.steps)
    compile_kernels(lowered.program)


def compile_units(program):
    return [unit_of(program, step, HOPPER) for step in launches_in(program.steps)]


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(4096, 96, 768), (8192, 128, 512)])
def test_kernels_fit_the_shared_memory_of_the_target(shape):
    """Triton 3.6 takes twice the memory that 3.9 does to store the results of these products."""
    m, k, n = shape
    types = [ft.ShapeDtypeStruct(s, "float32") for s in ((m, k), (k, n), (n,))]
    gradient = ft.value_and_grad(lambda x, w, b: xp.mean(xp.tanh(x @ w + b)), (0, 1, 2))
    kernels = ft.lower(gradient, *types, target="cuda:90").compile().kernels
    assert kernels and all(kernel.shared <= HOPPER.shared for kernel in kernels)


def test_a_failure_of_a_writer_is_told_and_another_form_taken(monkeypatch):
    def failing(kernel, schedule, options):
        if len(kernel.members) > 1:
            raise KeyError("some value")
        return write_kernel(kernel, schedule, options)

    monkeypatch.setattr("functrans.lowering.triton.program.write_kernel", failing)
    x = normal(24, 16)
    jaxpr = ft.make_jaxpr(lambda x: nn.softmax(x) * 2 + x.sum())(x).jaxpr.hoist_consts()
    with pytest.warns(FallbackWarning, match="KeyError") as told:
        program = write_program(simplify(jaxpr))
    assert told[0].filename == __file__
    assert not any(isinstance(s, HostStep) for s in program.steps)
    agree(program, [x], interpret(jaxpr, [x]))


def test_kernels_fit_a_target_with_half_the_memory():
    types = [ft.ShapeDtypeStruct((2048, 2048), "float32")] * 2
    kernels = ft.lower(lambda x, w: nn.gelu(x @ w), *types, target="cuda:86").compile().kernels
    assert all(kernel.shared <= 99 << 10 for kernel in kernels)


def test_lines_whose_pieces_divide_are_kernels():
    """Rows of 8 of a line of 32,768: the place in a row follows from block and place."""
    def dispatch(gate, x):
        weights, experts = lax.top_k(gate, 2)
        chosen = xp.sum(nn.one_hot(experts, 8) * weights[..., None], axis=1)
        return xp.sum(chosen, axis=0), xp.mean(chosen * gate), xp.einsum("te,td->ed", chosen, x)

    gate, x = normal(4096, 8), normal(4096, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxpr = ft.make_jaxpr(ft.value_and_grad(
            lambda gate, x: sum(map(xp.sum, dispatch(gate, x))), (0, 1)))(gate, x)
        program = write_program(simplify(jaxpr.jaxpr.hoist_consts()))
    assert not any(isinstance(s, HostStep) for s in program.steps)


def templates_spill(numbers):
    """Machine code of which every template, loops too, is said to spill so many numbers."""
    def compiled(program, target):
        return {key: replace(binary, spills=numbers if key[0] else 0)
                for key, binary in binaries(program, target).items()}
    return compiled


def lowered_with(fun, *args, spills):
    jaxpr = ft.make_jaxpr(fun)(*args).jaxpr
    return lower(jaxpr, frozenset(), False, False, HOPPER, None, templates_spill(spills)).program


@pytest.mark.parametrize("spills, form", [(0, "one kernel of"), (1000, "launched step by step")])
def test_a_loop_that_spills_is_launched(spills, form):
    def decay(x):
        return lax.fori_loop(0, 9, lambda i, c: c * 0.9 + xp.sin(c), x)

    (note,) = [n for n in lowered_with(decay, normal(1 << 12), spills=spills).notes
               if "scan is" in n]
    assert form in note


@pytest.mark.parametrize("spills, launches", [(0, 1), (1000, 2)])
def test_an_epilogue_that_spills_is_a_kernel_of_its_own(spills, launches):
    program = lowered_with(lambda x, w: xp.tanh(x @ w) * 2, normal(256, 256), normal(256, 256),
                           spills=spills)
    assert len(program.steps) == launches


def test_what_spills_in_every_form_is_computed_all_the_same():
    def until(x):
        return lax.while_loop(lambda s: (s[1] < 50) & (s[0] > 0.1),
                              lambda s: (s[0] * 0.9, s[1] + 1), (x, 0))[0]

    assert not any(isinstance(s, HostStep)
                   for s in lowered_with(until, np.float32(1), spills=1000).steps)
