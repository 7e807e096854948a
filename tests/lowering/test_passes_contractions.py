"""Golden programs of the laws of contractions."""

import ml_dtypes
import pytest

import functrans.numpy as jnp
from functrans import lax
from tests.lowering.test_passes import array, simplified, spelled

U, V = array(6), array(6)
W = array(200, 6)
A = array(5, 6)
B = array(6, 4)
C = array(2, 5, 6)
D = array(2, 6, 4)
H, G = A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)


def dot(x, y, contract, batch=((), ())):
    return lax.dot_general(x, y, (contract, batch))


LAWS = {
    "unit_axes": (lambda a, b:
        dot(a.reshape(1, 5, 6), b.reshape(1, 6, 4), ((2,), (1,)), ((0,), (0,))), (A, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b; d = "
        "reshape[new_sizes=(1,5,4)] c -> d"),
    "unit_contraction": (
        lambda u, v: dot(u.reshape(6, 1), v.reshape(1, 6), ((1,), (0,))), (U, V,),
        "c = broadcast_in_dim[shape=(6,6) broadcast_dimensions=(0)] a; d = "
        "broadcast_in_dim[shape=(6,6) broadcast_dimensions=(1)] b; e = mul c d -> e"),
    "ordered_pairs": (lambda c, d: dot(c, d, ((2, 0), (1, 0))), (C, D,),
        "c = dot_general[dimension_numbers=(((0,2),(0,1)),((),()))] a b -> c"),
    "transposed_left": (lambda a, b: a.T.T.T.T @ b, (A, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b -> c"),
    "transposed_operands": (lambda a, b: dot(a.T, b.T, ((0,), (1,))), (A, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b -> c"),
    "transposed_batch": (
        lambda c, d: dot(c.transpose(1, 0, 2), d, ((2,), (1,)), ((1,), (0,))), (C, D,),
        "c = dot_general[dimension_numbers=(((2),(1)),((0),(0)))] a b -> c"),
    "transposed_product": (lambda a, b: (a @ b).T, (A, B,),
        "c = dot_general[dimension_numbers=(((0),(1)),((),()))] b a -> c"),
    "transposed_batches": (lambda c, d: (c @ d).transpose(0, 2, 1), (C, D,),
        "c = dot_general[dimension_numbers=(((1),(2)),((0),(0)))] b a -> c"),
    "shared_product_stays": (lambda a, b: (lambda c: (c.T, c))(a @ b), (A, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b; d = "
        "transpose[permutation=(1,0)] c -> d c"),
    "split_free_axes": (lambda w, b: w.reshape(10, 20, 6) @ b, (W, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b; d = "
        "reshape[new_sizes=(10,20,4)] c -> d"),
    "merged_free_axes": (lambda c, b: (c.reshape(10, 6) @ b).reshape(2, 5, 4), (C, B,),
        "c = reshape[new_sizes=(10,6)] a; d = dot_general[dimension_numbers=(((1),(0)),((),()))] "
        "c b; e = reshape[new_sizes=(2,5,4)] d -> e"),
    "outer_product": (lambda u, v: jnp.outer(u, v), (U, V,),
        "c = broadcast_in_dim[shape=(6,6) broadcast_dimensions=(0)] a; d = "
        "broadcast_in_dim[shape=(6,6) broadcast_dimensions=(1)] b; e = mul c d -> e"),
    "inner_product": (lambda u, v: jnp.dot(u, v), (U, V,),
        "c = mul a b; d = reduce_sum[axes=(0)] c -> d"),
    "inner_products": (
        lambda a, b: dot(a, b.T[:1].repeat(5, 0), ((1,), (1,)), ((0,), (0,))), (A, B,),
        "c = transpose[permutation=(1,0)] b; d = slice[start_indices=(0,0) limit_indices=(1,6) "
        "strides=(1,1)] c; e = reshape[new_sizes=(6)] d; f = broadcast_in_dim[shape=(5,6) "
        "broadcast_dimensions=(1)] e; g = mul a f; h = reduce_sum[axes=(1)] g -> h"),
    "narrow_inner_product_stays": (lambda h: dot(h, h, ((0, 1), (0, 1))), (H,),
        "b = dot_general[dimension_numbers=(((0,1),(0,1)),((),()))] a a -> b"),
    "repeated_contraction": (lambda u, b: jnp.broadcast_to(u[:5, None], (5, 6)) @ b, (U, B,),
        "c = slice[start_indices=(0) limit_indices=(5) strides=(1)] a; d = reduce_sum[axes=(0)] "
        "b; e = broadcast_in_dim[shape=(5,4) broadcast_dimensions=(0)] c; f = "
        "broadcast_in_dim[shape=(5,4) broadcast_dimensions=(1)] d; g = mul e f -> g"),
    "repeated_rows": (lambda u, b: jnp.broadcast_to(u, (5, 6)) @ b, (U, B,),
        "c = dot_general[dimension_numbers=(((0),(0)),((),()))] a b; d = "
        "broadcast_in_dim[shape=(5,4) broadcast_dimensions=(1)] c -> d"),
    "repeated_columns": (lambda a, u: a @ jnp.broadcast_to(u[:, None], (6, 4)), (A, U,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b; d = "
        "broadcast_in_dim[shape=(5,4) broadcast_dimensions=(0)] c -> d"),
    "product_with_ones": (lambda b: jnp.ones((5, 6), b.dtype) @ b, (B,),
        "b = reduce_sum[axes=(0)] a; c = broadcast_in_dim[shape=(5,4) broadcast_dimensions=(1)] b "
        "-> c"),
    "sum_over_rows": (lambda a, b: jnp.sum(a @ b, 0), (A, B,),
        "c = reduce_sum[axes=(0)] a; d = dot_general[dimension_numbers=(((0),(0)),((),()))] c b "
        "-> d"),
    "sum_over_columns": (lambda a, b: jnp.sum(a @ b, 1), (A, B,),
        "c = reduce_sum[axes=(1)] b; d = dot_general[dimension_numbers=(((1),(0)),((),()))] a c "
        "-> d"),
    "sum_over_batch": (lambda c, d: jnp.sum(c @ d, 0), (C, D,),
        "c = dot_general[dimension_numbers=(((0,2),(0,1)),((),()))] a b -> c"),
    "narrow_sum_stays": (lambda h, g: jnp.sum(h @ g, 1, dtype="bfloat16"), (H, G,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b; d = reduce_sum[axes=(1)] c "
        "-> d"),
    "scaled_operand": (lambda w, b: (w * 3.0) @ b, (W, B,),
        "c = mul b 3.0; d = dot_general[dimension_numbers=(((1),(0)),((),()))] a c -> d"),
    "scaled_by_value": (lambda w, b, u: (w / u[0]) @ b, (W, B, U,),
        "d = slice[start_indices=(0) limit_indices=(1) strides=(1)] c; e = reshape[new_sizes=()] "
        "d; f = div b e; g = dot_general[dimension_numbers=(((1),(0)),((),()))] a f -> g"),
    "negated_operand": (lambda w, b: (-w) @ b, (W, B,),
        "c = neg b; d = dot_general[dimension_numbers=(((1),(0)),((),()))] a c -> d"),
    "scaled_result_stays": (lambda u, b: (b * 3.0) @ u[:4, None] @ u[None, :], (U, B,),
        "c = slice[start_indices=(0) limit_indices=(4) strides=(1)] a; d = mul c 3.0; e = "
        "dot_general[dimension_numbers=(((1),(0)),((),()))] b d; f = broadcast_in_dim[shape=(6,6) "
        "broadcast_dimensions=(0)] e; g = broadcast_in_dim[shape=(6,6) broadcast_dimensions=(1)] "
        "a; h = mul f g -> h"),
    "sum_of_products": (lambda a, b: jnp.sum(a[:, :, None] * b[None], 1), (A, B,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b -> c"),
    "sum_of_products_by_batch": (lambda c, d: jnp.sum(c[:, :, :, None] * d[:, None], 2), (C, D,),
        "c = dot_general[dimension_numbers=(((2),(1)),((0),(0)))] a b -> c"),
    "sum_beside": (lambda c, b: jnp.sum(c[:, :, :, None] * b[None, None], (1, 2)), (C, B,),
        "c = reduce_sum[axes=(1)] a; d = dot_general[dimension_numbers=(((1),(0)),((),()))] c b "
        "-> d"),
    "product_with_row_stays": (lambda a, u: jnp.sum(a * u, 1), (A, U,),
        "c = broadcast_in_dim[shape=(5,6) broadcast_dimensions=(1)] b; d = mul a c; e = "
        "reduce_sum[axes=(1)] d -> e"),
    "square_sum_stays": (lambda a: jnp.sum(a * a), (A,),
        "b = mul a a; c = reduce_sum[axes=(0,1)] b -> c"),
    "converted_operands": (lambda h, g: h.astype("float32") @ g.astype("float32"), (H, G,),
        "c = dot_general[dimension_numbers=(((1),(0)),((),())) preferred_element_type=float32] a "
        "b -> c"),
    "preferred_type": (
        lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())),
                                    preferred_element_type="float32"), (A, B),
        "c = dot_general[dimension_numbers=(((1),(0)),((),()))] a b -> c"),
}


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    assert spelled(simplified(fun, *args)) == text
