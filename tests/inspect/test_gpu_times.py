"""Times of the kernels of programs for GPUs, by what a program takes longer with them again."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.inspect.gpu_times import launch_seconds, step_times, with_launch_again
from functrans.inspect.triton_report import groups_of
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.spec import Launch, Pointer, Rounds, launches_in

X = np.linspace(-2, 2, 600, dtype=np.float32).reshape(20, 30)


def ranked(x):
    """Two kernels and what the second reads of the first: places."""
    return fnp.sin(x)[fnp.argmax(x, axis=0)] * 2


def cumulated(x):
    return ft.lax.scan(lambda c, row: (fnp.sin(c) + row, c @ c), x[0], x)


@pytest.fixture(scope="module", params=[ranked, cumulated])
def program(request):
    jaxpr = ft.jit(request.param).lower(X).jaxpr
    return write_program(simplify(jaxpr))


def test_a_launch_again_changes_nothing(program):
    launch = [step for step in program.steps if isinstance(step, Launch)][-1]
    again = with_launch_again(program, launch, 3)
    assert isinstance(again.steps[-1], Rounds) and again.steps[-1].count == 3
    rest = program.steps[len(again.steps) - 1:]
    again.steps.extend(rest)
    for got, wanted in zip(InterpretedProgram(again)([X]), InterpretedProgram(program)([X]),
                           strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_a_program_takes_longer(program):
    """By a clock for which a step takes 1 ms and a launch 3 us."""
    def seconds(program):
        assert program.steps
        return sum(3e-6 * step.count if isinstance(step, Rounds) else 1e-3
                   for step in program.steps)

    for group in groups_of(program):
        loops = [s for s in program.steps if isinstance(s, Rounds)]
        if not loops:
            assert launch_seconds(program, group[0], seconds) == pytest.approx(3e-6)
        end = with_launch_again(program, group[0], 0).steps[-1]
        assert any(one is group[0] for one in launches_in([end]))


def test_launches_of_loops_stay_where_they_are():
    jaxpr = ft.jit(lambda x: ft.lax.fori_loop(0, 9, lambda i, c: c @ c, x)).lower(
        np.eye(40, dtype=np.float32)).jaxpr
    program = write_program(simplify(jaxpr))
    for launch in launches_in(program.steps):
        (again,) = with_launch_again(program, launch, 5).steps[-1].steps
        places = [x for x in again.arguments if isinstance(x, Pointer)]
        assert again.kernel == launch.kernel and places and not any(p.stride for p in places)


def test_programs_for_cpus_have_no_kernels_of_gpus():
    executable = ft.lower(ranked, X, target="cpu").compile().executable
    with pytest.raises(ft.core.errors.BackendError, match="not compiled for GPUs"):
        step_times(executable, [X], 0)
