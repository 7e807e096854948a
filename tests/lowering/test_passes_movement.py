"""Golden programs of the laws of movement and of reductions."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.shape import pad_p, reshape_p
from tests.lowering.test_passes import array, simplified, spelled

X, Y = array(3), array(3)
S = array()
K = array(2)
L = array(9)
M, N = array(2, 3), array(2, 3)
IDS = np.array([1, 0, 7, -1], np.int32)
T = array(2, 4, 3)

LAWS = {
    "same_shape": (lambda m: lax.reshape(m, (2, 3)) + 1.0, (M,),
        "b = add a 1.0 -> b"),
    "two_reshapes": (lambda m: m.reshape(6).reshape(3, 2), (M,),
        "b = reshape[new_sizes=(3,2)] a -> b"),
    "reshaped_scalar": (lambda s: jnp.broadcast_to(s, (2, 3)).reshape(6), (S,),
        "b = broadcast_in_dim[shape=(6) broadcast_dimensions=()] a -> b"),
    "reshaped_broadcast": (lambda x: jnp.broadcast_to(x, (2, 3)).reshape(2, 1, 3), (X,),
        "b = broadcast_in_dim[shape=(2,3) broadcast_dimensions=(1)] a; c = "
        "reshape[new_sizes=(2,1,3)] b -> c"),
    "nothing_repeated": (lambda x: lax.broadcast_in_dim(x, (1, 3), (1,)), (X,),
        "b = reshape[new_sizes=(1,3)] a -> b"),
    "stretched_axes": (lambda x: lax.broadcast_in_dim(x.reshape(1, 3), (2, 3), (0, 1)), (X,),
        "b = broadcast_in_dim[shape=(2,3) broadcast_dimensions=(1)] a -> b"),
    "two_broadcasts": (lambda x: jnp.broadcast_to(jnp.broadcast_to(x, (2, 3)), (4, 2, 3)), (X,),
        "b = broadcast_in_dim[shape=(4,2,3) broadcast_dimensions=(2)] a -> b"),
    "two_transposes": (lambda m: lax.transpose(lax.transpose(m, (1, 0)), (1, 0)), (M,),
        " -> a"),
    "three_axes": (lambda t: lax.transpose(lax.transpose(t, (1, 2, 0)), (0, 2, 1)), (T,),
        "b = transpose[permutation=(1,0,2)] a -> b"),
    "moved_units": (lambda x: jnp.sin(lax.transpose(x.reshape(1, 3), (1, 0))), (X,),
        "b = sin a; c = reshape[new_sizes=(3,1)] b -> c"),
    "transposed_broadcast": (lambda m: jnp.broadcast_to(m, (4, 2, 3)).transpose(2, 0, 1), (M,),
        "b = transpose[permutation=(1,0)] a; c = broadcast_in_dim[shape=(3,4,2) "
        "broadcast_dimensions=(0,2)] b -> c"),
    "transposed_units": (lambda m: lax.transpose(m.reshape(2, 1, 3), (2, 1, 0)), (M,),
        "b = transpose[permutation=(1,0)] a; c = reshape[new_sizes=(3,1,2)] b -> c"),
    "two_reversals": (lambda m: lax.rev(lax.rev(m, (0, 1)), (1,)), (M,),
        "b = rev[dimensions=(0)] a -> b"),
    "reversed_broadcast": (lambda x: lax.rev(jnp.broadcast_to(x, (2, 3)), (0, 1)), (X,),
        "b = rev[dimensions=(0)] a; c = broadcast_in_dim[shape=(2,3) broadcast_dimensions=(1)] b "
        "-> c"),
    "slice_of_all": (lambda x: lax.slice(x, (0,), (3,)), (X,),
        " -> a"),
    "two_slices": (lambda t: t[1:, ::2][:, :1, 1:], (T,),
        "b = slice[start_indices=(1,0,1) limit_indices=(2,1,3) strides=(1,2,1)] a -> b"),
    "strided_slices": (lambda l: l[1::2][1::2], (L,),
        "b = slice[start_indices=(3) limit_indices=(8) strides=(4)] a -> b"),
    "empty_slice": (lambda l: l[1::2][2:2], (L,),
        "b = slice[start_indices=(1) limit_indices=(1) strides=(2)] a -> b"),
    "slice_of_broadcast": (lambda x: jnp.broadcast_to(x, (4, 3))[1:3, 1:], (X,),
        "b = slice[start_indices=(1) limit_indices=(3) strides=(1)] a; c = "
        "broadcast_in_dim[shape=(2,2) broadcast_dimensions=(1)] b -> c"),
    "slice_of_joined": (lambda x, y: jnp.concatenate([x, y])[3:5], (X, Y,),
        "c = slice[start_indices=(0) limit_indices=(2) strides=(1)] b -> c"),
    "pad_by_nothing": (lambda x: pad_p.bind(x, np.float32(0), padding_config=((0, 0, 0),)), (X,),
        " -> a"),
    "pad_of_full": (lambda: lax.pad(jnp.zeros(3), 0.0, [(1, 1, 0)]), (),
        "a = broadcast_in_dim[shape=(5) broadcast_dimensions=()] 0.0 -> a"),
    "joined_pieces": (lambda x, y: jnp.concatenate([jnp.concatenate([x, y]), x[:0], y]), (X, Y,),
        "c = concatenate[dimension=0] a b b -> c"),
    "joined_scalars": (lambda: jnp.concatenate([jnp.ones(2), jnp.ones(3)]), (),
        "a = broadcast_in_dim[shape=(5) broadcast_dimensions=()] 1.0 -> a"),
    "joined_slices": (lambda m: jnp.concatenate([m[:, :1], m[:, 1:2], m[:, 2:]], axis=1), (M,),
        " -> a"),
    "static_places": (lambda l: lax.dynamic_slice(l, (jnp.int32(7),), (2,)), (L,),
        "b = slice[start_indices=(7) limit_indices=(9) strides=(1)] a -> b"),
    "update_of_all": (lambda x, y: lax.dynamic_update_slice(x, y, (0,)), (X, Y,),
        " -> b"),
    "scalar_operands": (lambda m, s: m * jnp.broadcast_to(s, (2, 3)), (M, S,),
        "c = mul a b -> c"),
    "scalar_selector": (lambda s, x: jnp.where(s > 1.0, x, -x), (S, X,),
        "c = gt a 1.0; d = neg b; e = select_n c d b -> e"),
    "repeated_operands": (lambda x: jnp.sin(jnp.broadcast_to(x, (4, 3))), (X,),
        "b = sin a; c = broadcast_in_dim[shape=(4,3) broadcast_dimensions=(1)] b -> c"),
    "repeated_pair": (
        lambda x, y: jnp.broadcast_to(x, (4, 3)) * jnp.broadcast_to(y, (4, 3)), (X, Y,),
        "c = mul a b; d = broadcast_in_dim[shape=(4,3) broadcast_dimensions=(1)] c -> d"),
    "repeated_cross": (lambda x, k:
        jnp.broadcast_to(x, (5, 2, 3)) * jnp.broadcast_to(k[:, None], (5, 2, 3)), (X, K,),
        "c = broadcast_in_dim[shape=(2,3) broadcast_dimensions=(1)] a; d = "
        "broadcast_in_dim[shape=(2,3) broadcast_dimensions=(0)] b; e = mul c d; f = "
        "broadcast_in_dim[shape=(5,2,3) broadcast_dimensions=(1,2)] e -> f"),
    "reshaped_operands": (lambda m: jnp.exp(m.reshape(6) * 3.0).reshape(2, 3), (M,),
        "b = mul a 3.0; c = exp b -> c"),
    "transposed_operands": (lambda m, n: (m.T * n.T - 1.0).T, (M, N,),
        "c = mul a b; d = sub c 1.0 -> d"),
    "shared_transpose_stays": (lambda m: (lambda t: (jnp.sin(t), t))(m.T), (M,),
        "b = transpose[permutation=(1,0)] a; c = sin b -> c b"),
    "repeated_choice": (lambda x, y:
        jnp.where(jnp.broadcast_to(x > y, (4, 3)), jnp.broadcast_to(x, (4, 3)), 0.0), (X, Y,),
        "c = gt a b; d = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0.0; e = select_n c "
        "d a; f = broadcast_in_dim[shape=(4,3) broadcast_dimensions=(1)] e -> f"),
    "full_folds": (lambda x: x + jnp.full(3, 2.0) * 3.0, (X,),
        "b = add a 6.0 -> b"),
    "single_elements": (lambda x: jnp.sum(x.reshape(3, 1), 1), (X,),
        " -> a"),
    "some_single_elements": (lambda t: lax.reduce_max(t[:, :1], (1, 2)), (T,),
        "b = slice[start_indices=(0,0,0) limit_indices=(2,1,3) strides=(1,1,1)] a; c = "
        "reduce_max[axes=(2)] b; d = reshape[new_sizes=(2)] c -> d"),
    "two_reductions": (lambda t: jnp.sum(jnp.sum(t, 0), 1), (T,),
        "b = reduce_sum[axes=(0,2)] a -> b"),
    "extremum_of_broadcast": (lambda m: jnp.max(jnp.broadcast_to(m, (4, 2, 3)), (0, 2)), (M,),
        "b = reduce_max[axes=(1)] a -> b"),
    "sum_of_broadcast": (lambda m: jnp.sum(jnp.broadcast_to(m, (4, 2, 3)), (0, 2)), (M,),
        "b = reduce_sum[axes=(1)] a; c = mul b 4.0 -> c"),
    "sum_of_full": (lambda: jnp.sum(jnp.ones((4, 2))), (),
        " -> 8.0"),
    "reduced_transpose": (lambda t: jnp.sum(t.transpose(2, 1, 0), 1), (T,),
        "b = reduce_sum[axes=(1)] a; c = transpose[permutation=(1,0)] b -> c"),
    "reduced_units": (lambda m: jnp.sum(m.reshape(2, 1, 3), 2), (M,),
        "b = reduce_sum[axes=(1)] a; c = reshape[new_sizes=(2,1)] b -> c"),
    "reduced_reshape": (lambda m: jnp.max(m.reshape(6)), (M,),
        "b = reduce_max[axes=(0,1)] a -> b"),
    "sum_of_negatives": (lambda m: jnp.sum(-m, 1), (M,),
        "b = reduce_sum[axes=(1)] a; c = neg b -> c"),
    "accumulated_unit": (lambda m: jnp.cumsum(m[:, :1], axis=1), (M,),
        "b = slice[start_indices=(0,0) limit_indices=(2,1) strides=(1,1)] a -> b"),
    "reshape_to_same": (
        lambda x: reshape_p.bind(x, new_sizes=(3,)), (X,),
        " -> a"),
    "broadcast_to_same": (
        lambda x: broadcast_in_dim_p.bind(x, shape=(3,), broadcast_dimensions=(0,)), (X,),
        " -> a"),
    "identity_permutation": (
        lambda m: transpose_p.bind(m, permutation=(0, 1)), (M,),
        " -> a"),
    "repeated_selector": (
        lambda s, x, y: lax.select_n(jnp.broadcast_to(s > 1.0, (3,)), x, y), (S, X, Y,),
        "d = gt a 1.0; e = select_n d b c -> e"),
    "rows": (
        lambda m, ids: ft.vmap(lambda i: lax.dynamic_slice(m, (i, 0), (1, 3)))(ids), (M, IDS),
        "c = lt b 0; d = add b 2; e = select_n c b d; f = reshape[new_sizes=(4,1)] e; g = "
        "gather[dimension_numbers={offset_dims=(1,), collapsed_slice_dims=(0,), "
        "start_index_map=(0,)} slice_sizes=(1,3) unique_indices=False indices_are_sorted=False "
        "mode=CLIP fill_value=None] a f; h = reshape[new_sizes=(4,1,3)] g -> h"),
    "updated_rows": (
        lambda m, u, ids: ft.vmap(lambda u, i: lax.dynamic_update_slice(m, u, (i, 0)))(u, ids),
        (M, array(4, 1, 3), IDS),
        "d = lt c 0; e = add c 2; f = select_n d c e; g = broadcast_in_dim[shape=(4,2,3) "
        "broadcast_dimensions=(1,2)] a; h = reshape[new_sizes=(4,1)] f; i = "
        "reshape[new_sizes=(4,3)] b; j = scatter[dimension_numbers={update_window_dims=(1,), "
        "inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,), "
        "operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)} unique_indices=True "
        "indices_are_sorted=True mode=CLIP] g h i -> j"),
}


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    assert spelled(simplified(fun, *args)) == text


def test_slices_of_slices_that_are_empty():
    simplified(lambda x: lax.slice(lax.slice(x, (3,), (9,), (3,)), (2,), (2,)), L)


@pytest.mark.parametrize("mode", ["clip", "fill", "drop"])
def test_windows(mode):
    """Of one element and whole, indexed by constants and by values in and out of bounds."""
    ids = np.array([[1, 0], [0, 0], [2, 1], [-1, -3], [5, 0]], np.int32)

    def fun(t, i):
        rows = t.at[i[:, 0], 0:2].get(mode=mode) if mode != "drop" else t[i[:, 0]]
        both = t.at[i[:, 0], i[:, 1]]
        parts = ft.vmap(lambda i: lax.dynamic_slice(t, (i[0], i[1], 0), (1, 2, 4)))(i)
        added = both.add(1.0, mode="clip" if mode == "clip" else "drop")
        return rows, both.get(mode="clip"), parts, added

    simplified(fun, array(3, 2, 4), ids)
    simplified(ft.vmap(fun), array(2, 3, 2, 4), np.stack([ids, ids[::-1]]))
    simplified(ft.grad(lambda t, i: sum((y ** 2).sum() for y in fun(t, i))), array(3, 2, 4), ids)
