"""Device memory shared with other libraries: DLPack and the CUDA array interface."""


def test_dlpack_round_trip(on_fake):
    on_fake("""
        import ml_dtypes
        for dtype in ("float32", "int8", "bool", "complex128", ml_dtypes.bfloat16):
            for version in ({}, {"max_version": (1, 0)}):
                x = ft.device_put(np.arange(6).reshape(2, 3).astype(dtype), "gpu")
                pointer, stream = rt.cuda_pointer(x)
                assert x.__dlpack_device__() == (2, 0)
                capsule = x.__dlpack__(stream=stream, **version)
                assert "versioned" in repr(capsule) if version else "versioned" not in repr(capsule)
                y = rt.cuda_import_dlpack(capsule)
                assert rt.cuda_pointer(y)[0] == pointer and y.dtype == x.dtype and y.shape == (2, 3)
                values = np.asarray(x)
                del x, capsule
                assert np.array_equal(np.asarray(y), values)
                del y
        rt.cuda_synchronize(0)
        assert rt.cuda_memory_stats(0)["bytes_in_use"] == 0
        x = gpu(np.ones(3))
        used = x.__dlpack__()
        rt.cuda_import_dlpack(used)
        with raises(TypeError):
            rt.cuda_import_dlpack(used)
        for bad in (dict(stream=0), dict(stream="x"), dict(stream=-2)):
            with raises(ValueError):
                x.__dlpack__(**bad)
        with raises(BufferError):
            x.__dlpack__(dl_device=(2, 1))
        assert x.__dlpack__(dl_device=(1, 0), copy=True) is not None
        copied = rt.cuda_import_dlpack(x.__dlpack__(copy=True))
        assert rt.cuda_pointer(copied)[0] != rt.cuda_pointer(x)[0]
        """)


def test_dlpack_from_other_libraries(on_fake):
    on_fake("""
        n = 1000
        class Foreign:
            def __init__(self, x): self.x, self.streams = x, []
            def __dlpack_device__(self): return (2, 0)
            def __dlpack__(self, *, stream=None):  # from before version 1.0
                self.streams.append(stream)
                return self.x.__dlpack__(stream=stream)
        theirs = Foreign(add_program(rt.CudaProgram, n)([gpu(np.ones(n)), gpu(np.ones(n))])[0])
        ours = ft.dlpack.from_dlpack(theirs)
        assert theirs.streams == [rt.cuda_stream(0)] and ours.device.platform == "gpu"
        assert rt.cuda_pointer(ours)[0] == rt.cuda_pointer(theirs.x)[0]
        doubled, = add_program(rt.CudaProgram, n)([ours, ours])
        del ours, theirs
        assert (np.asarray(doubled) == 4).all()
        again = ft.dlpack.from_dlpack(Foreign(doubled), copy=True)
        assert rt.cuda_pointer(again)[0] != rt.cuda_pointer(doubled)[0]
        assert (np.asarray(again) == 4).all()
        host = ft.dlpack.from_dlpack(Foreign(doubled), device="cpu")
        assert host.device.platform == "cpu" and (np.asarray(host) == 4).all()
        with raises(errors.ArgumentError):
            ft.dlpack.from_dlpack(Foreign(doubled), device="cpu", copy=False)
        """)


def test_foreign_memory_lives_until_our_work_has_run(on_fake):
    on_fake("""
        n = 1000
        events = []
        class Owner:
            def __init__(self, x):
                self.x = x
                pointer, stream = rt.cuda_pointer(x)
                self.__cuda_array_interface__ = {"shape": (n,), "typestr": "<f4", "version": 3,
                    "data": (pointer, False), "strides": None, "stream": 1}
            def __del__(self):
                events.append(fake.fake_launches)
        x = ft.device_put(Owner(gpu(np.arange(n))), "gpu")
        assert x.device.platform == "gpu" and x.shape == (n,)
        add = add_program(rt.CudaProgram, n)
        y, = add([x, x])
        del x
        gc.collect()
        assert events == [] and fake.fake_launches == 0, "its owner stays while the kernel waits"
        assert np.array_equal(np.asarray(y), 2 * np.arange(n))
        rt.cuda_synchronize(0)
        assert events == [1]
        """)


def test_the_cuda_array_interface(on_fake):
    on_fake("""
        x = gpu(np.arange(6).reshape(2, 3))
        described = x.__cuda_array_interface__
        assert described == {
            "shape": (2, 3), "typestr": "<f4", "data": (rt.cuda_pointer(x)[0], True),
            "strides": None, "version": 3, "stream": rt.cuda_stream(0)}
        assert not hasattr(ft.numpy.ones(3), "__cuda_array_interface__")
        class Other:
            def __init__(self, **changes): self.__cuda_array_interface__ = {**described, **changes}
        for changes in ({}, {"stream": 1}, {"stream": None}, {"strides": (12, 4)}, {"version": 2}):
            y = ft.dlpack.from_dlpack(Other(**changes))
            assert np.array_equal(y, x) and rt.cuda_pointer(y)[0] == rt.cuda_pointer(x)[0]
        assert ft.device_put(Other(), "cpu").device.platform == "cpu"
        for changes in ({"strides": (4, 8)}, {"mask": 1}):
            with raises(errors.ArgumentError):
                ft.dlpack.from_dlpack(Other(**changes))
        """)


def test_our_work_follows_their_stream(on_fake):
    # their write waits in a stream of theirs until somebody waits for it
    on_fake("""
        import ctypes
        def on_their_stream(name, *args):
            assert getattr(fake.library, name)(*[ctypes.c_uint64(a) for a in args]) == 0
        n = 1000
        add = add_program(rt.CudaProgram, n)
        for use in (np.asarray, lambda y: np.asarray(add([y, y])[0]) / 2):
            x = gpu(np.zeros(n)).block_until_ready()
            pointer = rt.cuda_pointer(x)[0]
            on_their_stream("cuMemsetD8Async", pointer, 0x3f, 4 * n, 1)
            class Theirs:
                __cuda_array_interface__ = {"shape": (n,), "typestr": "<f4", "version": 3,
                                            "data": (pointer, False), "stream": 1}
            values = use(ft.dlpack.from_dlpack(Theirs()))
            assert (values == np.full(4, 0x3f, np.uint8).view(np.float32)).all()
        """)


def test_memory_that_was_lent_is_used_again_behind_their_work(on_fake):
    on_fake("""
        import ctypes
        def on_their_stream(name, *args):
            assert getattr(fake.library, name)(*[ctypes.c_uint64(a) for a in args]) == 0
        n = 100_000
        x = gpu(np.ones(n)).block_until_ready()
        theirs = gpu(np.zeros(n)).block_until_ready()
        place, there = rt.cuda_pointer(x)[0], rt.cuda_pointer(theirs)[0]
        lent = x.__dlpack__(stream=None)
        on_their_stream("cuMemcpyDtoDAsync_v2", there, place, 4 * n, 1)
        del x, lent  # they have read it, or will
        y = gpu(np.full(n, 7))
        assert rt.cuda_pointer(y)[0] == place
        assert (np.asarray(y) == 7).all() and (np.asarray(theirs) == 1).all()
        """)
