"""Programs that the disk knows: found by what decides them, the same as made anew."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import functrans as ft
from functrans.core import config
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import HOPPER, cuda_target
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.saved import SavedProgram
from functrans.lowering.triton.steps.spec import HostStep, Launch

xp = ft.numpy
X = np.random.default_rng(0).standard_normal((16, 24)).astype("f4")
TABLE = np.random.default_rng(1).standard_normal((300, 24)).astype("f4")


@pytest.fixture(autouse=True)
def version(monkeypatch):
    """As if no file of the compiler were being edited; the disk knows nothing of this version."""
    version = str(time.time_ns())
    monkeypatch.setattr("functrans.lowering.store.fingerprint.compiler_version", lambda: version)


def model(x):
    h = xp.tanh(x @ x.T).sum(0)
    return h, x.at[2].set(7.0), xp.take(xp.array(TABLE), xp.arange(16), axis=0) + x


def jaxpr_of(fun, *args):
    closed = ft.make_jaxpr(fun)(*args)
    return closed.jaxpr.hoist_consts(), [*map(np.asarray, closed.consts)]


def place(cache, jaxpr, donated=frozenset(), any_size=False, target=HOPPER, device=""):
    return SavedProgram(jaxpr, cache, donated, any_size, target, device)


def same(program, other):
    assert program.sources == other.sources and program.arena_bytes == other.arena_bytes
    assert program.steps == other.steps and dict(program.aliases.inputs) == dict(
        other.aliases.inputs)
    for a, b in zip(program.constants, other.constants, strict=True):
        np.testing.assert_array_equal(a, b)
    for ours, theirs in ((program.inputs, other.inputs), (program.outputs, other.outputs)):
        assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in theirs]


@pytest.mark.parametrize("donated", [frozenset(), frozenset({1})])
def test_a_program_is_read_as_it_was(tmp_path, donated):
    cache = Cache(tmp_path / "kept")
    jaxpr, consts = jaxpr_of(model, X)
    assert place(cache, jaxpr, donated).read() is None
    program = write_program(simplify(jaxpr), donated=donated)
    place(cache, jaxpr, donated).write(program)
    found = place(cache, jaxpr, donated).read()
    same(found, program)
    for a, b in zip(InterpretedProgram(found)([*consts, X]), model(xp.array(X)), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), 1e-5, 1e-5)
    # an equal jaxpr of another trace finds it too
    again, _ = jaxpr_of(model, X)
    same(place(cache, again, donated).read(), program)


def test_what_decides_a_program_tells_it_from_others(tmp_path):
    cache = Cache(tmp_path / "kept")
    jaxpr, _ = jaxpr_of(model, X)
    place(cache, jaxpr).write(write_program(simplify(jaxpr)))
    assert place(cache, jaxpr).read() is not None
    other, _ = jaxpr_of(lambda x: xp.tanh(x), X)
    assert place(cache, other).read() is None
    assert place(cache, jaxpr, frozenset({0})).read() is None
    assert place(cache, jaxpr, any_size=True).read() is None
    assert place(cache, jaxpr, target=cuda_target(80)).read() is None
    assert place(cache, jaxpr, device="a GPU").read() is None
    for setting in (config.matmul_precision("highest"), config.autotune("off"),
                    config.scope(deterministic=True), config.algebra("off")):
        with setting:
            assert place(cache, jaxpr).read() is None
    with config.progress(False):
        assert place(cache, jaxpr).read() is not None


def test_what_calls_python_is_not_kept(tmp_path):
    def fun(x):
        return ft.pure_callback(np.sin, x, x) + 1

    jaxpr, _ = jaxpr_of(fun, X)
    program = write_program(simplify(jaxpr))
    assert any(isinstance(s, HostStep) for s in program.steps)
    cache = Cache(tmp_path / "kept")
    place(cache, jaxpr).write(program)
    assert not list((tmp_path / "kept").glob("*.manifest"))


def test_corrupt_entries_are_none(tmp_path):
    cache = Cache(tmp_path / "kept")
    jaxpr, _ = jaxpr_of(lambda x: x * 2, X)
    program = write_program(simplify(jaxpr))
    place(cache, jaxpr).write(program)
    (entry,) = (tmp_path / "kept").glob("*.manifest")
    for words in (b"", b"[", b"{}", b"{'sources': 1, 'steps': [], 'constants': [], 'arena': 0, "
                  b"'given': {}}", b"{'sources': [''], 'steps': [(1,)], 'constants': [], 'arena': "
                  b"0, 'given': {}}", b"{'sources': [''], 'steps': [], 'constants': ['?'], 'arena':"
                  b" 0, 'given': {}}"):
        cache.write(entry.name, words)
        assert place(cache, jaxpr).read() is None, words
    place(cache, jaxpr).write(program)
    same(place(cache, jaxpr).read(), program)


def test_a_second_process_does_without_passes_and_triton(tmp_path):
    code = textwrap.dedent("""
        import sys
        import numpy as np
        import functrans as ft
        def f(x, y):
            return ft.numpy.tanh(x @ y).sum(0), ft.numpy.sort(x, axis=1)
        shape = ft.ShapeDtypeStruct((64, 64), "float32")
        compiled = ft.lower(f, shape, shape, target="cuda:90").compile()
        print([m in sys.modules for m in ("triton", "functrans.lowering.triton.program")])
        print(len(compiled.kernels), len(compiled.as_text()), compiled.memory_analysis())
        print([len(k.lines) for k in compiled.kernels])
        """)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    first, second = (subprocess.run([sys.executable, "-c", code], check=True, text=True,
                                    capture_output=True, env=environment).stdout.splitlines()
                     for _ in range(2))
    assert (first[0], second[0]) == ("[True, True]", "[False, False]")
    assert first[1:] == second[1:]
    assert all(int(n) > 0 for n in first[2].strip("[]").split(","))


def test_an_interpreted_program_from_the_disk_computes_the_same():
    with ft.config.use_backend("triton"):
        first = ft.jit(model)(X)
        ft.clear_caches()
        second = ft.jit(model)(X)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_launches_keep_their_types(tmp_path):
    cache = Cache(tmp_path / "kept")
    jaxpr, _ = jaxpr_of(lambda x: (x @ x.T) * 2, X)
    place(cache, jaxpr).write(write_program(simplify(jaxpr)))
    for step in place(cache, jaxpr).read().steps:
        assert isinstance(step, Launch)
        assert all(isinstance(x, tuple) for x in (step.grid, step.arguments, step.types,
                                                  step.divisible))
        hash(step)
