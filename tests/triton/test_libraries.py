"""Programs with functions of CUDA's libraries, which NumPy computes here as they are documented."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core import cuda_libraries as files
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.host_steps import host_uses
from functrans.lowering.triton.libraries import replace
from functrans.lowering.triton.libraries.collectives import COLLECTIVE
from functrans.lowering.triton.libraries.functions import emulated
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.saved import SavedProgram
from functrans.lowering.triton.steps.spec import (
    DoubleBufferedSteps,
    HostStep,
    LibraryStep,
    RepeatedSteps,
)
from tests.laws.primitives import all_cases

RNG = np.random.default_rng(0)
CASES = [case for case in all_cases() if case.primitive in replace.FUNCTIONS
         and not (case.primitive.name == "svd" and case.params["compute_uv"])]


@pytest.fixture(autouse=True)
def libraries_first(monkeypatch):
    """Small matrices have kernels, but for these tests."""
    monkeypatch.setattr(replace, "is_small_and_fast", lambda eqn, target: False)
    monkeypatch.setattr(replace, "is_real_and_fast", lambda eqn, target: False)


def program_with_libraries(fun, *args, is_there=lambda name: True):
    jaxpr = simplify(ft.make_jaxpr(fun)(*args).jaxpr)
    return write_program(replace.replace_by_library_calls(jaxpr, is_there))


def check(fun, *args, tolerance=1e-4):
    """The functions in a program that computes what the host does, and nothing on the host."""
    program = program_with_libraries(fun, *args)
    expected = interpret(ft.make_jaxpr(fun)(*args).jaxpr, args)
    for a, e in zip(InterpretedProgram(program)(args), expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, tolerance, tolerance * max(1, np.abs(e).max(initial=0)))
    steps = [step for step in program.steps if isinstance(step, HostStep)]
    assert all(isinstance(step, LibraryStep) for step in steps)
    return [step.call.function for step in steps]


def numbers(*shape, dtype="float32"):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_primitives(case):
    assert check(lambda *args: case.outs(*args), *case.args)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(shape, full, dtype):
    def product(a):
        u, s, vh = jnp.linalg.svd(a, full)
        k = s.shape[-1]
        return s, u[..., :k] * s[..., None, :] @ vh[..., :k, :], u.conj().mT @ u, vh @ vh.conj().mT

    program = program_with_libraries(product, a := numbers(*shape, dtype=dtype))
    s, again, left, right = InterpretedProgram(program)([a])
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), 1e-4)
    np.testing.assert_allclose(again, a, 1e-4, 1e-4)
    for q in (left, right):
        np.testing.assert_allclose(q, np.broadcast_to(np.eye(q.shape[-1]), q.shape), 1e-4, 1e-4)


PROGRAMS = {
    "cubes": (lambda x: jnp.fft.ifftn(jnp.fft.fftn(x + 0j)), (4, 3, 5), ["fft", "fft"]),
    "spectrum of no real numbers": (lambda x: jnp.fft.irfft2(lax.complex(x, 2 * x)), (2, 4, 3),
                                    ["fft", "fft"]),
    "convolution": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(x[:1])), (3, 16),
                    ["fft", "fft", "fft"]),
    "conjugated": (lambda x: lax.linalg.triangular_solve(
        lax.complex(x, -x) + 3 * jnp.eye(3), x + 0j, conjugate_a=True, left_side=True), (3, 3),
        ["trsm"]),
    "inverse": (jnp.linalg.inv, (4, 4), ["getrf", "trsm", "trsm"]),
    "many axes": (lambda x: jnp.fft.fftn(x + 0j).real, (2, 2, 2, 2), None),
    "values alone": (lambda x: jnp.linalg.eigvalsh(x @ x.T), (4, 4), ["syevd"]),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.linalg.inv(x), x), (3, 3),
             ["getrf", "trsm", "trsm"] * 3),
    "many rows": (lambda x: lax.linalg.lu(x)[2], (600, 2), ["getrf", "laswp"]),
    "reshaped": (lambda x: jnp.fft.fft(lax.complex(x, x).reshape(4, 6))[1], (24,), ["fft"]),
    "factors alone": (lambda x: lax.linalg.lu(x)[0], (4, 4), ["getrf"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, shape, functions = PROGRAMS[name]
    x = numbers(*shape)
    if functions is None:
        program = program_with_libraries(fun, x)
        assert [type(s) for s in program.steps if isinstance(s, HostStep)] == [HostStep]
    else:
        assert check(fun, x, tolerance=1e-3) == functions


def test_a_reshaped_operand_is_not_copied():
    program = program_with_libraries(lambda z: jnp.fft.fft(z.reshape(4, 6)),
                                     numbers(24, dtype="complex64"))
    assert [type(step) for step in program.steps] == [LibraryStep]


def places(program, function):
    """Of the first step with a function: where its operands and results are."""
    return next((s.inputs, s.outputs) for s in program.steps
                if isinstance(s, LibraryStep) and s.call.function == function)


def test_temporaries_become_the_factors():
    a = numbers(5, 5)
    (x,), (factors, _) = places(program_with_libraries(lambda a: lax.linalg.lu(a)[0], a), "getrf")
    assert x == factors and x.kind == "arena"
    (x,), (factors, *_) = places(program_with_libraries(
        lambda a: lax.linalg.cholesky(a, symmetrize_input=False), a), "potrf")
    assert x.kind == "input" and x != factors  # somebody else's
    program = program_with_libraries(lambda a: (lax.linalg.cholesky(a), a + a.T), a)
    out = InterpretedProgram(program)([a @ a.T + np.eye(5, dtype="f")])
    np.testing.assert_allclose(out[1], 2 * (a @ a.T + np.eye(5)), 1e-4)
    b = lax.linalg.triangular_solve
    check(lambda a: b(a.T + 1, a.T + 1, left_side=True, lower=True), a + 3 * np.eye(5, dtype="f"))


def steps_in(steps):
    """All steps, those of loops too."""
    for step in steps:
        yield step
        if isinstance(step, RepeatedSteps):
            yield from steps_in(step.steps)
        elif isinstance(step, DoubleBufferedSteps):
            yield from steps_in([s for side in step.sides for s in (*side.holds, *side.body)])


def test_loops_with_a_predicate():
    """Newton's method for the root of a matrix, until it changes little."""
    def root(a):
        def step(state):
            x, _, k = state
            y = 0.5 * (x + lax.linalg.triangular_solve(x, a, left_side=True, lower=True))
            return y, abs(y - x).max(), k + 1

        return lax.while_loop(lambda s: s[1] > 1e-6, step, (a, np.float32(1), 0))[0]

    a = np.diag([4, 9, 2, 1]).astype("f")
    program = program_with_libraries(root, a)
    assert any(isinstance(step, DoubleBufferedSteps) for step in program.steps)
    kinds = {type(step) for step in steps_in(program.steps)}
    assert LibraryStep in kinds and HostStep not in kinds
    np.testing.assert_allclose(InterpretedProgram(program)([a])[0], np.sqrt(a), 1e-5)


def test_long_loops(monkeypatch):
    monkeypatch.setattr("functrans.lowering.triton.loops.iterations.MOST_STEPS", 20)

    def spectra(xs):
        def step(carry, x):
            y = jnp.fft.fft(x + carry)
            return carry + 1, y * 2

        return lax.scan(step, np.complex64(0), xs)[1]

    xs = numbers(17, 8, dtype="complex64")
    program = program_with_libraries(spectra, xs)
    assert any(isinstance(step, RepeatedSteps) for step in program.steps)
    assert HostStep not in {type(step) for step in steps_in(program.steps)}
    (out,) = InterpretedProgram(program)([xs])
    np.testing.assert_allclose(out, 2 * np.fft.fft(xs + np.arange(17)[:, None]), 1e-4, 1e-4)


def test_programs_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("functrans.lowering.store.fingerprint.compiler_version", lambda: "1")
    jaxpr = ft.make_jaxpr(lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2))(x := numbers(3, 16)).jaxpr
    place = SavedProgram(jaxpr, Cache(tmp_path), frozenset(), False, HOPPER, "")
    program = write_program(replace.replace_by_library_calls(simplify(jaxpr), lambda name: True))
    place.write(program)
    monkeypatch.setattr(files, "is_there", lambda name: name == "cufft")
    again = place.read()
    assert again.steps == program.steps and again.sources == program.sources
    assert [s.function for s in again.steps if isinstance(s, LibraryStep)] == ["fft", "fft"]
    monkeypatch.setattr(files, "is_there", lambda name: False)
    assert place.read() is None  # it is made anew, for the host
    out, = InterpretedProgram(program)([x])
    np.testing.assert_allclose(out, 2 * x, 1e-4, 1e-4)


def test_every_function_is_of_a_library():
    # collectives have groups, where no GPU is
    assert files.OF_FUNCTIONS.keys() == {*emulated, COLLECTIVE}


@pytest.mark.parametrize("shape", [(5,), (70, 3), (2, 3, 40)], ids=str)
def test_exchanges_of_rows(shape):
    pivots = RNG.integers(0, 40, shape).astype("int32")
    assert check(lambda p: lax.linalg.lu_pivots_to_permutation(p, 45), pivots) == []


def test_gradients():
    a = numbers(4, 4)
    a = a @ a.T + np.eye(4, dtype="f")
    assert "potrf" in check(ft.grad(lambda a: lax.linalg.cholesky(a).sum()), a, tolerance=1e-3)


def test_matrices_without_factors_are_nan():
    a = np.stack([np.eye(3), -np.eye(3)]).astype("f")
    check(lax.linalg.cholesky, a)
    a[1, 0, 0] = np.nan  # of which LAPACK finds values, or none
    (values,) = InterpretedProgram(program_with_libraries(jnp.linalg.eigvalsh, a))([a])
    assert np.isnan(values[1]).all() and np.array_equal(values[0], np.ones(3))


def test_kernels_around_compile():
    for fun, x in ((PROGRAMS["convolution"][0], numbers(3, 16)),
                   (lax.linalg.cholesky, numbers(8, 8, dtype="complex64"))):
        for binary in binaries(program_with_libraries(fun, x)).values():
            assert binary.cubin[:4] == b"\x7fELF"


def test_what_a_missing_library_leaves_to_the_host():
    def fun(x):
        return jnp.fft.fft(x + 0j), jnp.linalg.inv(x)

    missing = lambda name: False
    program = program_with_libraries(fun, numbers(70, 70), is_there=missing)
    assert not any(isinstance(step, LibraryStep) for step in program.steps)
    fft, solve = [use.text for use in host_uses(program.steps, missing)]
    assert fft.startswith("fft runs on the host, between copies: cuFFT cannot be loaded. `pip ")
    assert "pip install nvidia-cufft" in fft and "cuBLAS and cuSOLVER cannot" in solve


def test_without_a_gpu_nothing_is_told():
    with ft.config.use_backend("triton"), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = numbers(5, dtype="complex64")
        np.testing.assert_allclose(ft.jit(jnp.fft.fft)(x), np.fft.fft(x), 1e-5)


def test_where_libraries_are_looked_for(tmp_path, monkeypatch):
    for path in ("cufft/lib/libcufft.so.11", "cu13/lib/libcufft.so.12",
                 "cu13/lib/libcusparse.so.12", "cusolver/lib/libcusolver.so.11",
                 "cublas/lib/libcublasLt.so.12"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    monkeypatch.setattr(files, "_roots", lambda: [tmp_path])
    found = list(files._candidates("cufft"))
    assert found[:2] == [str(tmp_path / "cu13/lib/libcufft.so.12"),
                         str(tmp_path / "cufft/lib/libcufft.so.11")]
    assert found[-1] == "libcufft.so"
    assert files._beside(str(tmp_path / "cusolver/lib/libcusolver.so.11"), "cublasLt") == [
        str(tmp_path / "cublas/lib/libcublasLt.so.12")]
    assert files._beside("libcusolver.so.12", "cublas") == []


def test_a_file_that_is_no_library_is_not_there(tmp_path, monkeypatch):
    path = tmp_path / "cu13/lib/libcufft.so.12"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no library")
    monkeypatch.setattr(files, "_candidates", lambda name: [str(path)])
    files.loaded.cache_clear()
    try:
        assert "libcufft.so.12" in files.loaded("cufft") and not files.is_there("cufft")
    finally:
        files.loaded.cache_clear()
