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


def test_loops_of_other_steps_are_refused(on_fake):
    on_fake("""
        spec = ("float32", (4,))
        for steps in ([("rounds", 2, [("host", print, [], [])])],
                      [("rounds", 2, [("rounds", 2, [])])], [("until", True, [])]):
            with raises(ValueError):
                rt.CudaProgram([], steps, [spec], [spec], [], 0)
        """)
