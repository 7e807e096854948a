"""Loops that the host drives: rounds whose places go on, and turns while a flag is set."""


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
                for _ in range(3):
                    (out,) = program([gpu(x), gpu(flags, np.uint8)])
                    assert np.array_equal(out, x * 2 ** times), (ahead, flags)
        """)


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
