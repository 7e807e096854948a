"""The tape in the runtime: what it records by itself is what the type rules say."""

import gc
import weakref

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray, operand_avals
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.jaxpr import Jaxpr
from functrans.core.trace import Trace
from functrans.primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from functrans.primitives.differentiable import add_any_p
from functrans.transforms.checks.eager import CheckTrace
from functrans.transforms.jvp import JVPTrace
from functrans.transforms.linear import LinearTrace

OPERATIONS = {"mul": mul_p, "div": div_p, "add": add_p, "sub": sub_p, "add_any": add_any_p}


def operands(trace, shape, dtype):
    """What may stand beside a tangent of this type."""
    aval = ShapedArray(shape, np.dtype(dtype))
    other = LinearTrace(None)
    yield trace.new(aval)
    yield other.new(ShapedArray((*shape,), np.dtype(dtype)))
    yield jnp.ones(shape, dtype)
    yield np.ones(shape, dtype)
    yield from (2.5, 3, True, jnp.asarray(2.0, dtype), jnp.float32(2))
    yield jnp.ones(shape, "float64")
    yield jnp.ones((*shape, 2), dtype)
    yield JVPTrace(None).join(jnp.ones(shape, dtype), trace.new(aval))


DTYPES = ["float32", "float64", "float16", ft.dtypes.bfloat16, "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_types_on_the_tape_are_those_of_the_rules(name, shape, dtype):
    primitive, trace = OPERATIONS[name], LinearTrace(None)
    t = trace.new(ShapedArray(shape, np.dtype(dtype)))
    for other in operands(trace, shape, dtype):
        for args in ((t, other), (other, t)):
            try:
                expected = primitive.type(*operand_avals(args, name))
            except (ShapeError, DTypeError) as error:
                with pytest.raises(type(error)):
                    trace.process(primitive, args, {})
                continue
            out = trace.process(primitive, args, {})
            assert out.aval == expected
            equation = trace.tape[-1]
            assert equation.primitive is primitive and equation.args is args
            assert equation.outs == (out,) and out.index == trace.count - 1


def test_operations_without_tangents_are_the_parents():
    seen = []

    class Parent(Trace):
        def process(self, primitive, args, params):
            seen.append(primitive)
            return "here"

    trace = LinearTrace(Parent(None))
    assert trace.process(neg_p, (jnp.ones(2),), {}) == "here" and seen == [neg_p]
    foreign = LinearTrace(None).new(ShapedArray((2,), np.dtype("f")))
    assert trace.process(neg_p, (foreign,), {}) == "here" and trace.tape == []


def test_arrays_alone_are_evaluated_only_where_nobody_else_has_to_know():
    assert LinearTrace(JVPTrace(None)).evaluates
    assert not LinearTrace(Trace(None)).evaluates
    found = []
    ft.grad(lambda x: found.append(jnp.sin(jnp.ones(2)) * 2.0) or x * x)(3.0)
    np.testing.assert_allclose(np.asarray(found[0]), np.sin(np.ones(2)) * 2, rtol=1e-6)
    staged = ft.make_jaxpr(ft.grad(lambda x: x * jnp.sin(jnp.ones(2)).sum()))(3.0)
    assert isinstance(staged.jaxpr, Jaxpr) and "sin" in str(staged)
    assert not CheckTrace.passes_others_on


def test_nested_gradients_are_those_of_compiled_ones():
    fun = lambda x: jnp.sin(jnp.tanh(x)) * x + jnp.where(x > 0, x, 2 * x) ** 3 / (1 + x * x)
    gradient = fun
    for _ in range(4):
        gradient = ft.grad(gradient)
        for x in (0.3, -0.7):
            x = np.float64(x)
            np.testing.assert_allclose(float(gradient(x)), float(ft.jit(gradient)(x)), rtol=1e-9)


def test_a_rule_that_fails_backwards_leaves_the_tape_as_it_was():
    @ft.custom_vjp
    def fragile(x):
        return x * 2.0

    calls = []

    def backward(_, ct):
        calls.append(ct)
        if len(calls) == 1:
            raise RuntimeError("once")
        return (ct * 2.0,)

    fragile.defvjp(lambda x: (fragile(x), None), backward)
    _, pull = ft.vjp(lambda x: fragile(x * x), 3.0)
    with pytest.raises(RuntimeError, match="once"):
        pull(1.0)
    assert float(pull(1.0)[0]) == 12.0


def test_tapes_release_what_they_recorded():
    trace = LinearTrace(None)
    t = trace.new(ShapedArray((2,), np.dtype("f")))
    out = trace.process(mul_p, (t, 2.0), {})
    gone = weakref.ref(out)
    del out, t
    trace.tape.clear()
    gc.collect()
    assert gone() is None
