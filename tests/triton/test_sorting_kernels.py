"""Sorting on a GPU: short rows in registers, longer ones by digits."""

import numpy as np
import pytest

import functrans.numpy as fnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.triton import sorting
from functrans.lowering.triton.device import binaries
from functrans.lowering.triton.interpret import InterpretedProgram
from functrans.lowering.triton.spec import HostStep
from tests.triton.test_programs import kernels_of, program_of

RNG = np.random.default_rng(0)
DTYPES = ["float32", "bfloat16", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32"]


@pytest.fixture(params=["short", "long"])
def rows(request, monkeypatch):
    """How the rows of a test are sorted: in registers, or by digits in small blocks."""
    if request.param == "long":
        monkeypatch.setattr(sorting, "LONGEST_ROW", 0)
        monkeypatch.setattr(sorting, "BLOCK", 64)
    return request.param


def run(fun, *args, hosts=0):
    jaxpr, program, _ = program_of(fun, *args)
    assert sum(isinstance(s, HostStep) for s in program.steps) == hosts
    arrays = [*map(np.asarray, args)]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_array_equal(a.astype("f8"), e.astype("f8"))
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a), np.signbit(e))
    return program


def keys(dtype, shape=(3, 150)):
    """Numbers of a dtype with ties, extremes, both zeros, infinities and NaN."""
    if dtype[0] in "iu":
        x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        x[..., 3:40] = RNG.integers(0, 5, (*shape[:-1], 37))
        x[..., :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        return x
    x = np.round(RNG.normal(size=shape) * 8) / 4
    x[..., :6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-5
    return np.asarray(lax.convert_element_type(x, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_places_and_the_largest(dtype, rows):
    x = keys(dtype)
    run(lambda x: (fnp.sort(x, axis=1), fnp.argsort(x, axis=1), lax.top_k(x, 7)), x)


@pytest.mark.parametrize("shape, axis", [((1,), 0), ((2, 1), 1), ((5, 3, 2), 1), ((70, 2), 0),
                                         ((64,), 0)], ids=str)
def test_shapes_and_axes(shape, axis, rows):
    run(lambda x: (fnp.sort(x, axis=axis), fnp.argsort(x, axis=axis)),
        RNG.normal(size=shape).astype("f"))


def test_what_goes_along(rows):
    x, y, z = RNG.integers(0, 5, 90).astype("i"), RNG.normal(size=90), RNG.normal(size=90) > 0
    run(lambda x, y, z: lax.sort((x, y, z), num_keys=1), x, y, z)


def test_other_sorts_are_the_hosts():
    x, y = RNG.integers(0, 5, 9).astype("i"), RNG.integers(0, 5, 9).astype("i")
    run(lambda x, y: lax.sort((x, y), num_keys=2), x, y, hosts=1)
    run(fnp.sort, x.astype("f8"), hosts=1)


def test_a_few_thousand_in_blocks_of_the_usual_size():
    program = run(lambda x: (fnp.sort(x), fnp.argsort(x)), RNG.normal(size=5000).astype("f"))
    assert len(kernels_of(program)) in (12, 24)


def test_kernels_compile_without_a_gpu():
    for n in (300, 5000):
        _, program, _ = program_of(lambda x: lax.top_k(x, 5), np.zeros((2, n), "f"))
        for binary in binaries(program).values():
            assert binary.cubin[:4] == b"\x7fELF"
