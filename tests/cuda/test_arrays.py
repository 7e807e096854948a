"""Arrays on a device: copies, what they answer without one, and ordering."""


def test_round_trips_of_all_sizes_and_dtypes(on_fake):
    on_fake("""
        import ml_dtypes
        rng = np.random.default_rng(0)
        chunk = 4 << 20
        for n in (0, 1, 7, 65_535, 65_536, 65_537, chunk - 1, chunk, chunk + 1, 3 * chunk + 5):
            x = rng.integers(0, 255, n, dtype=np.uint8)
            assert np.array_equal(np.asarray(ft.device_put(x, "gpu")), x), n
        dtypes = ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64",
                  ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
        for dtype in dtypes:
            x = rng.integers(0, 2, (3, 0 if dtype == "int8" else 5, 2)).astype(dtype)
            g = ft.device_put(x, "gpu")
            assert g.shape == x.shape and g.dtype == x.dtype and g.device.platform == "gpu"
            assert np.array_equal(np.asarray(g), x) and g.weak_type is False
        t = ft.device_put(rng.random((50, 60)).T, "gpu")  # not contiguous
        assert np.array_equal(np.asarray(t), ft.device_get(t)) and t.shape == (60, 50)
        assert float(ft.device_put(2.5, "gpu")) == 2.5 and ft.device_put(2.5, "gpu").weak_type
        """)


def test_the_host_gets_one_copy(on_fake):
    on_fake("""
        x = gpu(np.arange(6).reshape(2, 3))
        before = fake.fake_calls
        assert (x.shape, x.dtype, x.ndim) == ((2, 3), np.float32, 2)
        assert (x.size, x.nbytes, len(x)) == (6, 24, 2)
        assert str(x.aval) == "f32[2,3]" and x.devices() == {x.device}
        assert fake.fake_calls == before, "nothing of that asks the device"
        first = np.asarray(x)
        before = fake.fake_calls
        assert np.shares_memory(np.asarray(x), first) and not first.flags.writeable
        assert float(x[1, 2]) == 5 and x.tolist() == [[0, 1, 2], [3, 4, 5]] and bool(x[0, 1] == 1)
        assert fake.fake_calls == before and x.device.platform == "gpu"
        """)


def test_everything_else_works_on_the_host_copy(on_fake):
    on_fake("""
        import copy, pickle
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        x = gpu(values)
        y = ft.numpy.asarray(values)
        assert np.array_equal(x + y, values * 2) and np.array_equal(y - gpu(values), 0 * values)
        assert np.array_equal(gpu(values)[1], values[1])
        assert np.array_equal(gpu(values)[::2], values[::2])
        assert np.array_equal(gpu(values).T, values.T)
        assert np.array_equal(gpu(values).sum(0), values.sum(0))
        assert np.array_equal(gpu(values) @ y.T, values @ values.T) and gpu(values).max() == 11
        assert [float(r.sum()) for r in gpu(values)] == [6, 22, 38]
        assert np.array_equal(ft.numpy.reshape(gpu(values), (2, 6)), values.reshape(2, 6))
        assert np.array_equal(np.sin(gpu(values)), np.sin(values))
        assert memoryview(gpu(values)).nbytes == 48
        assert np.array_equal(ft.grad(lambda a: (a * a).sum())(gpu(values)), values * 2)
        assert np.array_equal(ft.vmap(lambda a: a.sum())(gpu(values)), values.sum(1))
        assert np.array_equal(gpu(values).at[0].set(1.0)[0], np.ones(4))
        back = pickle.loads(pickle.dumps(gpu(values)))
        assert np.array_equal(back, values) and back.device.platform == "cpu"
        again = copy.deepcopy(x)
        assert again is not x and again.device == x.device and np.array_equal(again, x)
        assert np.array_equal(np.array(gpu(values), np.float64), values)
        assert repr(gpu([1, 2])) == "Array([1., 2.], dtype=float32)" and f"{gpu(1.5):.2f}" == "1.50"
        one = ft.device_put(np.float32(1), "gpu")
        assert (one, int(one), bool(one), complex(one)) == (1, 1, True, 1) and +one == 1
        assert "a" * int(ft.device_put(np.int32(2), "gpu")) == "aa"
        assert [1, 2, 3][ft.device_put(np.int32(1), "gpu")] == 2
        """)


def test_moving_between_devices(on_fake):
    on_fake("""
        first, second = ft.devices("gpu")
        values = np.random.default_rng(0).random(100_000).astype(np.float32)
        a = ft.device_put(values, first)
        assert ft.device_put(a, first) is a and a.to_device(first) is a
        b = ft.device_put(a, second)
        assert b.device == second and np.array_equal(b, values)
        c = b.to_device("cpu")
        assert c.device.platform == "cpu" and np.array_equal(c, values)
        tree = ft.device_put({"x": values, "y": [1.0, a]}, second)
        assert {leaf.device for leaf in ft.tree.leaves(tree)} == {second}
        assert ft.block_until_ready(tree) is tree and a.block_until_ready() is a
        got = ft.device_get(tree)
        assert isinstance(got["x"], np.ndarray) and np.array_equal(got["y"][1], values)
        """)


def test_what_is_copied_to_another_device_may_die(on_fake):
    on_fake("""
        n = 100_000
        a = ft.device_put(np.full(n, 1, np.float32), "gpu:0").block_until_ready()
        place = rt.cuda_pointer(a)[0]
        b = ft.device_put(a, "gpu:1")
        del a
        c = ft.device_put(np.full(n, 2, np.float32), "gpu:0")
        assert rt.cuda_pointer(c)[0] == place
        assert (np.asarray(c) == 2).all() and (np.asarray(b) == 1).all()
        """)


def test_uploads_wait_for_what_used_the_memory(on_fake):
    # on this driver work runs when somebody waits for it: without the waits, the copy would come
    # before the kernel that reads the old values
    on_fake("""
        n = 100_000
        program = add_program(rt.CudaProgram, n)
        old = ft.device_put(np.full(n, 1, np.float32), "gpu")
        old.block_until_ready()
        place = rt.cuda_pointer(old)[0]
        out, = program([old, old])
        assert fake.fake_launches == 0
        del old
        new = ft.device_put(np.full(n, 5, np.float32), "gpu")
        assert rt.cuda_pointer(new)[0] == place, "the memory is used again"
        assert (np.asarray(new) == 5).all() and fake.fake_launches == 1
        assert (np.asarray(out) == 2).all()
        # and kernels wait for the upload of what they read
        x = ft.device_put(np.full(n, 3, np.float32), "gpu")
        y, = program([x, x])
        assert (np.asarray(y) == 6).all()
        z = ft.device_put(np.full(n, 4, np.float32), "gpu")
        del z  # dropped while it is copied: whoever gets its memory comes behind the copy
        w, = program([x, x])
        assert (np.asarray(w) == 6).all()
        """)


def test_uploads_do_not_wait_for_other_work(on_fake):
    on_fake("""
        n = 100_000
        program = add_program(rt.CudaProgram, n)
        x = ft.device_put(np.full(n, 1, np.float32), "gpu")
        x.block_until_ready()
        out, = program([x, x])
        fresh = ft.device_put(np.full(n, 5, np.float32), "gpu")
        assert (np.asarray(fresh) == 5).all() and fake.fake_launches == 0
        out.block_until_ready()
        assert fake.fake_launches == 1
        """)


def test_arrays_may_die_while_kernels_wait(on_fake):
    on_fake("""
        n = 1000
        add = add_program(rt.CudaProgram, n)
        total = gpu(np.zeros(n))
        for k in range(300):
            total, = add([total, gpu(np.full(n, k))])
            if k % 50 == 0:
                gc.collect()
        assert fake.fake_launches < 300
        assert (np.asarray(total) == 299 * 150).all()
        del total
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        assert rt.cuda_memory_stats(0)["peak_bytes_in_use"] < 10 * 4096, "used in stream order"
        """)


def test_events(on_fake):
    on_fake("""
        fake.fake_launch_sleep_us = 20_000
        x = gpu(np.ones(8))
        program = add_program(rt.CudaProgram)
        start, end = rt.CudaEvent().record(), rt.CudaEvent()
        assert not start.query()
        program([x, x])
        end.record()
        assert not end.query() and fake.fake_launches == 0
        milliseconds = start.elapsed_ms(end)
        assert 19 < milliseconds < 200 and fake.fake_launches == 1 and end.query()
        end.synchronize()
        rt.cuda_synchronize(0)
        ft.devices("gpu")[0].synchronize()
        """)


def test_donated_arrays_are_gone(on_fake):
    on_fake("""
        program = rt.CudaProgram([kernel("increment")], [("launch", 0, (1, 1, 1),
            (("output", 0, 0), 8))], [("float32", (8,))], [("float32", (8,), 0)],
            [], 0, donated=[0])
        x = gpu(np.arange(8))
        place = rt.cuda_pointer(x)[0]
        y, = program([x])
        assert rt.cuda_pointer(y)[0] == place and np.array_equal(y, np.arange(8) + 1)
        for use in (lambda: np.asarray(x), lambda: program([x]), lambda: x + 1, x.block_until_ready,
                    lambda: ft.device_put(x, "cpu"), lambda: x.__dlpack__(), lambda: float(x),
                    lambda: rt.cuda_pointer(x)):
            with raises(errors.DonatedArrayError):
                use()
        assert x.shape == (8,) and "donated" in repr(x) and x.device == y.device
        shared = gpu(np.arange(8))
        capsule = shared.__dlpack__()
        z, = program([shared])  # another library has the memory: the program works on a copy
        assert rt.cuda_pointer(z)[0] != rt.cuda_pointer(rt.cuda_import_dlpack(capsule))[0]
        assert np.array_equal(z, np.arange(8) + 1)
        """)
