"""Loops of programs: rounds whose places go on, and turns while a flag is set.

Turns are part of a graph where the driver has conditional nodes, from the second call on. The host
drives them in the first call, and where it takes part in them.
"""

import subprocess

from triton import knobs


def test_rounds_go_on(on_fake):
    on_fake("""
        # out[k] = 2 * x[k] in rounds of 4 elements, again and again
        step = ("launch", 0, (1, 1, 1), (("input", 0, 0, 16), ("output", 0, 0, 16), 2.0, 4))
        copy = ("copy", ("output", 1, 16, -8), ("input", 0, 0, 16), 8)
        spec = ("float32", (12,))
        program = rt.CudaProgram([kernel("scale")], [("rounds", 3, [step, copy])], [spec],
                                 [spec, ("float32", (6,))], [], 0)
        x = np.arange(12, dtype="f")
        for _ in range(3):
            out, back = program([gpu(x)])
            assert np.array_equal(out, 2 * x)
            assert np.array_equal(back, [8, 9, 4, 5, 0, 1])
        assert program.stats["replays"] == 0
        """)


def turning_program():
    """Text that makes a program: x is doubled so many times as there are leading ones in flags."""
    return """
        def turning(ahead, n=8):
            # the carry: a place in the flags, by which the flag is copied, cannot be computed by
            # the fake's kernels: each side looks at one flag, of its own
            here, there = ("arena", 0, 0), ("arena", 0, 512)
            def double(source, target):
                return [("launch", 0, (1, 1, 1), (source, target, 2.0, n))]
            sides = [(("arena", 0, 1024 + 8 * k), [("copy", ("arena", 0, 1024 + 8 * k),
                                                   ("input", 1, k), 1)],
                      double(*pair), [("copy", ("output", 0, 0), pair[0], 4 * n)])
                     for k, pair in enumerate(((here, there), (there, here)))]
            steps = [("copy", here, ("input", 0, 0), 4 * n), ("until", ahead, sides)]
            specs = [("float32", (n,)), ("uint8", (2,))]
            return rt.CudaProgram([kernel("scale")], steps, specs, specs[:1], [], 2048)
    """


def test_turns_end_on_either_side(on_fake):
    on_fake(turning_program() + """
        x = np.arange(8, dtype="f")
        for ahead in (True, False):
            program = turning(ahead)
            for flags, times in (([0, 0], 0), ([1, 0], 1)):
                places = [gpu(x), gpu(flags, np.uint8)]
                for _ in range(4):
                    (out,) = program(places)
                    assert np.array_equal(out, x * 2 ** times), (ahead, flags)
            assert program.stats["replays"] > 3 and program.stats["graphs_built"] <= 4
        """)


def counting_program():
    """Text that makes a program: x is doubled, or more, until an element of it is 256 or more."""
    return """
        def counting(ahead, inner=None, n=8):
            here, there = ("arena", 0, 0), ("arena", 0, 512)
            sides = []
            for k, (now, then) in enumerate(((here, there), (there, here))):
                flag = ("arena", 0, 1024 + 8 * k)
                ask = [("launch", 1, (1, 1, 1), (now, flag, 256.0, n))]
                step = [("launch", 0, (1, 1, 1), (now, then, 2.0, n))]
                step += inner(then) if inner else []
                sides.append((flag, ask, step, [("copy", ("output", 0, 0), now, 4 * n)]))
            steps = [("copy", here, ("input", 0, 0), 4 * n), ("until", ahead, sides),
                     ("launch", 0, (1, 1, 1), (("output", 0, 0), ("output", 1, 0), 2.0, n))]
            spec = ("float32", (n,))
            return rt.CudaProgram([kernel("scale"), kernel("below")], steps, [spec], [spec] * 2, [],
                                  4096)
        def expected(x):
            while x.max() < 256:
                x = 2 * x
            return x
    """


def test_turns_in_a_graph(on_fake):
    on_fake(counting_program() + """
        for ahead in (True, False):
            program = counting(ahead)
            for first in (1, 3, 100, 200, 300, 1000, 1):
                x = np.linspace(0, first, 8).astype("f")
                for _ in range(3):
                    out, twice = program([gpu(x)])
                    assert np.array_equal(out, expected(x))
                    assert np.array_equal(twice, 2 * expected(x))
            stats = program.stats
            assert stats["replays"] > 10 and stats["graphs_built"] <= 4, stats
        """)


def test_turns_inside_turns_in_a_graph(on_fake):
    on_fake(counting_program() + """
        def inner(place):  # in place: an eighth is doubled until it is 4 or more
            part, other = (*place[:2], place[2]), ("arena", 0, 2048)
            sides = []
            for k, (now, then) in enumerate(((part, other), (other, part))):
                flag = ("arena", 0, 3072 + 8 * k)
                sides.append((flag, [("launch", 1, (1, 1, 1), (now, flag, 4.0, 1))],
                              [("launch", 0, (1, 1, 1), (now, then, 2.0, 1))],
                              [("copy", part, now, 4)] if k else []))
            return [("until", True, sides)]
        def wanted(x):
            x = x.copy()
            while x.max() < 256:
                x = 2 * x
                while 0 < x[0] < 4:
                    x[0] *= 2
            return x
        program = counting(False, inner)
        for first in (0.01, 0.5, 1.0, 300.0):
            x = np.linspace(first, 10, 8).astype("f")
            for _ in range(3):
                assert np.array_equal(program([gpu(x)])[0], wanted(x)), first
        assert program.stats["replays"] > 6
        """)


def test_the_host_drives_loops_that_graphs_refuse(on_fake):
    on_fake(counting_program() + """
        fake.fake_refuse_loops = 1
        program = counting(True)
        x = np.linspace(0, 1, 8).astype("f")
        for _ in range(4):
            assert np.array_equal(program([gpu(x)])[1], 2 * expected(x))
        assert program.stats["graphs_built"] == 0
        """)


def test_an_old_driver_has_no_loops_in_graphs(on_fake):
    on_fake("""
        fake.fake_version = 12030
        assert rt.cuda_open(fake.path)
    """ + counting_program() + """
        program = counting(True)
        x = np.linspace(0, 1, 8).astype("f")
        for _ in range(4):
            assert np.array_equal(program([gpu(x)])[1], 2 * expected(x))
        assert program.stats["graphs_built"] == 0
        """, opened=False)


def test_turns_with_loops_and_the_host_in_them(on_fake):
    on_fake("""
        here, there = ("arena", 0, 0), ("arena", 0, 512)
        spec = ("float32", (8,))
        def program(called):
            def iteration(source, target):  # the host adds one, two rounds double halves of it
                half = [("launch", 0, (1, 1, 1), ((*target, 16), (*target, 16), 2.0, 4))]
                return [("host", called, [(source, *spec)], [(target, *spec)]), ("rounds", 2, half)]
            sides = [(("arena", 0, 1024 + 8 * k), [("copy", ("arena", 0, 1024 + 8 * k),
                                                   ("input", 1, k), 1)],
                      iteration(*pair), [("copy", ("output", 0, 0), pair[0], 32)])
                     for k, pair in enumerate(((here, there), (there, here)))]
            steps = [("copy", here, ("input", 0, 0), 32), ("until", False, sides)]
            return rt.CudaProgram([kernel("scale")], steps, [spec, ("uint8", (2,))], [spec], [],
                                  2048)
        x = np.arange(8, dtype="f")
        once = program(lambda v: [v + 1])
        for _ in range(2):
            (out,) = once([gpu(x), gpu([1, 0], np.uint8)])
            assert np.array_equal(out, (x + 1) * 2)
            (out,) = once([gpu(x), gpu([0, 0], np.uint8)])
            assert np.array_equal(out, x)
        again = program(lambda v: [np.asarray(once([gpu(v), gpu([1, 0], np.uint8)])[0])])
        (out,) = again([gpu(x), gpu([1, 0], np.uint8)])
        assert np.array_equal(out, (x + 1) * 4)
        def fails(v):
            raise LookupError("the host says no")
        failing = program(fails)
        for _ in range(2):
            with raises(LookupError):
                failing([gpu(x), gpu([1, 0], np.uint8)])
        """)


def test_loops_of_other_steps_are_refused(on_fake):
    on_fake("""
        spec = ("float32", (4,))
        for steps in ([("rounds", 2, [("host", print, [], [])])],
                      [("rounds", 2, [("rounds", 2, [])])], [("until", True, [])],
                      [("until", True, [(("arena", 0, 0), [], [("rounds", 2, [])], [])] * 2)]):
            with raises(ValueError):
                rt.CudaProgram([], steps, [spec], [spec], [], 0)
        """)


def test_the_kernel_that_sets_conditions_can_be_assembled(on_fake, tmp_path):
    """The driver compiles its PTX; it knows the function that is called."""
    text = on_fake(counting_program() + """
        program = counting(True)
        program([gpu(np.ones(8))])
        print(fake.fake_conditions_ptx.decode())
        """)
    (tmp_path / "conditions.ptx").write_text(text)
    subprocess.run([knobs.nvidia.ptxas.path, "-arch=sm_90", "-c", "conditions.ptx"], cwd=tmp_path,
                   check=True)
