"""Wrong calls of grad, jvp, vjp, vmap and their relatives, by the text of the message."""

from collections.abc import Callable
from typing import Any

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import (
    ArgumentError,
    AxisNameError,
    AxisSizeError,
    DTypeError,
    IntegerGradError,
    NonArrayError,
    NonScalarGradError,
    NotDifferentiableError,
    ShapeError,
    TreeMismatchError,
)
from tests.errors.expect import caught

x, ints, m = jnp.arange(3.0), jnp.arange(3), jnp.ones((3, 4))
Case = tuple[str, type, Callable[[], Any], list[str]]

GRAD: list[Case] = [
    ("non-scalar", NonScalarGradError, lambda: ft.grad(jnp.sin)(x),
     ["sin returned f32[3]", "Jacobian", ".sum()", "jacrev"]),
    ("a tree", NonScalarGradError, lambda: ft.grad(lambda v: (v, v))(1.0),
     ["one scalar", "(*, *)", "has_aux=True"]),
    ("returns None", NonScalarGradError, lambda: ft.grad(lambda v: None)(1.0), ["None"]),
    ("returns text", NonArrayError, lambda: ft.grad(lambda v: "loss")(1.0),
     ["returned 'loss', of type str", "has_aux"]),
    ("integer", IntegerGradError, lambda: ft.grad(lambda v: v.sum())(ints),
     ["int32", "1.0 instead of 1", "allow_int=True"]),
    ("integer result", NonScalarGradError, lambda: ft.grad(lambda v: v.astype(int))(1.0),
     ["i32[]", "piecewise constant"]),
    ("non-array", NonArrayError, lambda: ft.grad(lambda v: v)("hello"),
     ["argument 0 is 'hello', of type str", "lambda x: fun(x, other)"]),
    ("a leaf", NonArrayError, lambda: ft.grad(lambda p: p["w"])({"w": 1.0, "name": "net"}),
     ["argument 0 at ['name'] is 'net'"]),
    ("a value", ArgumentError, lambda: ft.grad(jnp.sin(1.0)),
     ["takes a function", "grad(fun)(x), not grad(fun(x))"]),
    ("argnums out of range", ArgumentError, lambda: ft.grad(jnp.sin, argnums=1)(1.0),
     ["argnums=1", "1 positional argument"]),
    ("argnums by name", ArgumentError, lambda: ft.grad(jnp.sin, argnums="x")(1.0),
     ["argnums must be an int or a tuple of ints, got 'x'"]),
    ("complex", NonScalarGradError, lambda: ft.grad(lambda z: z * z)(1j),
     ["real scalar", "c64[]", "holomorphic=True"]),
    ("real where holomorphic", IntegerGradError,
     lambda: ft.grad(lambda z: z * z, holomorphic=True)(1.0),
     ["needs complex arguments", "float32"]),
    ("aux", ArgumentError, lambda: ft.grad(lambda v: v * v, has_aux=True)(1.0),
     ["returns a pair (output, auxiliary), got f32[]", "return loss, aux"]),
]

VMAP: list[Case] = [
    ("tree of in_axes", TreeMismatchError,
     lambda: ft.vmap(lambda p, v: v, in_axes=({"w": 0}, 0))({"b": x}, x),
     ["vmap: in_axes", "missing 'w'; unexpected 'b'", "({'w': *}, *)"]),
    ("length of in_axes", ArgumentError,
     lambda: ft.vmap(lambda p, v: v, in_axes=(0, 0, 0))(x, x),
     ["in_axes has 3 entries", "2 positional arguments", "in_axes=(0, 0)"]),
    ("in_axes of text", ArgumentError, lambda: ft.vmap(jnp.sin, in_axes="0")(x), ["ints or None"]),
    ("sizes", AxisSizeError, lambda: ft.vmap(jnp.add)(x, jnp.ones(4)),
     ["argument 0 is f32[3] with size 3", "argument 1 is f32[4] with size 4", "in_axes"]),
    ("sizes in trees", AxisSizeError,
     lambda: ft.vmap(lambda p, q: q)({"w": x, "b": m}, q=jnp.ones(4)),
     ["argument 0 at ['w'] is f32[3]", "keyword argument q is f32[4] with size 4"]),
    ("axis_size differs", AxisSizeError, lambda: ft.vmap(jnp.sin, axis_size=4)(x),
     ["axis_size=4", "size 3"]),
    ("axis_size negative", ArgumentError, lambda: ft.vmap(lambda: 1.0, axis_size=-1),
     ["axis_size must be a non-negative int, got -1"]),
    ("scalar", ShapeError, lambda: ft.vmap(jnp.sin)(1.0), ["axis 0 of argument 0", "f32[]"]),
    ("nothing mapped", AxisSizeError, lambda: ft.vmap(jnp.sin, in_axes=None)(1.0),
     ["no argument is mapped", "axis_size=n"]),
    ("out_axes None", ArgumentError, lambda: ft.vmap(jnp.sin, out_axes=None)(x),
     ["out_axes is None", "depends on a mapped argument", "lax.psum"]),
    ("out_axes tree", TreeMismatchError,
     lambda: ft.vmap(lambda v: (v, v), out_axes=(0, 0, 0))(x), ["tuple of 3", "tuple of 2"]),
    ("out_axes range", ShapeError, lambda: ft.vmap(jnp.sin, out_axes=3)(x),
     ["axis 3 of the output", "1 dimension"]),
    ("chunks with a name", ArgumentError,
     lambda: ft.vmap(jnp.sin, axis_name="i", chunk_size=2)(x), ["exclude each other"]),
    ("chunks of nothing", ArgumentError, lambda: ft.vmap(jnp.sin, chunk_size=0)(x),
     ["chunk_size must be a positive int or \"auto\", got 0"]),
    ("of a number", ArgumentError, lambda: ft.vmap(3), ["vmap takes a function, got 3"]),
    ("collective outside", AxisNameError, lambda: lax.psum(x, "i"),
     ["no axis is called 'i'", "bound: none", "axis_name='i'"]),
    ("collective of another axis", AxisNameError,
     lambda: ft.vmap(lambda v: lax.pmean(v, "j"), axis_name="i")(x), ["'j'", "bound: 'i'"]),
    ("index of no axis", AxisNameError, lambda: ft.jit(lambda: lax.axis_index("i"))(), ["'i'"]),
]

LINEAR: list[Case] = [
    ("jvp shapes", ShapeError, lambda: ft.jvp(jnp.sin, (x,), (m,)), ["f32[3,4]", "f32[3]"]),
    ("jvp structure", TreeMismatchError, lambda: ft.jvp(jnp.sin, (x,), (x, x)),
     ["tangents", "tuple of 1", "tuple of 2"]),
    ("jvp no tuple", ArgumentError, lambda: ft.jvp(jnp.sin, x, x),
     ["primals must be a tuple", "(x,)"]),
    ("jvp dtype", DTypeError, lambda: ft.jvp(jnp.sin, (x,), (x.astype("float64"),)),
     ["f64[3]", "f32[3]", "astype('float32')"]),
    ("jvp integer", DTypeError, lambda: ft.jvp(lambda v: v, (ints,), (ints,)), ["float0"]),
    ("cotangent structure", TreeMismatchError,
     lambda: ft.vjp(lambda v: {"out": v}, x)[1]({"o": x}), ["'out'", "'o'", "cotangent"]),
    ("cotangent shape", ShapeError, lambda: ft.vjp(jnp.sin, x)[1](m), ["f32[3,4]", "f32[3]"]),
    ("cotangent dtype", DTypeError, lambda: ft.vjp(jnp.sin, x)[1](ints), ["i32[3]", "float32"]),
    ("cotangents", ArgumentError, lambda: ft.vjp(lambda v: (v, v), x)[1](x, x),
     ["one cotangent, got 2", "pull((ct_0, ct_1))"]),
    ("cotangent of text", NonArrayError, lambda: ft.vjp(jnp.sin, x)[1]("s"), ["'s', of type str"]),
    ("linearize", ShapeError, lambda: ft.linearize(jnp.sin, x)[1](m), ["f32[3,4]"]),
    ("linearize structure", TreeMismatchError, lambda: ft.linearize(jnp.sin, x)[1](x, x),
     ["tangents"]),
    ("not linear", NotDifferentiableError, lambda: ft.linear_transpose(jnp.sin, x)(x),
     ["sin", "not linear"]),
]


@pytest.mark.parametrize("case", GRAD + VMAP + LINEAR, ids=lambda case: case[0])
def test_message(case: Case) -> None:
    _, cls, call, texts = case
    caught(call, cls, *texts)


def test_a_call_with_too_many_arguments_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match=r"lambda.* takes 1 positional argument but 2 were given"):
        ft.grad(lambda v: v)(1.0, 2.0)
