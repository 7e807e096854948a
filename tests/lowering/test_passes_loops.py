"""Golden programs of the laws of loops and branches."""

import pytest

import functrans.numpy as jnp
from functrans import lax
from tests.lowering.test_passes import array, simplified, spelled

X = array(3)
S = array()

LAWS = {
    "body": (lambda x: lax.scan(lambda c, e: (c * 1.0 + e, None), jnp.float32(0), x)[0], (X,),
        "b = scan[jaxpr={c = add a b -> c} length=3 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] 0.0 a -> b"),
    "literal_constant": (lambda x:
        lax.scan(lambda c, e: (c + e * jnp.float32(3), None), jnp.float32(0), x)[0], (X,),
        "b = scan[jaxpr={c = mul b 3.0; d = add a c -> d} length=3 reverse=False unroll=1 "
        "num_consts=0 num_carry=1] 0.0 a -> b"),
    "invariant_carry": (lambda x, s:
        lax.scan(lambda c, e: ((c[0] + c[1] * e, c[1]), None), (jnp.float32(0), s), x)[0], (X,
        S,),
        "c = scan[jaxpr={d = mul a c; e = add b d -> e} length=3 reverse=False unroll=1 "
        "num_consts=1 num_carry=1] b 0.0 a -> c b"),
    "hoisted": (lambda x, s:
        lax.scan(lambda c, e: (c + e * jnp.exp(s), None), jnp.float32(0), x)[0], (X, S,),
        "c = exp b; d = scan[jaxpr={d = mul c a; e = add b d -> e} length=3 reverse=False "
        "unroll=1 num_consts=1 num_carry=1] c 0.0 a -> d"),
    "movement_stays_inside": (lambda x, s:
        lax.scan(lambda c, e: (c + e * jnp.broadcast_to(s, 3), None), x, x)[0], (X, S,),
        "c = scan[jaxpr={d = mul c a; e = add b d -> e} length=3 reverse=False unroll=1 "
        "num_consts=1 num_carry=1] b a a -> c"),
    "stacked_constant": (lambda x, s:
        lax.scan(lambda c, e: (c + e, (s, e, jnp.float32(2))), jnp.float32(0), x), (X, S,),
        "c = broadcast_in_dim[shape=(3) broadcast_dimensions=()] b; d = "
        "broadcast_in_dim[shape=(3) broadcast_dimensions=()] 2.0; e = scan[jaxpr={c = add a b -> "
        "c} length=3 reverse=False unroll=1 num_consts=0 num_carry=1] 0.0 a -> e c a d"),
    "stacked_twice": (
        lambda x: lax.scan(lambda c, e: (c + e, (c * e, e * c)), jnp.float32(0), x)[1], (X,),
        "b c = scan[jaxpr={c = add a b; d = mul a b -> c d} length=3 reverse=False unroll=1 "
        "num_consts=0 num_carry=1] 0.0 a -> c c"),
    "unused_result": (
        lambda x: lax.scan(lambda c, e: (c + e, jnp.sin(c)), jnp.float32(0), x)[0], (X,),
        "b = scan[jaxpr={c = add a b -> c} length=3 reverse=False unroll=1 num_consts=0 "
        "num_carry=1] 0.0 a -> b"),
    "repeated_elements": (lambda x, s:
        lax.scan(lambda c, e: (c * e, None), s, jnp.broadcast_to(s, (3,)))[0], (X, S,),
        "c = scan[jaxpr={c = mul b a -> c} length=3 reverse=False unroll=1 num_consts=1 "
        "num_carry=1] b b -> c"),
    "one_iteration": (
        lambda x: lax.scan(lambda c, e: (c + e, c * e), jnp.float32(0), x[:1]), (X,),
        "b = slice[start_indices=(0) limit_indices=(1) strides=(1)] a; c = add b 0.0; d = "
        "reshape[new_sizes=()] c; e = mul b 0.0 -> d e"),
    "while_constants": (lambda s:
        lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * jnp.exp(c[1]), c[1]), (s,
        s + 9))[0], (S,),
        "b = add a 9.0; c = exp b; d = while[cond_jaxpr={c = lt b a -> c} body_jaxpr={c = mul b a "
        "-> c} cond_nconsts=1 body_nconsts=1] b c a -> d"),
    "known_branch": (lambda x: lax.cond(jnp.bool_(True), jnp.sin, jnp.cos, x), (X,),
        "b = sin a -> b"),
    "equal_branches": (lambda s, x: lax.cond(s > 1, jnp.sin, jnp.sin, x), (S, X,),
        "c = sin b -> c"),
    "branch_results": (lambda s, x:
        lax.cond(s > 1, lambda a, b: (a, b, a + b, a + b), lambda a, b: (a, a, a - b, a - b),
        x, x * 2), (S, X,),
        "c = gt a 1.0; d = mul b 2.0; e f = cond[branches=({c = sub a b -> a c},{c = add a b -> b "
        "c})] c b d -> b e f f"),
    "branch_literals": (lambda s, x:
        lax.cond(s > 1, lambda a, b: a * b, lambda a, b: a + b, x, jnp.float32(2)), (S, X,),
        "c = gt a 1.0; d = cond[branches=({b = add a 2.0 -> b},{b = mul a 2.0 -> b})] c b -> d"),
}


@pytest.mark.parametrize("name", LAWS)
def test_law(name):
    fun, args, text = LAWS[name]
    assert spelled(simplified(fun, *args)) == text
