"""Timing of candidates: on buffers of their own, by events, with nothing left behind."""


def test_a_program_is_timed_on_buffers_of_its_own(on_fake):
    on_fake("""
        from functrans.core.avals import ShapedArray
        from functrans.lowering.triton.machine import device
        from functrans.lowering.triton.machine.measure import seconds_of
        from functrans.lowering.triton.steps.spec import GPUProgram, Launch, Pointer, launch_key
        from functrans.lowering.schedule.target import device_target
        from functrans.lowering.triton.machine.unit import Binary

        x, y = Pointer("input", 0), Pointer("input", 1)
        step = Launch(0, "scale", (1, 1, 1), (x, y, 2.0, 8), ("*fp32", "*fp32", "fp32", "i32"),
                      (True, True, False, False), 4)
        other = Launch(0, "broken", (1, 1, 1), (x, y, 2.0, 8), step.types, step.divisible, 4)
        def binaries(program, target):
            (step,) = program.steps
            cubin = KERNELS if step.kernel == "scale" else b"no cubin"
            return {launch_key(step): Binary("scale", "ppfi", 4, 1, 0, 0, 1, 32, 0, "", cubin)}
        device.binaries = binaries
        bytes_ = [ShapedArray((32,), np.dtype("u1"))] * 2
        large = [bytes_[0], ShapedArray((1 << 50,), np.dtype("u1"))]
        programs = [GPUProgram([""], [s], avals, [], [], 0)
                    for s, avals in ((step, bytes_), (other, bytes_), (step, large))]
        gpu(np.zeros(8)).block_until_ready()
        before = rt.cuda_memory_stats(0)["bytes_in_use"]
        fake.fake_launch_sleep_us = 500
        seconds, *none = seconds_of(programs, 0, device_target(0))
        assert 0.4e-3 < seconds < 0.1 and none == [None, None], (seconds, none)
        gc.collect()
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == before
        assert 10 < fake.fake_launches < 100  # slow ones are not repeated often
        """)


def test_the_target_of_a_device(on_fake):
    on_fake("""
        from functrans.lowering.schedule.target import device_target
        from functrans.lowering.triton.machine.tuning import Tuner, chooser_for
        here = device_target(0)
        name, major, minor, count, _, shared = rt.cuda_devices()[0]
        assert (here.capability, here.shared, here.multiprocessors) == (
            10 * major + minor, shared, count)
        assert isinstance(chooser_for(here, 0), Tuner) and chooser_for(here, 0).device == name
        assert chooser_for(here, 0, may_time=False).seconds is None
        assert not isinstance(chooser_for(here, None), Tuner)
        with ft.config.autotune("off"):
            assert not isinstance(chooser_for(here, 0), Tuner)
        with ft.config.autotune("thorough"):
            assert chooser_for(here, 0).thorough
        with ft.config.scope(deterministic=True):
            assert not isinstance(chooser_for(here, 0), Tuner)
        """)


def test_steps_are_timed_as_graphs_on_what_the_program_left(on_fake):
    on_fake("""
        from types import SimpleNamespace
        from functrans.core.avals import ShapedArray
        from functrans.lowering.triton import step_times
        from functrans.lowering.triton.backend import TritonExecutable
        from functrans.lowering.triton.machine.unit import Binary
        from functrans.lowering.triton.steps.spec import (
            GPUProgram, Launch, Pointer, RepeatedSteps, launch_key, launches_in)

        def scale(source, target, by):
            return Launch(0, "scale", (1, 1, 1), (source, target, by, 8),
                          ("*fp32", "*fp32", "fp32", "i32"), (True, True, False, False), 4)
        x, out = Pointer("input", 0), Pointer("output", 0)
        a, b = Pointer("arena", 0, 0), Pointer("arena", 0, 256)
        loop = RepeatedSteps((Launch(1, "increment", (1, 1, 1), (b, 8), ("*fp32", "i32"),
                              (True, False), 4),), 30)
        avals = [ShapedArray((8,), np.dtype("f4"))]
        steps = [scale(x, a, 2.0), scale(a, b, 3.0), loop, scale(b, out, 0.5)]
        program = GPUProgram(["", ""], steps, avals, avals, [], 512)
        kinds = {"scale": "ppfi", "increment": "pi"}
        code = {launch_key(s): Binary(s.kernel, kinds[s.kernel], 4, 1, 0, 0, 1, 32, 0, "", KERNELS)
                for s in launches_in(program.steps)}
        step_times.binaries = lambda program, target: code
        executable = TritonExecutable(program, lambda: SimpleNamespace(program=program), "scaled",
                                      frozenset(), machine_code=lambda program, target: code)
        values = gpu(np.arange(8))
        wanted = np.arange(8) * 3 + 15
        assert np.array_equal(executable.run([values])[0], wanted)

        each = fake.fake_launch_sleep_us = 200
        before, graphs = fake.fake_launches, fake.fake_graph_launches
        found = executable.timed_steps([values], 0)
        times, whole = found.steps, found.whole
        scaled, incremented = times  # one kernel three times, one thirty times
        assert scaled > 3e-6 * each and incremented > 30e-6 * each and whole > 33e-6 * each
        assert fake.fake_graph_launches - graphs >= 2 * 4  # each kernel's, and the program's
        assert fake.fake_launches - before < 1000
        assert np.array_equal(executable.run([values])[0], wanted)
        for at in (0, 1, 3):  # a step again, and then the rest; the rounds add up
            left = step_times.leaving_memory(program, program.steps[:at])
            again = step_times.in_a_row(program, program.steps[at], 3)
            rest = step_times.on_memory(program, program.steps[at:])
            memory = [values]
            for part in (left, again, rest):
                run = step_times.device_program(part, 0, executable.target, machine_code=code)
                memory += run(memory)
            assert np.array_equal(memory[1], wanted), at
        """)
