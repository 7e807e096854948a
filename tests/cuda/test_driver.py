"""Opening the CUDA driver, and what is said when it cannot be used."""

import pytest

import functrans as ft
from functrans import _runtime as rt
from functrans.core.errors import BackendError


def test_without_a_driver(tmp_path, on_fake):
    (tmp_path / "libnothing.so").write_bytes(b"")
    out = on_fake(f"""
        assert not rt.cuda_open({str(tmp_path / "libnothing.so")!r})
        assert not rt.cuda_open("/no/such/libcuda.so.1")
        assert "no/such" in rt.cuda_error()
        assert ft.devices() == [ft.Device("cpu")] and ft.config.current_device().platform == "cpu"
        with raises(errors.NoDriverError) as error:
            rt.cuda_require()
        print(error)
        for use in (lambda: ft.devices("gpu"), lambda: ft.device_put(1.0, "gpu:0"),
                    lambda: ft.config.default_device("gpu").__enter__()):
            with raises(errors.BackendError) as error:
                use()
        print(error)
        with raises(errors.NoDriverError):
            rt.CudaEvent()
        assert rt.cuda_open(fake.path)  # one that is there opens later
        assert ft.device_put(1.0, "gpu:0").device == ft.devices("gpu")[0] and not rt.cuda_error()
        """, opened=False)
    assert "there is no CUDA driver that works here." in out and "Why: dlopen: " in out
    assert "there is no device 'gpu' here." in out and "The CUDA driver does not open" in out
    assert 'Fix: device="cpu"' in out


@pytest.mark.parametrize("setting, error, text", [
    ("fake.fake_version = 11080", "OldDriverError", "offers CUDA 11.8"),
    ("fake.fake_devices = 0", "NoDriverError", "there is no GPU here"),
    ("fake.fake_init = 100", "NoDriverError", "there is no GPU here"),
    ("fake.fake_init = 999", "NoDriverError", "CUDA_ERROR_UNKNOWN (999)"),
])
def test_a_driver_that_cannot_be_used(on_fake, setting, error, text):
    out = on_fake(f"""
        {setting}
        assert not rt.cuda_open(fake.path) and ft.devices() == [ft.Device("cpu")]
        with raises(errors.{error}) as error:
            rt.cuda_require()
        print(error)
        """, opened=False)
    assert text in out and "Why:" in out and "Fix:" in out


def test_devices_and_their_properties(on_fake):
    on_fake("""
        cpu, first, second = ft.devices()
        assert repr(second) == "gpu:1" and ft.devices("gpu") == [first, second]
        assert ft.devices("cuda") == ft.devices("gpu")
        assert first.device_kind == "Fake GPU 0" and first.compute_capability == (9, 0)
        assert cpu.device_kind == "cpu" and cpu.compute_capability is None
        assert rt.cuda_devices()[0] == ("Fake GPU 0", 9, 0, 4, fake.fake_limit, 232448)
        stats = second.memory_stats()
        assert stats["bytes_in_use"] == stats["bytes_reserved"] == stats["num_allocs"] == 0
        x = ft.device_put(np.ones(3), second)
        assert x.device == second and second.memory_stats()["bytes_in_use"] == 256
        assert first.memory_stats()["bytes_in_use"] == 0
        with raises(errors.ArgumentError):
            ft.device_put(1.0, 3)
        for name in ("gpu:2", ft.Device("gpu", 7), "tpu", "gpu:x"):
            with raises(errors.BackendError) as error:
                ft.device_put(1.0, name)
            assert "the devices are cpu:0, gpu:0, gpu:1." in str(error), str(error)
        with raises(errors.NoDriverError) as error:
            rt.cuda_synchronize(5)
        assert "no GPU of number 5" in str(error)
        """)


def test_the_default_device(on_fake):
    on_fake("""
        has_triton = ft.config.current_device().platform == "gpu"
        import importlib.util
        assert has_triton == (importlib.util.find_spec("triton") is not None)
        with ft.config.default_device("gpu:1"):
            assert ft.config.current_device() == ft.devices("gpu")[1]
            assert ft.device_put(1.0).device == ft.devices("gpu")[1]
            assert ft.device_put(1.0, "cpu").device.platform == "cpu"
            with ft.config.default_device(ft.devices("cpu")[0]):
                assert ft.device_put(1.0).device.platform == "cpu"
            kept = ft.device_put(gpu([1.0]))
            assert kept.device.id == 0, "it stays where it was put"
        with ft.config.default_device(None):
            assert (ft.config.current_device().platform == "gpu") == has_triton
        """)


def test_arrays_put_on_the_cpu_are_known(on_fake):
    on_fake("""
        x = ft.numpy.ones(3)
        put = ft.device_put(x, "cpu")
        assert x._place == 0 and put._place == 127 and put.device == x.device == ft.Device("cpu")
        assert np.shares_memory(np.asarray(x), np.asarray(put)) and (put + x)._place == 0
        seen = []
        def miss(self, args, kwargs, key):
            seen.append(args[0].device)
            self.insert(key, lambda leaves: leaves, ..., [False])
            return None
        call = rt.JitFunction(miss)
        for a in (x, put, gpu([1, 2, 3]), ft.device_put(x, "gpu:1")) * 2:
            call(a)
        assert list(map(repr, seen)) == ["cpu:0", "cpu:0", "gpu:0", "gpu:1"]
        assert call(gpu([1, 2, 3])).device == ft.devices("gpu")[0]
        """)


def test_after_a_fork(on_fake):
    out = on_fake("""
        import os
        x = gpu(np.arange(5))
        program = add_program(rt.CudaProgram, 5)
        program([x, x])
        big = ft.device_put(np.ones(1 << 20, np.float32), "gpu")
        child = os.fork()
        if child == 0:
            assert ft.numpy.ones(3).sum() == 3, "the CPU works on"
            for use in (lambda: np.asarray(x), lambda: program([x, x]), lambda: rt.CudaEvent(),
                        lambda: ft.device_put(np.ones(3), "gpu"), x.block_until_ready):
                with raises(errors.ForkedDeviceError) as error:
                    use()
            print(error)
            del x, big, program, use
            gc.collect()
            sys.stdout.flush()
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(program([x, x])[0], 2 * np.arange(5))
        """)
    assert "the GPU cannot be used in this process." in out and "spawn" in out


def test_threads_have_the_context(on_fake):
    on_fake("""
        def work(k):
            x = gpu(np.full(1000, k))
            for _ in range(50):
                x, = add_program(rt.CudaProgram, 1000)([x, x])
                x, = rt.CudaProgram([kernel("scale")], [("launch", 0, (1, 1, 1), (("input", 0, 0),
                    ("output", 0, 0), 0.5, 1000))], [("float32", (1000,))], [("float32", (1000,))],
                    [], 0)([x])
            results[k] = np.asarray(x)
        results = {}
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert all((results[k] == k).all() for k in range(6))
        """)


def test_this_machine_says_what_it_has():
    if rt.cuda_open():
        assert ft.devices("gpu")
    else:
        with pytest.raises(BackendError, match=r"there is no device 'gpu' here") as caught:
            ft.devices("gpu")
        assert "device=\"cpu\"" in str(caught.value)


def test_jit_runs_where_its_arguments_are(on_fake):
    on_fake("""
        from functrans.core import cuda
        if cuda.has_triton():
            cpu, here, there = ft.numpy.ones(3), gpu([1]), ft.device_put(1.0, "gpu:1")
            put = ft.device_put(cpu, "cpu")
            assert cuda.gpu_of([cpu, 1.0]) == 0 and cuda.gpu_of([put, there]) == 1
            assert cuda.gpu_of([cpu, put]) is None
            with ft.config.default_device("cpu"):
                assert cuda.gpu_of([cpu]) is None and cuda.gpu_of([cpu, here]) == 0
        """)
