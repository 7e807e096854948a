"""Kernels of a loaded program on a GPU that is there: the fake, whose kernels are known by name."""

HEAD = """
    from functrans.core.errors import BackendError
    from functrans.export import deserialize, export
    from functrans.export.container import pack, unpack
    from functrans.export.plain import from_bytes, to_bytes
    from functrans.lowering.triton.backend import TritonBackend
    from functrans.lowering.c.backend import CBackend

    def made(targets, *specs, fun=lambda x, y: x + y):
        # the kernels of a real file, with the fake's in place of their machine code
        data = export(fun, targets=targets)(*specs).serialize()
        section = from_bytes(unpack(data)[b"KERN"])
        for _, programs in section:
            for program in programs:
                (kernel,), ((step,), *_) = program[2], program[3]
                kernel[0], kernel[3], kernel[4][0] = "add", KERNELS, "pppi"
                places = [["input", k, 0, 0] for k in (0, 1)]
                n = program[0][0][1] if program[0] else 8
                step[2:7] = ["add", [1, 1, 1], [*places, ["output", 0, 0, 0], n],
                             ["*fp32"] * 3 + ["i32"], [True] * 3 + [False]]
        return pack({**unpack(data), b"KERN": to_bytes(section)})

    def refuse(*args, **kwargs):
        raise BackendError("something was compiled")

    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
"""


def test_they_run_without_compiling(on_fake):
    on_fake(HEAD + """
    data = made(["cuda:90"], x, y)
    TritonBackend.compile = CBackend.compile = refuse
    loaded = deserialize(data, trust_kernels=True)
    assert fake.fake_loads == 0, "loading runs nothing"
    for k in (0, 1):
        out = loaded.call(ft.device_put(x, f"gpu:{k}"), y)
        assert out.device == ft.devices("gpu")[k]
        assert np.array_equal(out, x + y)
    assert fake.fake_last_kernel == b"add" and fake.fake_launches == 2
    assert "add" in str(loaded.kernels["cuda:90"][0])
    with raises(BackendError):
        deserialize(data).call(gpu(x), gpu(y))
    """)


def test_kernels_of_another_capability_are_left_alone(on_fake):
    on_fake(HEAD + """
    data = made(["cuda:80"], x, y)
    TritonBackend.compile = CBackend.compile = refuse
    with raises(BackendError):
        deserialize(data, trust_kernels=True).call(gpu(x), gpu(y))
    """)


def test_programs_for_sizes_that_came_along(on_fake):
    on_fake(HEAD + """
    B = ft.dim("B")
    spec = ft.ShapeDtypeStruct((B,), "float32")
    data = made({"cuda:90": [{"B": 8}, {"B": 5}]}, spec, spec)
    compiled = []
    def compile_(self, jaxpr, *args, **kwargs):
        compiled.append(jaxpr.in_avals[0].shape)
        return refuse()
    TritonBackend.compile = compile_
    loaded = deserialize(data, trust_kernels=True)
    for n in (5, 8, 5):
        assert np.array_equal(loaded.call(gpu(x[:n]), gpu(y[:n])), x[:n] + 1)
    assert not compiled
    with raises(BackendError):
        loaded.call(gpu(x[:7]), gpu(y[:7]))
    assert compiled == [(7,)]
    """)


def test_constants_go_to_a_gpu_once(on_fake):
    on_fake(HEAD + """
    table = ft.numpy.arange(8, dtype=np.float32)
    loaded = deserialize(made(["cuda:90"], x, fun=lambda x: x + table), trust_kernels=True)
    on_gpu, inner, placed = gpu(x), rt.place_array, []
    rt.place_array = lambda array, place: placed.append(place) or inner(array, place)
    for _ in range(3):
        assert np.array_equal(loaded.call(on_gpu), 2 * x)
    assert placed == [1]
    """)


def test_the_runtime_takes_what_the_checks_let_through(on_fake):
    on_fake(HEAD + """
    import random
    from functrans.lowering.triton.backend import TritonExecutable
    rng = random.Random(0)
    def fun(x, y):
        return ft.numpy.sort(x * y), ft.numpy.concatenate([x, y]), x.at[2].set(7.0)
    data = export(fun, targets=["cuda:90"])(x, y).serialize()
    sections = unpack(data)
    def other(value, odds):
        if isinstance(value, list):
            return [other(v, odds) for v in value]
        if type(value) in (int, float) and rng.random() < odds:
            return rng.choice([0, 1, 2, 3, 7, 16, 63, 2**20, 2**31, 2**62, -1, 0.5])
        return value
    taken = 0
    for _ in range(600):
        section = from_bytes(sections[b"KERN"])
        program = section[0][1][0]
        program[3] = other(program[3], 0.02)
        try:
            loaded = deserialize(pack({**sections, b"KERN": to_bytes(section)}))
        except errors.ExportError:
            continue
        portable = loaded.programs["cuda:90"][0].portable
        TritonExecutable(portable.program, None, "fun", frozenset(),
                         machine_code=portable.machine_code)
        taken += 1
    assert 30 < taken < 600, taken
    """)
