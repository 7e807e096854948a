"""Golden programs of the laws of recurrences, and the networks that they are for."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.passes.pipeline import simplify
from tests.lowering.test_passes import array, program_of, simplified, spelled

STEPS = 20
W, U, B, H, XS = array(4, 4), array(4, 3), array(4), array(4), array(STEPS, 3)
ROWS = array(STEPS, 5, 3)
IDS = np.array([3, 0, 3, 9], np.int32)


def outer(x, y):
    return x[..., :, None] * y[..., None, :]


LAWS = {
    "product_of_elements": (
        lambda u, b, xs: lax.scan(lambda c, x: (jnp.sin(c + u @ x), None), b, xs)[0], (U, B, XS,),
        "d = dot_general[dimension_numbers=(((1),(1)),((),()))] c a; e = scan[jaxpr={c = add "
        "a b; d = sin c -> d} length=20 reverse=False unroll=1 num_consts=0 num_carry=1] b d "
        "-> e"),
    "products_of_rows": (
        lambda u, rows: lax.scan(lambda c, x: (jnp.sin(c + u @ x.T), None), jnp.ones((4, 5)),
                                 rows)[0], (U, ROWS),
        "c = broadcast_in_dim[shape=(4,5) broadcast_dimensions=()] 1.0; d = "
        "dot_general[dimension_numbers=(((1),(2)),((),()))] a b; e = "
        "transpose[permutation=(1,0,2)] d; f = scan[jaxpr={c = add a b; d = sin c -> d} "
        "length=20 reverse=False unroll=1 num_consts=0 num_carry=1] c e -> f"),
    "stacked_products": (
        lambda w, b, xs: lax.scan(lambda c, x: (jnp.sin(c * x[0]), w @ c), b, xs), (W, B, XS,),
        "d e = scan[jaxpr={c = slice[start_indices=(0) limit_indices=(1) strides=(1)] b; d = "
        "reshape[new_sizes=()] c; e = mul a d; f = sin e -> f a} length=20 reverse=False "
        "unroll=1 num_consts=0 num_carry=1] b c; f = "
        "dot_general[dimension_numbers=(((1),(1)),((),()))] e a -> d f"),
    "carried_outer_products": (
        lambda w, xs: lax.scan(lambda c, x: (c + jnp.outer(jnp.exp(x), x), None), jnp.ones((3, 3)),
                               xs)[0], (W, XS,),
        "c = scan[jaxpr={b = exp a -> b} length=20 reverse=False unroll=1 num_consts=0 "
        "num_carry=0] b; d = dot_general[dimension_numbers=(((0),(0)),((),()))] c b; e = add "
        "d 1.0 -> e"),
    "carried_products": (
        lambda rows: lax.scan(lambda c, x: (x.T @ x + c, None), jnp.zeros((3, 3)), rows)[0],
        (ROWS,),
        "b = dot_general[dimension_numbers=(((0,1),(0,1)),((),()))] a a -> b"),
    "stacked_outer_products": (
        lambda h, xs: lax.scan(lambda h, x: (jnp.sin(h), outer(h, x)), h, xs), (H, XS[:5]),
        "c d = scan[jaxpr={b = sin a -> b a} length=5 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] a; e = broadcast_in_dim[shape=(5,4,3) broadcast_dimensions=(0,1)] d; f = "
        "broadcast_in_dim[shape=(5,4,3) broadcast_dimensions=(0,2)] b; g = mul e f -> c g"),
    "stacked_product_with_a_constant": (
        lambda h, u: lax.scan(lambda h, _: (jnp.sin(h), -outer(h, u).T), h, None, length=3),
        (H, U[0]),
        "c d = scan[jaxpr={b = sin a -> b a} length=3 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] a; e = broadcast_in_dim[shape=(3,4,3) broadcast_dimensions=(0,1)] d; f = "
        "broadcast_in_dim[shape=(3,4,3) broadcast_dimensions=(2)] b; g = mul e f; h = neg g; i = "
        "transpose[permutation=(0,2,1)] h -> c i"),
    "carried_products_of_samples": (
        lambda h, rows: lax.scan(lambda c, x: ((jnp.sin(c[0]), c[1] - outer(c[0], x)), None),
                                 (h, jnp.zeros((5, 6, 3))), rows)[0], (array(5, 6), ROWS[:3]),
        "c d = scan[jaxpr={b = sin a -> b a} length=3 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] a; e = dot_general[dimension_numbers=(((0),(0)),((1),(1)))] d b; f = neg e "
        "-> c f"),
    "carried_products_with_a_constant": (
        lambda h, u: lax.scan(lambda c, _: ((jnp.sin(c[0]), c[1] + outer(c[0], u)), None),
                              (h, jnp.zeros((4, 3))), None, length=3)[0], (H, U[0]),
        "c = broadcast_in_dim[shape=(4) broadcast_dimensions=()] 0.0; d e = scan[jaxpr={c = sin "
        "a; d = add b a -> c d} length=3 reverse=False unroll=1 num_consts=0 num_carry=2] a c; f "
        "= broadcast_in_dim[shape=(4,3) broadcast_dimensions=(0)] e; g = "
        "broadcast_in_dim[shape=(4,3) broadcast_dimensions=(1)] b; h = mul f g -> d h"),
    "carried_rows": (
        lambda h, ids: lax.scan(
            lambda c, i: ((jnp.sin(c[0]), c[1] + jnp.zeros((9, 4)).at[i].add(c[0])), None),
            (h, jnp.zeros((9, 4))), ids)[0], (H, IDS),
        "c = broadcast_in_dim[shape=(9,4) broadcast_dimensions=()] 0.0; d e f = scan[jaxpr={c = "
        "sin a; d = lt b 0; e = add b 9; f = select_n d b e; g = broadcast_in_dim[shape=(1) "
        "broadcast_dimensions=()] f -> c g a} length=4 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] a b; g = scatter_add[dimension_numbers={update_window_dims=(1,), "
        "inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)} mode=FILL_OR_DROP "
        "unique_indices=False indices_are_sorted=False] c e f -> d g"),
    "carried_sum": (
        lambda b, xs: lax.scan(lambda c, x: (c + x, None), b[:3], xs)[0], (B, XS,),
        "c = slice[start_indices=(0) limit_indices=(3) strides=(1)] a; d = "
        "reduce_sum[axes=(0)] b; e = add c d -> e"),
    "sum_that_is_read_stays": (
        lambda b, xs: lax.scan(lambda c, x: (c + x, c), b[:3], xs), (B, XS,),
        "c = slice[start_indices=(0) limit_indices=(3) strides=(1)] a; d e = scan[jaxpr={c = "
        "add a b -> c a} length=20 reverse=False unroll=1 num_consts=0 num_carry=1] c b -> d "
        "e"),
}


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    assert spelled(simplified(fun, *args)) == text


def network(w, u, b, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h * 0.1 + u @ x + b)
        return h, h

    return (lax.scan(step, h, xs)[1] ** 2).sum()


def gru(w, u, b, h, xs):
    def step(h, x):
        z, r = ft.nn.sigmoid(w @ h * 0.1 + u @ x + b), ft.nn.sigmoid(w @ h - b)
        h = z * h + (1 - z) * jnp.tanh(w @ (r * h) * 0.2 + u @ x)
        return h, (h, z)

    return sum((y ** 2).sum() for y in lax.scan(step, h, xs, reverse=True)[1])


@pytest.mark.parametrize("fun", [network, gru])
def test_gradients_of_networks(fun):
    args = W, U, B, H, XS
    simplified(ft.grad(fun, (0, 1, 2, 3, 4)), *args, rtol=1e-4, atol=1e-4)
    batches = array(3, STEPS, 3)
    mean = lambda w, u, b, h, xs: ft.vmap(fun, (None, None, None, None, 0))(w, u, b, h, xs).mean()
    simplified(ft.grad(mean, (0, 1, 2, 3, 4)), W, U, B, H, batches, rtol=1e-4, atol=1e-4)
    simplified(ft.vmap(ft.grad(fun, (0, 4)), (None, None, None, None, 0)), W, U, B, H, batches,
               rtol=1e-4, atol=1e-4)


def test_the_loop_of_a_gradient_carries_no_matrix():
    after = simplify(program_of(ft.grad(network, (0, 1, 2)), W, U, B, H, XS)[0])
    loops = [e for e in after.eqns if e.primitive.name == "scan"]
    assert len(loops) == 2
    for eqn in loops:
        assert all(len(v.aval.shape) < 2 for v in eqn.outvars[:eqn.params["num_carry"]])
        names = [e.primitive.name for e in eqn.params["jaxpr"].eqns]
        assert names.count("dot_general") == 1


def test_what_would_need_much_memory_stays():
    def fun(w, xs):
        return lax.scan(lambda c, x: (c + jnp.outer(jnp.sin(x), jnp.cos(x)), None), w, xs)[0]

    few, many = np.ones((20, 8), np.float32), np.ones((4000, 200), np.float32)
    loops = [[e for e in simplify(program_of(fun, np.zeros(2 * xs.shape[1:], np.float32),
                                             xs)[0]).eqns if e.primitive.name == "scan"]
             for xs in (few, many)]
    assert loops[0][0].params["num_carry"] == 0
    assert loops[1][0].params["num_carry"] == 1
