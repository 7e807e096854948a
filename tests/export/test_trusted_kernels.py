"""Kernels in a file run as they came where they are trusted, and nowhere else."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import _runtime
from functrans.core.errors import BackendError, DefectError, ExportError
from functrans.export import deserialize, export
from functrans.export.container import pack, unpack
from functrans.export.plain import from_bytes, to_bytes
from functrans.lowering.c.backend import CBackend
from functrans.lowering.c.portable import PortableCProgram
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.transforms.jit.executables import executable_of

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
TABLE = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)


def model(x, y):
    """Products, a loop of each kind, sorting, an update, constants."""
    h = jnp.tanh(x @ y.T).sum(0)
    last, sums = ft.lax.scan(lambda c, r: (jnp.tanh(c + r @ y.T @ y / 9), c.sum()), x[0], x)
    grown = ft.lax.while_loop(lambda s: (s * s).sum() < 100, lambda s: 1.5 * s, last)
    rows = jnp.take(jnp.asarray(TABLE), jnp.arange(6), axis=0)
    return {"h": h, "sums": sums, "grown": grown}, x.at[2].set(7.0), jnp.sort(x, axis=1), rows


def assert_close(got, expected):
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.fixture
def no_compiler(monkeypatch):
    """Compiling is an error."""
    def refuse(*args, **kwargs):
        raise AssertionError("something was compiled")

    monkeypatch.setattr(CBackend, "compile", refuse)


@pytest.fixture(scope="module")
def file():
    return export(model, targets=["cpu", "cuda:90"])(X, X).serialize()


def test_they_run_on_the_cpu_without_compiling(file, no_compiler):
    expected = model(jnp.asarray(X), jnp.asarray(X))
    assert_close(deserialize(file, trust_kernels=True).call(X, X), expected)
    for loaded in (deserialize(file), export(model)(X, X)):
        with pytest.raises(DefectError, match="something was compiled"):
            loaded.call(X, X)


def test_they_give_the_bits_of_what_is_compiled(file):
    trusted, other = deserialize(file, trust_kernels=True), deserialize(file)
    for a, b in zip(ft.tree.leaves(trusted.call(X, X)), ft.tree.leaves(other.call(X, X)),
                    strict=True):
        np.testing.assert_array_equal(a, b)
    assert_close(ft.jit(trusted.call)(X, X), other.call(X, X))
    assert_close(ft.vmap(trusted.call)(X[None], X[None]), ft.tree.map(
        lambda x: x[None], other.call(X, X)))


def test_they_are_for_all_sizes_on_the_cpu(no_compiler):
    B = ft.dim("B", min=1)
    fun = lambda x: (x.sum(0), jnp.sort(x, axis=0), jnp.exp(x[:-1]))
    data = export(fun, targets=["cpu"])(ft.ShapeDtypeStruct((B, 8), "float32")).serialize()
    loaded = deserialize(data, trust_kernels=True)
    for n in (1, 2, 6):
        assert_close(loaded.call(X[:n]), fun(jnp.asarray(X[:n])))


def test_another_process_needs_no_compiler(tmp_path, file):
    (tmp_path / "f.ftx").write_bytes(file)
    np.save(tmp_path / "x.npy", X)
    code = ("import sys, functrans as ft, numpy as np; x = np.load('x.npy'); "
            "y = ft.export.load('f.ftx', trust_kernels=True).call(x, x); "
            "np.savez('y.npz', *ft.tree.leaves(y)); print('triton' in sys.modules)")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True,
                          env={**os.environ, "CC": "/nowhere/cc", "PATH": "/nowhere",
                               "XDG_CACHE_HOME": str(tmp_path / "cache")},
                          capture_output=True, text=True)
    assert done.stdout == "False\n"
    assert_close([*np.load(tmp_path / "y.npz").values()], model(jnp.asarray(X), jnp.asarray(X)))


def test_they_are_compiled_anew_where_they_do_not_fit(file):
    expected = model(jnp.asarray(X), jnp.asarray(X))
    own = deserialize(file).programs["cpu"][0].portable
    assert own.runs_here
    for change in ({"flags": [*own.flags, "-mfuture"]}, {"machine": "vax"}, {"interface": "0"}):
        assert not replace(own, **change).runs_here
    section = from_bytes(unpack(file)[b"KERN"])
    section[0][1][0][3][1] = "vax"
    other = deserialize(pack({**unpack(file), b"KERN": to_bytes(section)}), trust_kernels=True)
    assert_close(other.call(X, X), expected)
    with ft.config.matmul_precision("highest"):  # kernels of another setting
        assert_close(deserialize(file, trust_kernels=True).call(X, X), expected)


def test_what_does_not_load_is_an_error(file):
    section = from_bytes(unpack(file)[b"KERN"])
    section[0][1][0][2][0][3] = b"\x7fELF and nothing else"
    loaded = deserialize(pack({**unpack(file), b"KERN": to_bytes(section)}), trust_kernels=True)
    with pytest.raises(ExportError, match="kernels of model for the CPU do not load"):
        loaded.call(X, X)


def test_kernels_for_gpus_are_whole_programs(file):
    exported = deserialize(file)
    expected = ft.tree.leaves(model(jnp.asarray(X), jnp.asarray(X)))
    assert exported.targets == ("cpu", "cuda:90")
    for kernel in exported.kernels["cuda:90"]:
        assert kernel.code.startswith(b"\x7fELF") and ".target sm_90" in kernel.ptx
        assert f"def {kernel.name}(" in kernel.source
    portable = exported.programs["cuda:90"][0].portable
    outs = InterpretedProgram(portable.program)([*map(np.asarray, exported.consts), X, X])
    assert_close(outs, expected)


def test_kernels_for_gpus_are_for_the_sizes_that_are_asked_for():
    B, N = ft.dim("B"), ft.dim("N")
    fun = lambda x: jnp.tanh(x).sum(0)
    spec = ft.ShapeDtypeStruct((B, N), "float32")
    with pytest.raises(ExportError, match="need sizes: B, N are symbolic"):
        export(fun, targets=["cuda:90"])(spec)
    sets = [{"B": 4, "N": 8}, {"B": 6, "N": 8}]
    exported = export(fun, targets={"cuda:90": sets})(spec)
    for program, sizes in zip(exported.programs["cuda:90"], sets, strict=True):
        assert program.sizes == sizes
        x = X[:sizes["B"]]
        (out,) = InterpretedProgram(program.portable.program)([x])
        np.testing.assert_allclose(out, fun(jnp.asarray(x)), rtol=1e-5, atol=1e-6)


def test_what_has_no_kernels():
    with pytest.raises(ExportError, match="has no kernels for cpu"):
        export(lambda x: x, targets=["cpu"])(X)
    with pytest.raises(BackendError, match="no target 'vax'"):
        export(lambda x: x + 1, targets=["vax"])(X)


def test_a_program_of_the_cache_is_not_one_of_a_file(tmp_path, file):
    cache = Cache(tmp_path / "cache")
    portable = deserialize(file).programs["cpu"][0].portable
    assert isinstance(portable, PortableCProgram)
    jaxpr = deserialize(file).jaxpr
    for _ in range(2):
        assert isinstance(portable.executable(jaxpr, cache).run, _runtime.Program)
    assert len([*(tmp_path / "cache").iterdir()]) == 1


def test_trust_goes_with_one_loaded_program(file):
    trusted, other = deserialize(file, trust_kernels=True), deserialize(file)
    assert trusted.trusts_kernels and not other.trusts_kernels
    with ft.config.use_backend("c"):
        assert executable_of(trusted.jaxpr) is executable_of(trusted.jaxpr)
        assert executable_of(other.jaxpr) is not executable_of(trusted.jaxpr)
