"""Sorting on a GPU: short rows in registers, longer ones by digits; few of the largest."""

import numpy as np
import pytest

import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.sort_scan import radix, sorting, top_k
from functrans.lowering.triton.steps.spec import HostStep
from tests.triton.emulated import kernels_of, program_of

RNG = np.random.default_rng(0)
DTYPES = ["float32", "bfloat16", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32",
          "float64", "int64", "uint64", "bool"]


@pytest.fixture(params=["network", "digits"])
def rows(request, monkeypatch):
    """How the rows of a test are sorted."""
    if request.param == "digits":
        monkeypatch.setattr(sorting, "LONGEST_ROW", 0)
        monkeypatch.setattr(sorting, "LONGEST_OF_WORDS", 0)


def run(fun, *args):
    jaxpr, program, _ = program_of(fun, *args)
    assert not any(isinstance(s, HostStep) for s in program.steps)
    arrays = [*map(np.asarray, args)]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        if a.dtype.kind not in "fV":
            np.testing.assert_array_equal(a, e)
            continue
        np.testing.assert_array_equal(a.astype("f8"), e.astype("f8"))
        np.testing.assert_array_equal(np.signbit(a), np.signbit(e))
    return program


def keys(dtype, shape=(3, 150)):
    """Numbers of a dtype with ties, extremes, both zeros, infinities and NaN."""
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype[0] in "iu":
        x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        x[..., 3:40] = RNG.integers(0, 5, (*shape[:-1], 37))
        x[..., :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        return x
    x = np.round(RNG.normal(size=shape) * 8) / 4
    x[..., :6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-5
    return np.asarray(lax.convert_element_type(x, dtype))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_places_and_the_largest(dtype, rows):
    x = keys(dtype)
    run(lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=1), lax.top_k(x, 7),
                   lax.top_k(x, 120)), x)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype, n", [*((dtype, 600) for dtype in DTYPES), ("float32", 1900)])
def test_rows_of_several_tiles(dtype, n, monkeypatch):
    monkeypatch.setattr(sorting, "LONGEST_ROW", 0)
    monkeypatch.setattr(sorting, "LONGEST_OF_WORDS", 0)
    monkeypatch.setattr(radix, "SLOTS", {1: 1, 2: 1})
    monkeypatch.setattr(radix, "ADDED", 2)
    run(lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=1), lax.top_k(x, 300)),
        keys(dtype, (2, n)))


@pytest.mark.parametrize("shape, axis", [((1,), 0), ((2, 1), 1), ((5, 3, 2), 1), ((70, 2), 0),
                                         ((64,), 0)], ids=str)
def test_shapes_and_axes(shape, axis, rows):
    run(lambda x: (jnp.sort(x, axis=axis), jnp.argsort(x, axis=axis)),
        RNG.normal(size=shape).astype("f"))


def test_what_goes_along(rows):
    x, y, z = RNG.integers(0, 5, 90).astype("i"), RNG.normal(size=90), RNG.normal(size=90) > 0
    run(lambda x, y, z: lax.sort((x, y, z), num_keys=1), x, y, z)


def test_several_keys(rows):
    x, y, z = (RNG.integers(0, 3, 90).astype(t) for t in ("i1", "f8", "i4"))
    run(lambda x, y, z: (lax.sort((x, y, z), num_keys=2), lax.sort((z, y, x), num_keys=3),
                         lax.sort((y, y), num_keys=2)), x, y, z)


def test_the_largest_of_what_tiles_found(monkeypatch):
    monkeypatch.setattr(top_k, "TILE", 32)
    x = RNG.integers(0, 40, (3, 300)).astype("f")
    program = run(lambda x: lax.top_k(x, 5), x)
    assert kernels_of(program) == ["selected", "selected", "largest"]


@pytest.mark.parametrize("n, kernels", [(200, 1), (5000, 1), (6300, 3 * 4)])
def test_launches_of_rows_of_the_usual_sizes(n, kernels):
    program = run(jnp.sort, RNG.normal(size=n).astype("f"))
    assert len(kernels_of(program)) == kernels
    assert len(program.sources) == 1 + min(kernels, 6)  # bytes between the ends are one function


def test_kernels_compile_without_a_gpu():
    for n in (200, 7000):
        _, program, _ = program_of(lambda x: (lax.top_k(x, 5), jnp.argsort(x)),
                                   np.zeros((2, n), "f"))
        for binary in binaries(program).values():
            assert binary.cubin[:4] == b"\x7fELF"
            assert binary.spills == 0
