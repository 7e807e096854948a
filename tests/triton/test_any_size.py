"""Kernels whose sizes are arguments: right at every size, and the same text at many."""

import re

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray
from functrans.core.evaluate import interpret
from functrans.core.staging import stage
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import Launch
from tests.laws.primitives import Case, all_cases
from tests.laws.test_primitive_laws import assert_same
from tests.triton.test_programs import PROGRAMS

RNG = np.random.default_rng(0)


def any_size(fun, *args):
    """The program of a function for all sizes, after a comparison of its results at these."""
    closed = ft.make_jaxpr(fun)(*args)
    jaxpr = simplify(closed.jaxpr.hoist_consts())
    program = write_program(jaxpr, any_size=True)
    arrays = [*map(np.asarray, closed.consts), *map(np.asarray, ft.tree.leaves(args))]
    for a, e in zip(InterpretedProgram(program)(arrays), interpret(jaxpr, arrays), strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        assert_same([a], [e], 2e-2 if a.dtype.name == "bfloat16" else 2e-4)
    return program


@pytest.mark.one_in(2)
@pytest.mark.one_sample_in(5)
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_every_primitive(case: Case):
    any_size(case.outs, *case.args)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, args, _ = PROGRAMS[name]
    any_size(fun, *args)


MANY = {
    "elementwise": (lambda x, y: jnp.sin(x) * y, [((n, m), (n, m)) for n, m in (
        (3, 5), (50, 131), (1, 9001), (7, 7))]),
    "beside a row": (lambda x, y: x + y, [((n, m), (m,)) for n, m in (
        (3, 70), (1000, 90), (70, 202))]),
    "sums of rows": (lambda x: x.sum(1), [((n, m),) for n, m in ((3, 70), (1000, 90), (70, 122))]),
    "sums of columns": (lambda x: x.sum(0), [((n, m),) for n, m in ((12, 70), (15, 90), (9, 202))]),
    "running sums": (lambda x: jnp.cumsum(x, 1), [((n, m),) for n, m in (
        (9, 70), (12, 90), (40, 202))]),
    "running sums down": (lambda x: jnp.cumsum(x, 0), [((n, m),) for n, m in (
        (70, 40), (90, 33), (120, 100))]),
    "softmax": (ft.nn.softmax, [((n, m),) for n, m in ((3, 702), (40, 1001), (2, 513))]),
    "transpose": (lambda x: x.T + 1, [((n, m),) for n, m in ((41, 70), (99, 33))]),
    "some rows": (lambda x, i: x[i], [((n, m), (k,)) for n, m, k in (
        (9, 70, 3), (30, 90, 21), (5, 202, 99))]),
    "from an index on": (lambda x: x[2:-1, 3:], [((n, m),) for n, m in ((9, 81), (30, 99))]),
    "product": (lambda x, y: x @ y, [((n, k), (k, m)) for n, k, m in ((60, 70, 50), (40, 90, 33))]),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MANY)
def test_sizes_of_one_class_have_one_text(name):
    fun, sizes = MANY[name]
    texts = set()
    for shapes in sizes:
        args = [RNG.normal(size=s).astype("f") for s in shapes]
        if name == "some rows":
            args[1] = RNG.integers(0, shapes[0][0], shapes[1]).astype("i4")
        texts.add(tuple(any_size(fun, *args).sources))
    assert len(texts) == 1


@pytest.mark.parametrize("length, is_wide", [(5000, True), (5004, True), (5001, False)])
def test_loads_are_four_wide_where_sizes_are_multiples_of_four(length, is_wide):
    program = any_size(ft.nn.softmax, RNG.normal(size=(4, length)).astype("f"))
    (binary,) = binaries(program).values()
    assert bool(re.search(r"ld\.global\S*\.v4", binary.ptx)) == is_wide


@pytest.mark.parametrize("length", [300, 1100, 5000])
def test_rows_in_registers_have_less_than_twice_the_places_they_need(length):
    texts = any_size(ft.nn.softmax, RNG.normal(size=(4, length)).astype("f")).sources
    (places,) = {int(n) for text in texts
                 for n in re.findall(r"i = 0 \+ tl.arange\(0, (\d+)\)", text)}
    assert length <= places < 2 * length


def test_loads_are_wide_where_sizes_are_multiples_of_sixteen():
    def divisible(*shape):
        program = any_size(lambda x, y: x + y, np.ones(shape, "f"), np.ones(shape[1:], "f"))
        (launch,) = [s for s in program.steps if isinstance(s, Launch)]
        return [d for d, t in zip(launch.divisible, launch.types, strict=True) if t[0] != "*"]

    assert any(divisible(37, 64))  # the number of rows does not matter
    assert not any(divisible(64, 37))


@pytest.mark.parametrize("shape", [(2**31 + 5,), (2**16, 2**16)])
@pytest.mark.parametrize("any_size", [False, True])
def test_places_beyond_31_bits_are_wide(shape, any_size):
    closed = stage(lambda x: [x + x, x.sum(0)], [ShapedArray(shape, np.dtype(np.int8))])
    (text,) = write_program(simplify(closed.jaxpr), any_size).sources
    kernels = text.count("def k_")
    assert text.count("pid = tl.program_id(0).to(tl.int64)") == kernels


def test_sizes_beyond_31_bits_are_wide_arguments():
    closed = stage(lambda x: [x + x], [ShapedArray((2**31 + 5,), np.dtype(np.int8))])
    (launch,) = write_program(simplify(closed.jaxpr), any_size=True).steps
    assert launch.arguments[launch.types.index("i64")] == 2**31 + 5


@pytest.mark.parametrize("fun", [lambda x, i, v: x.argmax(0), lambda x, i, v: x.at[i].set(v)],
                         ids=["places of extremes", "the last of several"])
@pytest.mark.parametrize("any_size", [False, True])
def test_kernels_over_more_than_31_bits_of_elements_compile(fun, any_size):
    x, i = ShapedArray((2**16, 2**16), np.dtype("f")), ShapedArray((2**16,), np.dtype(np.int32))
    closed = stage(lambda *xs: [fun(*xs)], [x, i, x])
    program = write_program(simplify(closed.jaxpr.hoist_consts()), any_size)
    assert all(b.cubin[:4] == b"\x7fELF" for b in binaries(program).values())
