"""Times of the steps of programs for GPUs, by what many of one in a row take."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import BackendError
from functrans.inspect.explain.explanation import report_of
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton import step_times
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.records import launch_groups
from functrans.lowering.triton.step_times import (
    in_a_row,
    leaving_memory,
    on_memory,
    seconds_of_one,
    up_to,
)
from functrans.lowering.triton.steps.spec import (
    BufferSide,
    DoubleBufferedSteps,
    HostStep,
    Launch,
    Pointer,
    RepeatedSteps,
    launch_key,
    launches_in,
    runs_in,
)

X = np.linspace(-2, 2, 600, dtype=np.float32).reshape(20, 30)


def ranked(x):
    """Two kernels and what the second reads of the first: places."""
    return jnp.sin(x)[jnp.argmax(x, axis=0)] * 2


def cumulated(x):
    return ft.lax.scan(lambda c, row: (jnp.sin(c) + row, c @ c), x[0], x)


def through_the_host(x):
    """Its last kernel turns rows around: in their places it would change what it works on."""
    shape = ft.ShapeDtypeStruct(x.shape, x.dtype)
    return jnp.cos(ft.pure_callback(lambda a: np.asarray(a) + 1, shape, jnp.sin(x)).sum(0))[::-1]


def doubled(x):
    """A loop with a predicate over large values, in turns, and what reads it."""
    return ft.lax.while_loop(lambda c: c.max() < 1e3, lambda c: c @ c * 2, x)[0]


def recorded(x):
    """Reverse mode of a loop of 5 iterations, which a first call has room for many of."""
    def loss(x):
        return ft.lax.while_loop(lambda c: c.max() < 40, lambda c: c * 2 + jnp.sin(c), x).sum()
    return ft.grad(loss)(x)


def program_of(f, *args):
    return write_program(simplify(ft.jit(f).lower(*args).jaxpr))


@pytest.mark.parametrize("f", [ranked, cumulated, through_the_host])
def test_steps_in_a_row_work_on_what_the_program_left_and_change_nothing(f):
    program = program_of(f, X)
    wanted = InterpretedProgram(program)([X])
    for at, step in enumerate(program.steps):
        assert up_to(program, step) == program.steps[:at]
        memory = [X, *InterpretedProgram(leaving_memory(program, program.steps[:at]))([X])]
        InterpretedProgram(in_a_row(program, step, 3))(memory)
        InterpretedProgram(on_memory(program, program.steps[at:]))(memory)
        for got, want in zip(memory[1:], wanted, strict=False):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("f", [ranked, cumulated])
def test_steps_in_a_row_are_what_a_graph_has(f):
    program = program_of(f, X)
    for launch in launches_in(program.steps):
        again = in_a_row(program, launch, 5)
        assert len(again.steps) == 5 and again.arena_bytes == 0 and not again.outputs
        for step in again.steps:
            assert isinstance(step, Launch) and step.grid == launch.grid
            assert launch_key(step) == launch_key(launch)


def test_launches_of_loops_find_a_round_done():
    program = program_of(doubled, ft.ShapeDtypeStruct((1024, 1024), "float32"))
    (at,) = [k for k, step in enumerate(program.steps) if isinstance(step, DoubleBufferedSteps)]
    inside = list(launches_in([program.steps[at]]))
    assert inside
    for launch in inside:
        assert up_to(program, launch) == program.steps[:at + 1]
    with pytest.raises(ValueError, match="another program"):
        up_to(program, program_of(ranked, X).steps[0])


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_launches_of_turns_are_counted(turns):
    names = ["holds0", "body0", "ends0", "holds1", "body1", "ends1"]
    parts = [(Launch(0, name, (1, 1, 1), (), (), (), 4),) for name in names]
    sides = [BufferSide(Pointer("arena", 0), *parts[k:k + 3]) for k in (0, 3)]
    loop = DoubleBufferedSteps((sides[0], sides[1]), True)
    found = {step.kernel: n for step, n in runs_in([loop], turns=iter([turns]))}
    order = []
    for turn in range(turns + 1):
        order += [f"holds{turn % 2}", f"body{turn % 2}" if turn < turns else f"ends{turn % 2}"]
    assert found == {name: order.count(name) for name in names}


def test_launches_of_rounds_are_counted():
    program = program_of(lambda x: ft.lax.fori_loop(0, 30_001, lambda i, c: c @ c, x),
                         np.eye(200, dtype=np.float32))
    (loop,) = [step for step in program.steps if isinstance(step, RepeatedSteps)]
    runs = sum(group.runs for group in launch_groups(program))
    inside = len(list(launches_in([loop])))
    assert loop.count > 1000 and runs == len(list(launches_in(program.steps))) + inside * (
        loop.count - 1)


def test_sizes_of_one_kernel_are_told_apart():
    """A product's kernel takes sizes as arguments: their work is not the same."""
    def f(a, b, c):
        return (a @ b) @ c

    sizes = [(4096, 4096), (4096, 4096), (4096, 1024)]
    program = program_of(f, *[ft.ShapeDtypeStruct(s, "float32") for s in sizes])
    groups = launch_groups(program)
    assert all(len({(s.flops, s.moved, s.grid) for s in g.launches}) == 1 for g in groups)
    assert sum(g.runs * g.launches[0].flops for g in groups) == 2 * 4096**2 * (4096 + 1024)

    kernels = ft.explain(lambda x, y: (x @ y, y @ x, x @ x), np.ones((256, 256), np.float32),
                         np.ones((256, 256), np.float32), target="cuda:90").kernels
    assert [(k.runs, k.flops) for k in kernels] == [(3, 3 * 2 * 256**3)]


def test_how_many_in_a_row():
    asked = []

    def clock(each):
        def seconds(count):
            asked.append(count)
            return 5e-6 + count * each  # with what lies between two replays
        return seconds

    assert seconds_of_one(clock(1.3e-6)) == pytest.approx(1.3e-6, rel=0.02)
    assert asked == [4, 256]
    asked.clear()
    assert seconds_of_one(clock(30e-6)) == pytest.approx(30e-6, rel=0.01)
    assert asked[0] == 4 and 20 < asked[1] < 40
    asked.clear()
    assert seconds_of_one(clock(2e-3)) == pytest.approx(2e-3, rel=0.01) and asked == [4]
    asked.clear()
    assert seconds_of_one(clock(0.5), least=1) == pytest.approx(0.5, rel=0.01) and asked == [1]


class Clock:
    """A timer that runs a program once, for which a step takes 1 us."""

    def __init__(self, run, arrays, gpu):
        self.run, self.arrays = run, arrays

    def __call__(self):
        self.run(self.arrays)
        return 1e-6 * sum(1 + 3 * isinstance(s, HostStep) for s in self.run.program.steps)


@pytest.mark.parametrize(("f", "x"), [(ranked, X), (through_the_host, X), (recorded, X[-2:, -5:])])
def test_every_step_of_the_report_has_its_time(f, x, monkeypatch):
    monkeypatch.setattr(step_times, "Timer", Clock)
    monkeypatch.setattr(step_times, "MOST", 8)
    monkeypatch.setattr(step_times, "device_program",
                        lambda part, gpu, target, machine_code: InterpretedProgram(part))
    with ft.config.use_backend("triton"):
        lowered = ft.lower(f, x)
        executable = lowered.executable()
        found = executable.timed_steps(lowered.inputs(x), 0)
        times, whole = found.steps, found.whole
        kernels = report_of(lowered, f, (x,), {}).kernels
    if f is recorded:  # the program of the room that was needed is timed, and told
        assert executable.latest is not executable.first
        assert max(executable.run.capacities.values()) < 9
        assert [k.source for k in kernels] == [k.text for k in executable.latest.kernels]
    assert times == [pytest.approx(4e-6 if k.kind == "call" else k.runs * 1e-6) for k in kernels]
    assert whole == pytest.approx(sum(times))


def test_programs_for_cpus_have_no_kernels_of_gpus():
    executable = ft.lower(ranked, X, target="cpu").compile().executable
    with pytest.raises(BackendError, match="the CPU computes"):
        executable.timed_steps([], 0)
