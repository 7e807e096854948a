"""Cumulative reductions along an axis as Triton kernels."""

import numpy as np
import pytest

from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.device import binaries
from tests.triton.test_programs import kernels_of, program_of

RNG = np.random.default_rng(0)
FUNCTIONS = {f.__name__: f for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin,
                                     lax.cumlogsumexp)}


def run(fun, x):
    jaxpr, program, _ = program_of(fun, x)
    (a,), (e,) = InterpretedProgram(program)([x]), interpret(jaxpr, [x])
    assert (a.shape, a.dtype) == (e.shape, e.dtype)
    return a.astype("f8"), e.astype("f8"), program


@pytest.mark.one_in(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_along_each_axis(name, axis, reverse):
    x = RNG.uniform(0.5, 1.5, (3, 150, 5)).astype("f")
    a, e, program = run(lambda x: FUNCTIONS[name](x, axis, reverse=reverse), x)
    np.testing.assert_allclose(a, e, 1e-4)
    assert len(kernels_of(program)) in (1, 3)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int32", "uint8",
                                   "int64"])
def test_dtypes(dtype):
    x = RNG.integers(-4, 5, (3, 70)).astype("f8")
    x = np.asarray(lax.convert_element_type(abs(x) if dtype[0] == "u" else x, dtype))
    for function in (lax.cumsum, lax.cummax, lax.cumprod):
        a, e, _ = run(lambda x, f=function: f(x, 1), x)
        np.testing.assert_allclose(a, e, 2e-2 if dtype.endswith("16") else 1e-12)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape, axis, kernels", [
    ((2, 20000), 1, 3), ((140, 16500), 1, 1), ((600, 40), 0, 3), ((133, 150, 3), 1, 1),
    ((2, 9000), 1, 1), ((300000,), 0, 3)], ids=str)
def test_chunks_and_pieces(shape, axis, kernels, reverse):
    x = RNG.integers(-9, 10, shape).astype("f")  # sums of which are exact
    a, e, program = run(lambda x: lax.cumsum(x, axis, reverse=reverse), x)
    np.testing.assert_array_equal(a, e)
    assert len(kernels_of(program)) == kernels


def test_what_is_not_a_number():
    x = np.array([[1, -np.inf, 2, np.nan, 3], [-np.inf, -np.inf, 1, np.inf, 2]], "f")
    for function in FUNCTIONS.values():
        for reverse in (False, True):
            a, e, _ = run(lambda x, f=function, r=reverse: f(x, 1, reverse=r), x)
            np.testing.assert_allclose(a, e, 1e-6)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_kernels_compile_without_a_gpu(name, dtype):
    x = np.asarray(lax.convert_element_type(np.ones((4, 300)), dtype))
    for axis in (0, 1):
        _, program, _ = program_of(lambda x, k=axis: FUNCTIONS[name](x, k), x)
        assert all(b.cubin[:4] == b"\x7fELF" for b in binaries(program).values())


def test_rows_are_read_and_written_sixteen_bytes_at_a_time():
    _, program, _ = program_of(lambda x: lax.cumsum(x, 1), np.zeros((8192, 8192), "f"))
    (binary,) = binaries(program).values()
    assert "ld.global.v4" in binary.ptx
    assert "st.global.v4" in binary.ptx
