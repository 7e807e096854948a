"""Regions are computed in the fastest form that can be had."""

import math

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.evaluate import interpret
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule import plans
from functrans.lowering.schedule.forms import Form, choose, preferring
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.schedule.unfused import UnfusedValues
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.kernels.source import RejectedKernels
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import Launch, launches_in


def form(name, seconds, why=None):
    def write():
        if why is not None:
            raise UnsupportedKernel(why)
        return name.upper()
    return Form(name, seconds, write)


def test_the_fastest_form_that_can_be_had_is_chosen():
    chosen = choose([form("host", math.inf), form("slow", 2.0), form("fast", 1.0)])
    assert chosen.form.name == "fast" and chosen.written == "FAST" and not chosen.refused
    chosen = choose([form("slow", 2.0), form("host", math.inf), form("fast", 1.0, "too large")])
    assert chosen.written == "SLOW" and chosen.refused == ["fast: too large"]
    assert choose([form("first", 1.0), form("second", 1.0)]).written == "FIRST"


def test_a_region_without_a_form_says_why():
    with pytest.raises(UnsupportedKernel, match="a: no room; b: no time"):
        choose([form("b", 2.0, "no time"), form("a", 1.0, "no room")])


def test_other_failures_are_not_hidden():
    def write():
        raise KeyError("a defect")

    with pytest.raises(KeyError):
        choose([Form("fast", 1.0, write), form("slow", 2.0)])


# --------------------------------------------------------------------------- loops


def recurrence(size):
    w = np.eye(size, dtype="f4") * 0.5
    return lambda x: lax.scan(lambda h, y: (jnp.tanh(h @ w + y), h.sum()), x[0], x)


def lowered(fun, x, rejected=None):
    closed = ft.make_jaxpr(fun)(x)
    jaxpr = closed.jaxpr.hoist_consts()
    choose_kernels = Chooser(HOPPER, rejected or RejectedKernels())
    return jaxpr, closed.consts, write_program(simplify(jaxpr), choose=choose_kernels)


def form_of_loop(program):
    (note,) = [n for n in program.notes if ": scan is " in n]
    return note.partition(": scan is ")[2].partition(" (not ")[0]


def test_small_loops_are_one_kernel_and_large_ones_are_launched():
    small = lowered(recurrence(8), np.ones((5, 4, 8), "f4"))[2]
    assert form_of_loop(small).startswith("one kernel of ")
    large = lowered(recurrence(2048), np.ones((5, 512, 2048), "f4"))[2]
    assert form_of_loop(large) == "launched step by step"


def test_a_loop_whose_kernel_is_refused_takes_its_next_form():
    x = np.random.default_rng(0).normal(size=(3, 4, 8)).astype("f4")
    rejected, seen = RejectedKernels(), []
    while True:
        jaxpr, consts, program = lowered(recurrence(8), x, rejected)
        arrays = [*map(np.asarray, consts), x]
        for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays),
                        strict=True):
            np.testing.assert_allclose(a, e, 2e-3, 2e-3)
        name = form_of_loop(program).partition(" of ")[0]
        seen += [name] if name not in seen else []
        if name != "one kernel":
            break
        (launch,) = [s for s in launches_in(program.steps) if s.module]  # the others stay
        assert rejected.add(program, launch, "nobody wants it")
    assert seen == ["one kernel", "launched step by step"]
    assert all(isinstance(step, Launch) for step in launches_in(program.steps))


def test_forms_that_are_preferred_are_taken_where_they_can_be_had():
    forms = [form("fast", 1.0), form("slow", 2.0), form("slowest", 3.0, "it has no kernel")]
    with preferring("slow"):
        assert choose(forms).form.name == "slow"
    with preferring("slowest", "unknown"):
        assert choose(forms).form.name == "fast"
    assert choose(forms).form.name == "fast"


# --------------------------------------------------------------------------- steps


@pytest.mark.parametrize("plan", [plans.CPU, plans.GPU, plans.GPU_OF_ALL_SIZES],
                         ids=["cpu", "gpu", "all sizes"])
def test_an_unfused_graph_has_a_kernel_for_each_value(plan):
    jaxpr = simplify(ft.make_jaxpr(lambda x: ft.nn.softmax(jnp.sin(x) * 2) + x.sum(0))(
        np.ones((8, 16), "f4")).jaxpr.hoist_consts())
    graph, fused = plan.schedule(graph_of(jaxpr))
    _, unfused = plan.schedule(graph, UnfusedValues(whole=True))
    assert len(fused.steps) < len(unfused.steps)
    assert all(len(s.members) == 1 for s in unfused.steps if isinstance(s, Kernel))
