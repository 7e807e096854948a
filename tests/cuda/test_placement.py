"""Programs run on the GPU of their arguments; the fake driver has two."""


def placed(code):
    """Code after a backend that remembers for which GPU it made what it ran."""
    return """
        from functrans.lowering import backend
        class Made:
            def __init__(self, jaxpr, gpu=0):
                self.jaxpr, self.gpu = jaxpr, gpu
                seen.append(("made", gpu))
            def run(self, arrays):
                seen.append(("ran", self.gpu))
                return [np.asarray(x) + 1 for x in arrays]
            def on(self, gpu):
                return Made(self.jaxpr, gpu)
            def at(self, shapes):
                return self
        class Backend(backend.Backend):
            name = "triton"
            def compile(self, jaxpr, donated=frozenset(), require_inplace=False):
                seen.append(("compiled",))
                return Made(jaxpr)
        backend.register_backend(Backend())
        seen = []
        f = ft.jit(lambda x: x + 1)
        x = np.arange(4, dtype=np.float32)
    """ + code


def test_a_program_runs_where_its_arguments_are(on_fake):
    on_fake(placed("""
        for gpu in (1, 0, 1):
            assert np.array_equal(f(ft.device_put(x, f"gpu:{gpu}")), x + 1)
        assert [s[1] for s in seen if s[0] == "ran"] == [1, 0, 1]
        assert seen.count(("compiled",)) == 1
        assert seen.count(("made", 1)) == 1
    """))


def test_arguments_from_nowhere_go_to_the_default_device(on_fake):
    on_fake(placed("""
        f(x)
        with ft.config.default_device("gpu:1"):
            assert ft.config.current_device() == ft.devices("gpu")[1]
            f(x)
            f(ft.device_put(x, "gpu:0"))
        with ft.config.default_device("cpu"):
            f(x)
        assert [s[1] for s in seen if s[0] == "ran"] == [0, 1, 0]
    """))


def test_arguments_on_several_gpus_are_an_error_that_names_them(on_fake):
    on_fake(placed("""
        g = ft.jit(lambda x, y: x + y.sum())
        with raises(errors.ArgumentError) as error:
            g(ft.device_put(x, "gpu:0"), ft.device_put(x[:2], "gpu:1"))
        assert "on gpu:0 (such as a f32[4]) and on gpu:1 (such as a f32[2])" in str(error)
        assert 'ft.device_put(x, "gpu:0")' in str(error)
        assert seen == []
    """))


def test_memory_is_counted_for_each_gpu(on_fake):
    on_fake("""
        first, second = ft.devices("gpu")
        x = ft.device_put(np.zeros(1 << 20, np.float32), second)
        assert first.memory_stats()["bytes_in_use"] == 0
        assert second.memory_stats()["bytes_in_use"] == 4 << 20
        y = ft.device_put(x, first)
        assert first.memory_stats()["bytes_in_use"] == 4 << 20
        assert y.device == first and np.array_equal(y, x)
    """)


def test_kernels_are_compiled_once_for_gpus_of_a_kind(on_fake):
    on_fake("""
        from functrans.lowering.triton.machine import pool
        from functrans.transforms.jit.executables import executable_of
        compiled = []
        inner = pool.compile_unit
        pool.compile_unit = lambda unit: compiled.append(unit) or inner(unit)
        x = np.arange(4, dtype=np.float32)
        jaxpr = ft.make_jaxpr(lambda x: ft.numpy.tanh(x) * 3 + 1)(x).jaxpr
        programs = [executable_of(jaxpr, values=[ft.device_put(x, f"gpu:{k}")]) for k in (1, 0)]
        assert [p.run.device for p in programs] == [1, 0]
        assert programs[0].program is programs[1].program
        assert len(compiled) <= 1
    """)
