"""CudaProgram: what it launches, in which order, on which memory, and how it fails."""


def test_a_launch_gets_its_arguments(on_fake):
    on_fake("""
        x, y = gpu(np.arange(8)), gpu(np.ones(8))
        program = add_program(rt.CudaProgram)
        result = program([x, y])
        assert type(result) is list
        assert fake.fake_launches == 0, "it returns before the device is done"
        assert np.array_equal(result[0], np.arange(8) + 1) and fake.fake_launches == 1
        assert result[0].device.platform == "gpu" and not result[0].weak_type
        assert fake.fake_last_kernel == b"add" and fake.fake_last_block == [128, 1, 1]
        assert fake.fake_last_grid == [2, 1, 1] and fake.fake_last_shared == 0
        many = rt.CudaProgram([kernel("many", shared=100_000, warps=8)],
            [("launch", 0, (3, 4, 5), (("input", 0, 4), -(1 << 40), 0.5, ("output", 0, 0)))],
            [("float32", (2,))], [("float32", ())], [], 0)
        out, = many([np.array([1, 2], np.float32)])
        assert float(out) == np.float32(2 - 2.0 ** 40) and out.shape == ()
        assert fake.fake_last_grid == [3, 4, 5] and fake.fake_last_block == [256, 1, 1]
        assert fake.fake_last_shared == 100_000 == fake.fake_max_shared
        """)


def test_steps_run_in_order_over_the_arena(on_fake):
    on_fake("""
        x = gpu(np.arange(8))
        for length in (1, 2, 5):
            program = chain_program(rt.CudaProgram, length=length)
            for _ in range(4):
                out, half = program([x])
                assert np.array_equal(out, np.arange(8) * 2.0 ** length)
                assert np.array_equal(half, np.r_[np.arange(4) * 2.0 ** length, np.zeros(4)])
        del program, out, half, x
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)


def test_leaves_from_the_host(on_fake):
    on_fake("""
        program = add_program(rt.CudaProgram)
        x = ft.numpy.arange(8, dtype=np.float32)
        for y in (x, np.arange(8.0), np.arange(16, dtype=np.int32)[::2] / 2, list(range(8))):
            assert np.array_equal(program([x, y])[0], 2 * np.arange(8)), y
        scalar = rt.CudaProgram([kernel("scale")], [("launch", 0, (1, 1, 1), (("input", 0, 0),
            ("output", 0, 0), 3.0, 1))], [("float32", ())], [("float32", ())], [], 0)
        assert [float(scalar([v])[0]) for v in (2, 2.5, True, np.float64(1))] == [6, 7.5, 3, 3]
        big = add_program(rt.CudaProgram, 100_000)
        y = np.random.default_rng(0).random(100_000).astype(np.float32)
        assert np.array_equal(big([y, ft.device_put(y, "gpu:1")])[0], 2 * y)
        for wrong in ([x], [x, x, x], [x, x[:3]], [x, np.ones((2, 4))]):
            with raises(TypeError):
                program(wrong)
        with raises(Exception):
            program([x, "text"])
        """)


def test_constants_are_uploaded_once(on_fake):
    on_fake("""
        for n in (8, 50_000):
            constant = np.random.default_rng(0).random(n).astype(np.float32)
            program = rt.CudaProgram([kernel("add")], [("launch", 0, (1, 1, 1), (("input", 0, 0),
                ("constant", 1, 0), ("output", 0, 0), n))], [("float32", (n,))],
                [("float32", (n,))], [np.zeros(3), constant], 0)
            assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
            x = gpu(np.ones(n))
            for _ in range(3):
                assert np.array_equal(program([x])[0], constant + 1)
            del x, program
            gc.collect()
        """)


def test_kernels_with_scratch_memory(on_fake):
    on_fake("""
        program = rt.CudaProgram([kernel("scratch", scratch=64)], [("launch", 0, (100, 1, 1),
            (("input", 0, 0), ("output", 0, 0), 100))], [("float32", (100,))],
            [("float32", (100,))], [], 300)
        x = np.arange(100, dtype=np.float32)
        assert np.array_equal(program([x])[0], x)
        assert program.stats["arena_bytes"] == 512 + 6400
        """)


def test_modules_are_loaded_once_and_late(on_fake):
    on_fake("""
        two = rt.CudaProgram([kernel("add"), kernel("scale")],
            [("launch", 0, (1, 1, 1), (("input", 0, 0), ("input", 0, 0), ("arena", 0, 0), 8)),
             ("launch", 1, (1, 1, 1), (("arena", 0, 0), ("output", 0, 0), 2.0, 8))],
            [("float32", (8,))], [("float32", (8,))], [], 32)
        assert fake.fake_loads == 0
        for _ in range(3):
            assert np.array_equal(two([np.arange(8.0)])[0], np.arange(8) * 4)
        assert fake.fake_loads == 1
        del two
        assert fake.fake_unloads == 1
        broken = rt.CudaProgram([("add", b"no cubin", 0, 4, "pppi", 0)], [], [], [], [], 0)
        for _ in range(2):
            with raises(errors.BackendError) as error:
                broken([])
            assert "CUDA_ERROR_INVALID_IMAGE (200)" in str(error) and "kernel add" in str(error)
        absent = rt.CudaProgram([kernel("add"), ("nothing", kernel("add")[1], 0, 4, "", 0)],
                                [("launch", 1, (1, 1, 1), ())], [], [], [], 0)
        for _ in range(2):
            with raises(errors.DeviceError):
                absent([])
        greedy = rt.CudaProgram([kernel("add", shared=1 << 20)], [], [], [], [], 0)
        with raises(errors.DeviceError) as error:
            greedy([])
        assert "1048576 bytes of shared memory" in str(error)
        """)


def test_programs_share_modules(on_fake):
    on_fake("""
        def doubled(n, shared=0):
            return rt.CudaProgram([kernel("scale", shared=shared)],
                [("launch", 0, (1, 1, 1), (("input", 0, 0), ("output", 0, 0), 2.0, n))],
                [("float32", (n,))], [("float32", (n,))], [], 0)
        one, other, wide = doubled(8), doubled(4), doubled(4, shared=100_000)
        for program, n, loads in ((one, 8, 1), (other, 4, 1), (wide, 4, 2)):
            assert np.array_equal(program([np.arange(n)])[0], 2 * np.arange(n))
            assert fake.fake_loads == loads
        del one, program
        assert fake.fake_unloads == 0
        assert np.array_equal(other([np.arange(4)])[0], 2 * np.arange(4))
        del other, wide
        assert fake.fake_unloads == 2
        assert np.array_equal(doubled(8)([np.arange(8)])[0], 2 * np.arange(8))
        assert fake.fake_loads == fake.fake_unloads == 3
        """)


def test_host_steps(on_fake):
    on_fake("""
        n = 20_000
        seen = []
        def host(a, b):
            seen.append((a.copy(), a.flags.writeable, fake.fake_launches))
            return [a + b, np.float32(7)]
        def make(host):
            spec = ("float32", (n,))
            return rt.CudaProgram([kernel("scale")],
                [("launch", 0, (1, 1, 1), (("input", 0, 0), ("arena", 0, 0), 2.0, n)),
                 ("host", host,
                  [(("arena", 0, 0), "float32", (n,)), (("input", 0, 0), "float32", (n,))],
                  [(("arena", 0, 0), "float32", (n,)), (("output", 1, 0), "float32", ())]),
                 ("launch", 0, (1, 1, 1), (("arena", 0, 0), ("output", 0, 0), 10.0, n))],
                [spec], [spec, ("float32", ())], [], 4 * n)
        x = np.arange(n, dtype=np.float32)
        program = make(host)
        for k in range(3):
            out, seven = program([gpu(x)])
            assert np.array_equal(seen[-1][0], 2 * x) and seen[-1][1:] == (False, 2 * k + 1)
            assert np.array_equal(out, 30 * x) and float(seven) == 7
        nested = make(lambda a, b: [np.asarray(program([b])[0]), np.float32(0)])
        assert np.array_equal(nested([gpu(x)])[0], 300 * x)
        again = []
        def recursive(a, b):
            if len(again) < 3:
                again.append(None)
                me([gpu(x)])
            return [a, np.float32(0)]
        me = make(recursive)
        assert np.array_equal(me([gpu(x)])[0], 20 * x) and len(again) == 3
        def fails(a, b): raise KeyError("mine")
        for bad, error in ((fails, KeyError), (lambda a, b: [a], TypeError),
                           (lambda a, b: [a[:2], np.float32(0)], TypeError)):
            broken = make(bad)
            for _ in range(2):
                with raises(error):
                    broken([gpu(x)])
        del out, seven, broken, error
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        """)


def test_outputs_that_replace_inputs(on_fake):
    on_fake("""
        def make(donated):
            return rt.CudaProgram([kernel("increment")], [("launch", 0, (1, 1, 1),
                (("output", 0, 0), 8))], [("float32", (8,)), ("float32", (8,))],
                [("float32", (8,), 1)], [], 0, donated=donated)
        x, y = gpu(np.zeros(8)), gpu(np.arange(8))
        keeps = make(())
        for _ in range(3):
            assert np.array_equal(keeps([x, y])[0], np.arange(8) + 1)
            assert np.array_equal(gpu(np.arange(8)), y)
        takes = make((0, 1))
        z = gpu(np.arange(8))
        view = z  # the same Array
        place = rt.cuda_pointer(z)[0]
        out, = takes([x, z])
        assert rt.cuda_pointer(out)[0] == place and np.array_equal(out, np.arange(8) + 1)
        for gone in (x, view):
            with raises(errors.DonatedArrayError):
                np.asarray(gone)
        state = gpu(np.zeros(8))
        for k in range(20):
            state, = takes([gpu(np.zeros(8)), state])
        assert np.array_equal(state, np.full(8, 20)) and rt.cuda_pointer(state) is not None
        host, = takes([np.zeros(8), np.arange(8.0)])  # what was on the host is nobody's
        assert np.array_equal(host, np.arange(8) + 1)
        """)


def test_through_a_jitted_function(on_fake):
    on_fake("""
        import time
        program = add_program(rt.CudaProgram)
        bound = gpu(np.ones(8))
        def miss(self, args, kwargs, key):
            self.insert(key, program, {"out": ...}, [True], (bound,))
            return None
        call = rt.JitFunction(miss)
        x = gpu(np.arange(8))
        call(x)
        out = call(x)["out"]
        assert np.array_equal(out, np.arange(8) + 1) and out.weak_type and out.device == x.device
        other = rt.JitFunction(
            lambda self, args, kwargs, key: self.insert(key, program, ..., [True]))
        with raises(ValueError):
            other(x)
        """)


def test_descriptions_that_are_wrong(on_fake):
    on_fake("""
        good = dict(kernels=[kernel("add")], steps=[], inputs=[("float32", (8,))],
                    outputs=[("float32", (8,))], constants=[], arena_bytes=0)
        x, out = ("input", 0, 0), ("output", 0, 0)
        launch = lambda *a, grid=(1, 1, 1), k=0: [("launch", k, grid, a)]
        for change in (dict(steps=launch(x, x, out)), dict(steps=launch(x, x, out, 1, 2)),
                       dict(steps=launch(x, x, out, 1 << 40)),
                       dict(steps=launch(x, x, out, 1, k=1)),
                       dict(steps=launch(x, x, out, 1, grid=(0, 1, 1))),
                       dict(steps=launch(x, ("input", 1, 0), out, 1)),
                       dict(steps=launch(x, ("arena", 0, -4), out, 1)),
                       dict(steps=launch(x, ("other", 0, 0), out, 1)), dict(steps=[()]),
                       dict(steps=[("jump",)]), dict(steps=[("fill", x, -1, 0)]),
                       dict(steps=[("copy", x, out, -1)]), dict(arena_bytes=-1),
                       dict(outputs=[("float32", (8,), 3)]), dict(donated=[1]),
                       dict(inputs=[("float32", (None,))]),
                       dict(kernels=[("add", b"", 0, 0, "", 0)]),
                       dict(kernels=[("add", b"", 0, 4, "x", 0)]),
                       dict(kernels=[("add", 5, 0, 4, "", 0)])):
            with raises(ValueError):
                rt.CudaProgram(**{**good, **change})
        for change in (dict(steps=launch(x, x, out, "n")), dict(steps=5), dict(kernels=[("add",)]),
                       dict(steps=[("host", 5, [], [])])):
            with raises(TypeError):
                rt.CudaProgram(**{**good, **change})
        rt.CudaProgram(**good)
        """)


def test_a_kernel_that_fails_is_fatal_and_named(on_fake):
    out = on_fake("""
        x = gpu(np.arange(8))
        fine = add_program(rt.CudaProgram, name="the well one")
        np.asarray(fine([x, x])[0])
        failing = add_program(rt.CudaProgram, name="jit of loss")
        y, = failing([x, x])
        fake.fake_fail_launch = 700
        with raises(errors.KernelFaultError) as error:
            np.asarray(y)
        print(error)
        assert "jit of loss" in str(error) and "the well one" not in str(error)
        for use in (lambda: np.asarray(x), lambda: failing([x, x]), lambda: gpu([1]),
                    lambda: rt.cuda_synchronize(0), y.block_until_ready):
            with raises(errors.KernelFaultError):
                use()
        del x, y
        """)
    assert "a kernel failed on the GPU." in out and "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in out
    assert "an illegal memory access was encountered" in out and "FUNCTRANS_DEBUG=1" in out


def test_debugging_names_the_kernel(on_fake):
    on_fake("""
        rt.cuda_synchronous(True)
        program = chain_program(rt.CudaProgram, name="jit of loss")
        x = gpu(np.arange(8))
        program([x])
        assert fake.fake_launches == 3
        program([x])
        assert fake.fake_launches == 6 and fake.fake_graph_launches == 0
        fake.fake_fail_launch = 719
        with ft.config.debug_internal_frames(), raises(errors.KernelFaultError) as error:
            program([x])
        assert "kernel scale of jit of loss" in str(error)
        """)


def test_a_call_costs_little(on_fake):
    on_fake("""
        import time
        program = add_program(rt.CudaProgram)
        fake.fake_eager = 1
        x = gpu(np.arange(8))
        def best(leaves):
            times = []
            for _ in range(20):
                start = time.perf_counter_ns()
                for _ in range(500):
                    program(leaves)
                times.append((time.perf_counter_ns() - start) / 500)
            return min(times)
        cost = best([x, x])
        print(cost)
        assert cost < 3000, cost  # nanoseconds, the fake driver's own included
        """)
