"""What the messages of control flow say."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import (
    ArgumentError,
    AxisSizeError,
    BranchTypeError,
    CarryTypeError,
    DTypeError,
    ShapeError,
)


def message(error, call):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_carry_that_changes_shape():
    def body(carry, x):
        return {"a": (carry["a"][0], carry["a"][1][:2])}, None

    text = message(CarryTypeError,
                   lambda: lax.scan(body, {"a": (1.0, jnp.ones(3))}, length=2))
    assert "scan: body changes the type of what it carries" in text
    assert "at ['a'][1] is f32[3] before and f32[2] after" in text
    assert "test_errors.py" in text


def test_carry_that_changes_dtype():
    text = message(CarryTypeError, lambda: lax.while_loop(
        lambda c: c < 3, lambda c: c.astype("float32"), jnp.int32(0)))
    assert "while_loop" in text and "the carry itself is i32[] before and f32[] after" in text
    assert "Fix: start from x.astype('float32'), or return x.astype('int32')" in text


def test_carry_of_fori_loop_is_named_without_the_counter():
    for bound in (3, None):
        def loop(n):
            return lax.fori_loop(0, n, lambda i, c: {"w": c["w"][:1]}, {"w": jnp.ones(2)})

        call = (lambda: loop(3)) if bound else (lambda: ft.jit(loop)(3))
        assert "fori_loop" in (text := message(CarryTypeError, call))
        assert "at ['w'] is f32[2] before and f32[1] after" in text


def test_carry_that_changes_structure():
    text = message(CarryTypeError, lambda: lax.scan(
        lambda c, x: ((c[0], c[1], x), None), (1.0, 2.0), jnp.ones(3)))
    assert "a tuple of 2 was expected and a tuple of 3 found" in text


def test_scan_body_without_pair():
    text = message(ArgumentError, lambda: lax.scan(lambda c, x: c, 0.0, jnp.ones(3)))
    assert "must return a pair (carry, y), got an array" in text
    assert "Fix: return carry, None" in text


def test_scan_sizes():
    text = message(AxisSizeError, lambda: lax.scan(
        lambda c, x: (c, None), 0.0, {"a": jnp.ones(3), "b": jnp.ones((4, 2))}))
    assert "xs['a'] has 3, xs['b'] has 4" in text
    text = message(AxisSizeError, lambda: lax.scan(lambda c, x: (c, None), 0.0, jnp.ones(3),
                                                   length=5))
    assert "length is 5, xs has 3" in text
    assert "no length" in message(AxisSizeError, lambda: lax.scan(lambda c, x: (c, None), 0.0))
    text = message(ShapeError, lambda: lax.scan(lambda c, x: (c, None), 0.0, (1.0, jnp.ones(2))))
    assert "xs[0] is the scalar f32[]" in text


def test_branches_that_differ():
    def double(x):
        return {"y": x * 2}

    def halves(x):
        return {"y": x[:1]}

    text = message(BranchTypeError, lambda: lax.cond(True, double, halves, jnp.ones(2)))
    assert "at ['y'] (f32[1] from halves, f32[2] from double)" in text
    text = message(BranchTypeError, lambda: lax.cond(True, double, lambda x: x, jnp.ones(2)))
    assert "cond branch outputs must have the same pytree structure" in text
    assert "return different structures" in text
    text = message(BranchTypeError, lambda: lax.switch(0, [
        lambda x: x, lambda x: x.astype("int32")], jnp.ones(2)))
    assert "f32[2]" in text and "i32[2]" in text


def test_predicates():
    assert "not a scalar" in message(ShapeError, lambda: lax.cond(
        jnp.array([True, False]), lambda: 1, lambda: 2))
    assert "boolean scalar, got f32[]" in message(DTypeError, lambda: lax.while_loop(
        lambda c: c, lambda c: c, 1.0))
    assert "boolean scalar, got bool[2]" in message(ShapeError, lambda: lax.while_loop(
        lambda c: c > 0, lambda c: c, jnp.ones(2)))
    assert "it counts branches" in message(DTypeError, lambda: lax.switch(
        1.0, [lambda: 1, lambda: 2]))
    assert "not an integer scalar" in message(DTypeError, lambda: lax.fori_loop(
        0.0, 3, lambda i, c: c, 0))
    assert "no branches" in message(ArgumentError, lambda: lax.switch(0, []))


def test_not_callable():
    for call in (lambda: lax.scan(1, 0.0, length=2), lambda: lax.cond(True, 1, 2),
                 lambda: lax.fori_loop(0, 1, 2, 3), lambda: lax.map(1, jnp.ones(2))):
        assert "takes a function" in message(ArgumentError, call)


def test_associative_scan_sizes():
    text = message(AxisSizeError, lambda: lax.associative_scan(
        lambda a, b: a, (jnp.ones(3), jnp.ones(4))))
    assert "elems[0] has 3, elems[1] has 4" in text


def test_unroll_of_a_traced_bound():
    text = message(ArgumentError, lambda: ft.jit(
        lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2))(3))
    assert "unroll needs bounds that are known" in text
