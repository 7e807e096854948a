"""Golden programs of the laws of scalar operations: each is also evaluated before and after."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.pipeline import simplify
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.base import Constant, constant_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.masked import masked_div, masked_mul
from tests.lowering.test_passes import array, program_of, simplified, spelled

X, Y = array(3), array(3)
I, J = np.array([3, -2, 7], np.int32), np.array([1, 0, 7], np.int32)
P = np.array([True, False, True])
Z = np.array([1 + 2j, -3j], np.complex64)

LAWS = {
    "double_negation": (lambda x: jnp.negative(-x), (X,),
        " -> a"),
    "negated_scaling": (lambda x: -(x * 3.0), (X,),
        "b = mul a -3.0 -> b"),
    "negated_difference": (lambda i, j: -(i - j), (I, J,),
        "c = sub b a -> c"),
    "absolute_of_negative": (lambda x: jnp.abs(-x), (X,),
        "b = abs a -> b"),
    "absolute_of_absolute": (lambda x: jnp.abs(jnp.abs(x)), (X,),
        "b = abs a -> b"),
    "literal_second": (lambda x: 2.0 + 3.0 * x, (X,),
        "b = mul a 3.0; c = add b 2.0 -> c"),
    "plus_zero_stays": (lambda x: x + 0.0, (X,),
        "b = add a 0.0 -> b"),
    "plus_minus_zero": (lambda x: x + jnp.float32(-0.0), (X,),
        " -> a"),
    "integer_plus_zero": (lambda i: i + 0, (I,),
        " -> a"),
    "sum_with_negative": (lambda x, y: (x + (-y), (-x) + y), (X, Y,),
        "c = sub a b; d = sub b a -> c d"),
    "integer_sums": (lambda i: (i + 3) + 4, (I,),
        "b = add a 7 -> b"),
    "float_sums_stay": (lambda x: (x + 3.0) + 4.0, (X,),
        "b = add a 3.0; c = add b 4.0 -> c"),
    "minus_zero": (lambda x: x - 0.0, (X,),
        " -> a"),
    "difference_with_negative": (lambda x, y: x - (-y), (X, Y,),
        "c = add a b -> c"),
    "integer_difference": (lambda i: i - i, (I,),
        "b = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0 -> b"),
    "float_difference_stays": (lambda x: x - x, (X,),
        "b = sub a a -> b"),
    "times_one": (lambda x: (x * 1.0, x * -1.0), (X,),
        "b = neg a -> a b"),
    "times_zero": (lambda x, i: (x * 0.0, i * 0), (X, I,),
        "c = mul a 0.0; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0 -> c d"),
    "scalings": (lambda x: (x * 3.0) * 0.5, (X,),
        "b = mul a 1.5 -> b"),
    "scalings_stay": (lambda x: (x * 3.0) * 5.0, (X,),
        "b = mul a 3.0; c = mul b 5.0 -> c"),
    "product_of_negatives": (lambda x, y: ((-x) * (-y), (-x) * 3.0, (-x) / y), (X, Y,),
        "c = mul a b; d = mul a -3.0; e = div a b; f = neg e -> c d f"),
    "quotients": (lambda x: (x / 8.0, x / 3.0, x / 1.0), (X,),
        "b = mul a 0.125; c = div a 3.0 -> b c a"),
    "inverse_root": (lambda x: 1.0 / jnp.sqrt(x), (X,),
        "b = rsqrt a -> b"),
    "cube": (lambda x: x ** 3, (X,),
        "b = mul a a; c = mul b a -> c"),
    "inverse_square": (lambda x: lax.integer_pow(x, -2), (X,),
        "b = div 1.0 a; c = mul b b -> c"),
    "zeroth_power": (lambda x: lax.integer_pow(x, 0), (X,),
        "b = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 1.0 -> b"),
    "ninth_power_stays": (lambda x: lax.integer_pow(x, 9), (X,),
        "b = integer_pow[y=9] a -> b"),
    "power_of_literal": (lambda x: lax.pow(x, jnp.float32(2.0)), (X,),
        "b = mul a a -> b"),
    "root_power_stays": (lambda x: lax.pow(x, jnp.float32(0.5)), (X,),
        "b = pow a 0.5 -> b"),
    "half_power": (lambda x: lax.pow(x, jnp.float32(-1.5)), (X,),
        "b = eq a -inf; c = add a 0.0; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] inf;"
        " e = select_n b c d; f = rsqrt e; g = div f e -> g"),
    "idempotent": (lambda x: jnp.maximum(x, x), (X,),
        " -> a"),
    "least": (lambda x: jnp.minimum(jnp.maximum(x, -jnp.inf), jnp.inf), (X,),
        " -> a"),
    "limits": (lambda x: jnp.maximum(jnp.maximum(x, 1.0), 2.0), (X,),
        "b = max a 2.0 -> b"),
    "clamp": (lambda x: lax.clamp(1.0, x, 2.0), (X,),
        "b = max a 1.0; c = min b 2.0 -> c"),
    "masked_product": (lambda x, y: masked_mul(x, y), (X, Y,),
        "c = mul a b; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0.0; "
        "e = eq a 0.0; f = select_n e c d -> f"),
    "masked_quotient": (lambda x, y: masked_div(x, y), (X, Y,),
        "c = div a b; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0.0; "
        "e = eq a 0.0; f = select_n e c d -> f"),
    "negations": (lambda p: (~~p), (P,),
        " -> a"),
    "negated_equality": (lambda x, y: ~(x == y), (X, Y,),
        "c = ne a b -> c"),
    "negated_order_stays": (lambda x, y: ~(x < y), (X, Y,),
        "c = lt a b; d = not c -> d"),
    "logic": (lambda p: ((p & True) | False, p | True), (P,),
        "b = broadcast_in_dim[shape=(3) broadcast_dimensions=()] True -> a b"),
    "bits": (lambda i: (i ^ 0) | 0, (I,),
        " -> a"),
    "less_than_itself": (lambda x: x < x, (X,),
        "b = broadcast_in_dim[shape=(3) broadcast_dimensions=()] False -> b"),
    "equal_to_itself": (lambda x, i: (x == x, i == i), (X, I,),
        "c = eq a a; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] True -> c d"),
    "where_literal": (lambda x, y: lax.select_n(jnp.full(3, True), y, x), (X, Y,),
        " -> a"),
    "where_same": (lambda p, x: jnp.where(p, x, x), (P, X,),
        " -> b"),
    "where_not": (lambda p, x, y: jnp.where(~p, x, y), (P, X, Y,),
        "d = select_n a b c -> d"),
    "where_where": (lambda p, x, y: jnp.where(p, jnp.where(p, x, -x), y), (P, X, Y,),
        "d = select_n a c b -> d"),
    "same_type": (lambda x: lax.convert_element_type(x, "float32"), (X,),
        " -> a"),
    "lossless_conversion": (lambda x: x.astype("float64").astype("float32"), (X,),
        " -> a"),
    "lossy_conversion_stays": (lambda x: x.astype("bfloat16").astype("float32"), (X,),
        "b = convert_element_type[new_dtype=bfloat16] a; c = "
        "convert_element_type[new_dtype=float32] b -> c"),
    "parts": (lambda x, y: (lambda z: (z.real, z.imag))(lax.complex(x, y)), (X, Y,),
        " -> a b"),
    "complex_of_parts": (lambda z: lax.complex(jnp.real(z), jnp.imag(z)), (Z,),
        " -> a"),
    "conjugates": (lambda z: jnp.conj(jnp.conj(z)), (Z,),
        " -> a"),
    "identities": (lambda x: ft.checkpoint_name(lax.stop_gradient(jnp.copy(x)), "n"), (X,),
        " -> a"),
    "boolean_sum": (lambda p: lax.reduce_sum(p, (0,)), (P,),
        "b = reduce_or[axes=(0)] a -> b"),
    "sum_of_cotangents": (
        lambda x, y: add_any_p.bind(x, y), (X, Y,),
        "c = add a b -> c"),
    "cotangent_with_zero": (
        lambda x: add_any_p.bind(jnp.zeros(3), x), (X,),
        " -> a"),
    "barrier_of_literals": (
        lambda x: [y + 1.0 for y in optimization_barrier([x, jnp.full((), 2.0)])], (X,),
        "b = optimization_barrier a; c = add b 1.0 -> c 3.0"),
    "scalar_constant": (
        lambda x: x * constant_p.bind(value=Constant(np.float32(2))), (X,),
        "b = mul a 2.0 -> b"),
    "count_of_one": (
        lambda x: x + lax.iota("float32", 1)[0], (X,),
        "b = add a 0.0 -> b"),
    "barrier_of_unused": (
        lambda x, y: optimization_barrier([x, y])[0] + 1.0, (X, Y,),
        "c = optimization_barrier a; d = add c 1.0 -> d"),
}


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    assert spelled(simplified(fun, *args)) == text


SPECIAL = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-41, -3e38, 1e20, -0.5], np.float32)
# more roundings; and the reference evaluates complex(x, y) as x + 1j * y: NaN where y is infinite
INEXACT = {"cube", "half_power", "inverse_square", "power_of_literal", "parts"}
# zeros of cotangents have no sign
INEXACT |= {"cotangent_with_zero"}


@pytest.mark.parametrize("name", [n for n in LAWS if n not in INEXACT])
def test_laws_hold_for_special_values(name):
    fun, args, _ = LAWS[name]
    if not all(a.dtype == np.float32 for a in args):
        return
    columns = [x.reshape(-1) for x in np.meshgrid(*[SPECIAL] * len(args))]
    if name.startswith("where_literal"):
        columns = [c[:3] for c in columns]
    before, _ = program_of(fun, *columns)
    for a, b in zip(interpret(simplify(before), columns), interpret(before, columns)):
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            numbers = ~np.isnan(b)
            np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])
