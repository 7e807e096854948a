"""Mistakes of first programs: what the message names, and the fix that it gives."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import (
    ArgumentError,
    CarryTypeError,
    ConcretizationError,
    DTypeError,
    IntegerOverflowError,
    NonArrayError,
    ShapeError,
    TreeMismatchError,
)
from tests.errors.expect import caught


def grows(i, x):
    return jnp.append(x, 1.0)


MISTAKES = {
    "the body of a loop is named": (
        CarryTypeError,
        lambda: lax.fori_loop(0, 3, grows, jnp.ones(2)), "fori_loop: grows changes the type", ""),
    "also where bounds are traced": (
        CarryTypeError, lambda: ft.jit(lambda n: lax.fori_loop(0, n, grows, jnp.ones(2)))(3),
        "fori_loop: grows changes the type", ""),
    "an int beside int8": (
        IntegerOverflowError,
        lambda: jnp.ones(3, "int8") + 300, "the Python int 300 does not fit int8", '"int16"'),
    "an int of the default dtype": (
        IntegerOverflowError,
        lambda: jnp.array(2**40), "does not fit int32", 'ft.default_dtypes(int_dtype="int64")'),
    "a shape in two arguments": (
        DTypeError, lambda: jnp.zeros(2, 3), "no dtype can be told from 3", "zeros((2, 3))"),
    "arrays that are no sequence": (
        ArgumentError,
        lambda: jnp.stack(jnp.ones(3), jnp.ones(3)), "axis must be an int", "[a, b]"),
    "a list beside an array": (
        NonArrayError, lambda: jnp.ones(2) - [1.0, 2.0], "(subtract) got a list",
        "functrans.numpy.asarray(x)"),
    "an array times a list": (
        NonArrayError, lambda: jnp.ones(2) * [1.0, 2.0], "(multiply) got a list", "asarray(x)"),
    "a list times a traced matrix": (
        NonArrayError, lambda: ft.jit(lambda w: [1.0, 2.0] @ w)(jnp.ones((2, 2))),
        "(matmul) got a list", "functrans.numpy.asarray(x)"),
    "rows of two lengths": (
        ArgumentError,
        lambda: jnp.array([[1, 2], [3]]), "an inhomogeneous shape", "pad the short ones"),
    "two trees": (
        TreeMismatchError, lambda: ft.tree.map(jnp.add, {"w": 1.0}, {"v": 1.0}),
        "tree 2 has another structure than the first", "the same containers and keys"),
    "vmap of a number": (
        ShapeError, lambda: ft.vmap(jnp.sin)(1.0), "asks for axis 0 of argument 0", "x[None]"),
    "vmap along an axis that is not there": (
        ShapeError,
        lambda: ft.vmap(jnp.sin, in_axes=2)(jnp.ones((3, 3))), "asks for axis 2", "from -2 to 1"),
    "a word that a setting does not take": (
        ArgumentError,
        lambda: ft.config.matmul_precision("exact"), "matmul_precision is one of", ""),
    "math in a jitted function": (
        ConcretizationError,
        lambda: ft.jit(lambda x: math.sin(x))(1.0), "float() of a traced f32[]",
        "functrans.numpy.sin for math.sin"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_helps(mistake):
    cls, run, says, fix = MISTAKES[mistake]
    text = caught(run, cls, says)
    assert fix in text.partition("  Fix: ")[2]


DERIVATIVES = {
    "grad": lambda f: ft.grad(f)(1.5),
    "jvp": lambda f: ft.jvp(f, (1.5,), (1.0,)),
    "grad of grad": lambda f: ft.grad(ft.grad(f))(1.5),
    "vmap of grad": lambda f: ft.vmap(ft.grad(f))(np.ones(2)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("function", [
    math.sin, lambda x: x * float(x), lambda x: x * complex(x).real, lambda x: x * math.floor(x)])
def test_a_number_without_its_derivative_is_refused(derivative, function):
    """The derivative of math.sin(x) was 0."""
    with pytest.raises(ConcretizationError):
        DERIVATIVES[derivative](function)


def test_numbers_that_are_constants_by_themselves_are_known():
    def f(x):
        scale = float(lax.stop_gradient(x)) + x.item() - x.item()
        rounds = int(x) if x > 1 else 1
        return x * scale * rounds, f"{x:.2f}"

    assert float(ft.grad(lambda x: f(x)[0])(2.0)) == 4.0
    assert f(jnp.float32(2.0))[1] == "2.00"
    assert float(ft.grad(lambda x: x * float(x.astype("int32")))(2.5)) == 2.0


def test_a_list_is_repeated_by_a_number():
    assert [0] * jnp.array(3) == [0, 0, 0] and jnp.ones(2).__add__(()) is NotImplemented


def double(x):
    return 2 * x


def test_what_transforms_return_says_what_it_is():
    traced = ft.jit(double).trace(1.5)
    stages = [traced, traced.lower(), traced.lower().compile()]
    assert [repr(stage) for stage in stages] == [
        f"{name}(double: (f32[]) -> (f32[]))" for name in ("Traced", "Lowered", "Compiled")]
    assert repr(ft.custom_jvp(double)) == "<custom_jvp of double(x)>"
    assert repr(ft.custom_vjp(double)) == "<custom_vjp of double(x)>"
    assert repr(ft.custom_batching.custom_vmap(double)) == "<custom_vmap of double(x)>"
