"""Programs of named sizes on a GPU: each set of sizes has its program, which the runtime calls."""


def test_each_set_of_sizes_is_called_without_python(on_fake):
    on_fake("""
        from functrans.lowering import backend
        from functrans.lowering.triton.sized import SizedExecutable
        class Made:
            specialized = ""
            def __init__(self, jaxpr):
                (n,) = jaxpr.in_avals[0].shape
                self.run = add_program(rt.CudaProgram, n)
                programs[n] = self.run
        class Backend(backend.Backend):
            name = "triton"
            def compile(self, jaxpr, donated=frozenset(), require_inplace=False):
                assert str(jaxpr.in_avals[0]) in ("f32[B]", "f32[s0]", "f32[3]")
                if jaxpr.size_names:
                    return SizedExecutable(jaxpr, jaxpr, [], Made)
                executable = Made(jaxpr)
                executable.at = lambda shapes: executable
                return executable
        backend.register_backend(Backend())
        for names in ({"dynamic_shapes": ({0: "B"}, {0: "B"})}, {}):
            programs = {}
            f = ft.jit(lambda x, y: x + y, **names)
            for repeat in range(3):
                for n in (3, 5, 8):
                    x = gpu(np.arange(n))
                    out = f(x, x)
                    assert out.device == x.device and np.array_equal(out, 2 * np.arange(n))
            assert sorted(programs) == [3, 5, 8]
            assert {p.stats["launches"] for p in programs.values()} == {3}
            assert f.cache_size() == 3
        """)
