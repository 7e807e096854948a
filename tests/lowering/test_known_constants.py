"""Small arrays that a program closes over are numbers of its text."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.loops.expr import ExprBuilder

RNG = np.random.default_rng(0)
TABLE = np.array([2, 0, 1], np.int32)
WEIGHT = np.array([1.0, -0.5, 3.0], np.float32)


def turned(x):
    """Indices that are known say which component is read."""
    return lax.fori_loop(0, 3, lambda _, s: s[TABLE] * WEIGHT + 1, x)


def test_values_and_gradients_are_those_of_the_array():
    x = RNG.normal(size=(50, 3)).astype("f")
    for fun in (ft.vmap(turned), ft.vmap(ft.grad(lambda x: jnp.sum(turned(x) ** 2)))):
        np.testing.assert_allclose(ft.jit(fun)(x), fun(x), rtol=1e-5)


def test_a_program_keeps_the_values_that_it_was_traced_with():
    table = np.array([1.0, 2.0], np.float32)
    f = ft.jit(lambda x: x * table)
    before = np.asarray(f(np.ones(2, "f")))
    table[:] = 7
    np.testing.assert_array_equal(f(np.ones(2, "f")), before)


def test_small_constants_are_no_operands():
    assert "constant" in str(ft.make_jaxpr(ft.jit(turned))(np.ones(3, "f")))


def test_arrays_that_were_put_somewhere_and_large_ones_stay_operands():
    large = np.ones(1000, "f")
    text = str(ft.make_jaxpr(ft.jit(lambda x: x + large))(np.ones(1000, "f")))
    assert "constant" not in text


@pytest.mark.parametrize("dtype", ["f32", "i32", "u8", "f64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "max", "min"])
def test_folded_operations_have_the_bits_of_numpy(name, dtype):
    kind = {"f": np.float32, "i": np.int32, "u": np.uint8}[dtype[0]]
    kind = np.float64 if dtype == "f64" else kind
    of = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum,
          "min": np.minimum}[name]
    s = ExprBuilder(lambda _: False)
    for a, b in ((250, 7), (3, 0), (0, 5)):
        e = s.op(name, s.const(kind(a), dtype), s.const(kind(b), dtype))
        with np.errstate(over="ignore"):
            expected = of(np.asarray(a, kind), np.asarray(b, kind))
        assert e.op == "const"
        assert np.asarray(e.aux).tobytes() == np.asarray(expected, kind).tobytes()


@pytest.mark.parametrize("name, value, is_neutral", [
    ("mul", 1.0, True), ("add", -0.0, True), ("add", 0.0, False), ("sub", 0.0, True),
    ("sub", -0.0, False), ("div", 1.0, True), ("mul", 0.0, False)])
def test_what_changes_no_bit_is_left_out(name, value, is_neutral):
    s = ExprBuilder(lambda _: False)
    x = s._make("local", (), "f32", "x", frozenset())
    assert (s.op(name, x, s.const(np.float32(value), "f32")) is x) == is_neutral
