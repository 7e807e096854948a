"""Shapes that do not fit: both shapes, the operation and the user's line, in every transform."""

from collections.abc import Callable
from typing import Any

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import DTypeError, ShapeError
from tests.errors.expect import caught

BAD = jnp.ones((5, 6))
OPERATIONS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "+": (lambda a: a + BAD, ["add", "(5, 6)", "do not broadcast", "must agree or be 1"]),
    "reflected": (lambda a: BAD * a, ["multiply", "(5, 6)"]),
    "@": (lambda a: a @ BAD, ["matmul", "(5, 6)", "4 elements of the first and 5"]),
    "reshape": (lambda a: a.reshape(5, 5), ["reshape", "(5, 5)", "elements"]),
    "concatenate": (lambda a: jnp.concatenate([a, jnp.ones((2, 2, 2))]),
                    ["concatenate", "(2, 2, 2)", "axis 0", "stack"]),
    "stack": (lambda a: jnp.stack([a, BAD]), ["stack", "(5, 6)"]),
    "broadcast_to": (lambda a: jnp.broadcast_to(a, (5, 6)), ["broadcast_to", "(5, 6)"]),
    "where": (lambda a: jnp.where(a > 0, a, BAD), ["where", "(5, 6)"]),
    "einsum": (lambda a: jnp.einsum("...j,jk->...k", a, BAD), ["'j'", "4 and 5"]),
    "lax.add": (lambda a: lax.add(a, BAD), ["add", "f32[5,6]"]),
}
TRANSFORMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "eager": lambda f, a: f(a),
    "jit": lambda f, a: ft.jit(f)(a),
    "jaxpr": lambda f, a: ft.make_jaxpr(f)(a),
    "grad": lambda f, a: ft.grad(lambda v: f(v).sum())(a),
    "jvp": lambda f, a: ft.jvp(f, (a,), (a,)),
    "vmap": lambda f, a: ft.vmap(f)(jnp.stack([a, a])),
    "vmap of grad in jit": lambda f, a: ft.jit(ft.vmap(ft.grad(lambda v: f(v).sum())))(
        jnp.stack([a, a])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_both_shapes_and_the_line(name: str, transform: str) -> None:
    operation, texts = OPERATIONS[name]
    run = TRANSFORMS[transform]
    text = caught(lambda: run(operation, jnp.ones((3, 4))), ShapeError, *texts)
    assert "(3, 4)" in text or "f32[3,4]" in text or name == "einsum"
    # the line of the operation, not of the transform
    assert f":{operation.__code__.co_firstlineno}, in <lambda>" in text


def test_operations_of_lax_neither_convert_nor_promote_ranks_eagerly_either() -> None:
    column, row, ints = jnp.ones((3, 1)), jnp.ones((2, 3)), jnp.arange(3)
    caught(lambda: lax.add(column, row), ShapeError, "f32[3,1]", "f32[2,3]")
    caught(lambda: lax.max(jnp.ones(3), row), ShapeError, "f32[3]", "f32[2,3]")
    caught(lambda: lax.mul(jnp.ones(3), ints), DTypeError, "f32[3] and i32[3]", "one dtype")
    caught(lambda: lax.sin(ints), DTypeError, "sin does not take int32", 'astype("float32")')


def test_a_multi_line_expression_is_shown_whole() -> None:
    def loss(a: Any) -> Any:
        return (a
                + 1.0
                + BAD)

    text = caught(lambda: ft.grad(lambda a: loss(a).sum())(jnp.ones((3, 4))), ShapeError)
    assert "return (a\n" in text and "+ BAD" in text
