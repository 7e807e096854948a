"""What is nearly attention is computed as what it is, in forward programs and in gradients.

The data of each case is such that attention in its place would give other numbers.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from tests.triton.emulated import check, kernels_of

RNG = np.random.default_rng(3)
B, H, T, S, D = 2, 2, 20, 24, 16


def array(*shape):
    return RNG.normal(size=shape).astype("f")


Q, K, V = array(B, H, T, D) / 2, array(B, H, S, D) / 2, array(B, H, S, 8)
QUERIES, KEYS, HEADS = array(T, 1), array(S), array(H, 1, 1)
PAIRS = array(T, S)
SEEN = RNG.integers(0, 4, (B, 1, T, S)) > 0
SEEN[..., 0] = True
ALL_BUT_ONE = np.ones((T, S), bool)
ALL_BUT_ONE[7, 11] = False
SEGMENTS = np.where(np.arange(S) == 13, 1000, 1).astype("i4")
OUTLIER = np.where(np.arange(S) == 5, 50, 0.1).astype("f")
HUGE = np.where(np.arange(S) == 5, 3e6, 1.0).astype("f")
NO_ROW = np.ones((T, S), bool)
NO_ROW[3] = False
ROW, COL = np.arange(T)[:, None], np.arange(S)


def scores(q, k):
    return q @ k.swapaxes(-1, -2)


def of_scores(change):
    """Attention with its scores changed."""
    return lambda q, k, v, *more: ft.nn.softmax(change(scores(q, k), *more)) @ v


def of_weights(change):
    """Attention with its weights changed."""
    return lambda q, k, v, *more: change(ft.nn.softmax(scores(q, k)), *more) @ v


def of_exponentials(change):
    """Exponentials of scores, made weights by a function."""
    def fun(q, k, v, *more):
        s = scores(q, k)
        return change(jnp.exp(s - ft.lax.stop_gradient(s.max(-1, keepdims=True))), *more) @ v
    return fun


def total(e):
    return e.sum(-1, keepdims=True)


def of_values(change):
    return lambda q, k, v, *more: change(ft.nn.softmax(scores(q, k)), v, *more)


def causal_after(n):
    return of_weights(lambda p: jnp.where(jnp.arange(T)[:, None] + n >= jnp.arange(S), p, 0))


NEAR_MISSES = {
    # scales that are no number
    "scale per key": (of_scores(lambda s, x: s * x), KEYS),
    "scale per query": (of_scores(lambda s, x: s * x), QUERIES),
    "scale per head": (of_scores(lambda s, x: s * x), HEADS),
    "scale per pair": (of_scores(lambda s, x: s / (2 + x * x)), PAIRS),
    "scale of one key": (of_scores(lambda s: jnp.where(jnp.arange(S) == 17, 3 * s, s)),),
    "temperature": (of_scores(lambda s, x: s / x), np.float32(3)),
    # other axes
    "softmax of queries": (lambda q, k, v: ft.nn.softmax(scores(q, k), -2) @ v,),
    "softmax of heads": (lambda q, k, v: ft.nn.softmax(scores(q, k), 1) @ v,),
    "softmax of the batch": (lambda q, k, v: ft.nn.softmax(scores(q, k), 0) @ v,),
    "softmax of queries and keys": (lambda q, k, v: ft.nn.softmax(scores(q, k), (-1, -2)) @ v,),
    "sums of queries": (of_exponentials(lambda e: e / e.sum(-2, keepdims=True)),),
    # masks after the softmax
    "mask of weights": (of_weights(lambda p, m: jnp.where(m, p, 0)), SEEN),
    "mask of weights, a product": (of_weights(lambda p, m: p * m), SEEN),
    "mask of one weight": (of_weights(lambda p, m: jnp.where(m, p, 0)), ALL_BUT_ONE),
    "weight of one key": (of_weights(lambda p: jnp.where(jnp.arange(S) == 17, 0, p)),),
    "weight of one pair": (of_weights(lambda p: jnp.where(
        (jnp.arange(T)[:, None] == 7) & (jnp.arange(S) == 11), 0, p)),),
    "weight of the first query": (of_weights(lambda p: jnp.where(
        jnp.arange(T)[:, None] > 0, p, 2 * p)),),
    "mask of segments": (of_weights(lambda p, x: jnp.where(x < 100, p, 0)), SEGMENTS),
    "mask of outliers": (of_weights(lambda p, x: jnp.where(x < 10, p, 0)), OUTLIER),
    "causal after": (causal_after(0),),
    "causal after, n": (causal_after(5),),
    "causal after, all but a pair": (causal_after(S - 2),),
    "large weights": (of_weights(lambda p: jnp.where(p < 0.3, p, 0)),),
    "small weights": (of_weights(lambda p: jnp.where(p > 0.01, p, 0)),),
    "mask of exponentials": (of_exponentials(lambda e, m: jnp.where(m, e, 0) / total(e)), SEEN),
    "mask of sums": (of_exponentials(lambda e, m: e / total(jnp.where(m, e, 0))), SEEN),
    "another mask of sums": (of_exponentials(lambda e, m, n: jnp.where(m, e, 0) / total(
        jnp.where(n, e, 0))), SEEN, ALL_BUT_ONE),
    # dropout
    "dropout": (of_weights(lambda p, m: jnp.where(m, p / 0.75, 0)), SEEN),
    "dropout, a product": (of_weights(lambda p, m: p * m / 0.75), SEEN),
    "dropout of numbers": (of_weights(lambda p, m: p * m), SEEN.astype("f") / 0.75),
    # normalisers
    "sum without a key": (of_exponentials(lambda e: e / total(e[..., 1:])),),
    "sum without the last key": (of_exponentials(lambda e: e / total(jnp.where(
        jnp.arange(S) < S - 1, e, 0))),),
    "sum and a sink": (of_exponentials(lambda e: e / (total(e) + 1)),),
    "sum and a number": (lambda q, k, v: (lambda e: e / (total(e) + 1e-6))(
        jnp.exp(scores(q, k) - 16)) @ v,),
    "sum and a small number": (lambda q, k, v: (lambda e: e / (total(e) + 1e-9))(
        jnp.exp(scores(q, k) - 20)) @ v,),
    "sum of twice a key": (of_exponentials(lambda e: e / (total(e) + e[..., 3:4])),),
    "mean": (of_exponentials(lambda e: e / e.mean(-1, keepdims=True)),),
    "maximum": (of_exponentials(lambda e: e / e.max(-1, keepdims=True)),),
    "another shift of the sum": (lambda q, k, v, x: (lambda s: jnp.exp(s - x) / total(jnp.exp(
        s)))(scores(q, k)) @ v, QUERIES),
    "a shift of keys": (lambda q, k, v, x: (lambda s: jnp.exp(s - x) / total(jnp.exp(s)))(
        scores(q, k)) @ v, KEYS),
    "a guard that is no 0": (of_exponentials(lambda e, m: (lambda e: jnp.where(
        total(e) == 0, 1 / S, e / total(e)))(jnp.where(m, e, 0))), NO_ROW),
    "a guard of small sums": (lambda q, k, v: (lambda e: jnp.where(total(e) < 1e-6, 0, e / total(
        e)))(jnp.exp(scores(q, k) - 20)) @ v,),
    "a sum that is at least a number": (lambda q, k, v: (lambda e: e / jnp.maximum(total(
        e), 1e-6))(jnp.exp(scores(q, k) - 20)) @ v,),
    # weights with something besides
    "weights and a bit": (of_weights(lambda p, x: p + 1e-6 * x), HUGE),
    "weights and a part": (of_weights(lambda p, x: p * (1 + 1e-7 * x)), HUGE),
    "part of the sum": (of_exponentials(lambda e, x: e / (total(e) * (1 + 1e-7 * x))), HUGE),
    "whole numbers": (of_weights(lambda p: (8 * p).astype("i4").astype("f") / 8),),
    "whole numbers of scores": (lambda q, k, v: ft.nn.softmax(scores(q, k).astype("i4").astype(
        "f")) @ v,),
    "bytes": (of_weights(lambda p: (300 * p).astype("u1").astype("f")),),
    "weights of few bits": (of_weights(lambda p: p.astype("float8_e5m2").astype("f")),),
    "scores of few bits": (of_scores(lambda s: s.astype("float8_e5m2").astype("f")),),
    "signs": (of_weights(lambda p: (p != 0).astype("f")),),
    "squares": (of_weights(lambda p: p * p),),
    "bounded": (of_weights(lambda p: jnp.minimum(p, 0.2)),),
    "nan_to_num": (of_weights(lambda p: jnp.nan_to_num(p, nan=3.0)),),
    # values
    "values of other keys": (of_values(lambda p, v: p @ jnp.roll(p.swapaxes(-1, -2) @ p, 1, -1)
                                       @ v),),
    "weights of other keys": (of_weights(lambda p: jnp.roll(p, 1, -1)),),
    "weights of other queries": (of_weights(lambda p: jnp.roll(p, 1, -2)),),
    "weights from the end": (of_weights(lambda p: p[..., ::-1]),),
    "weights of other heads": (of_weights(lambda p: p[:, ::-1]),),
    "weights but the first": (lambda q, k, v: ft.nn.softmax(scores(q, k))[..., 1:] @ v[:, :, 1:],),
    "scores of other keys": (lambda q, k, v: (lambda s: jnp.exp(jnp.roll(s, 1, -1)) / total(
        jnp.exp(s + jnp.roll(s, 1, -1))))(scores(q, k)) @ v,),
    # functions of scores
    "capped": (of_scores(lambda s: 3 * jnp.tanh(s / 3)),),
    "absolute": (of_scores(jnp.abs),),
    "positive": (of_scores(lambda s: jnp.maximum(s, 0)),),
    "a choice of scores": (of_scores(lambda s: jnp.where(s > 2.5, 0, s)),),
    "twice": (of_scores(lambda s: s + 1e-3 * s * s),),
    "a small weight": (of_scores(lambda s, m: jnp.where(m, s, -5.0)), SEEN),
    "a mask, then a bias": (of_scores(lambda s, m, x: jnp.where(m, s, -1e4) + 1e4 * x), SEEN, KEYS),
}


def gradient(fun):
    def both(ct, q, k, v, *more):
        out, pull = ft.vjp(lambda *xs: fun(*xs, *more), q, k, v)
        return out, *pull(ct)
    return both


CT = array(B, H, T, 8)


def attention_kernels(program):
    return [k for k in kernels_of(program) if "attention" in k]


@pytest.mark.one_in(6)
@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_are_no_attention(name):
    fun, *more = NEAR_MISSES[name]
    assert not attention_kernels(check(fun, Q, K, V, *more, tolerance=5e-5))


@pytest.mark.one_in(18)
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_gradients_of_near_misses(name):
    fun, *more = NEAR_MISSES[name]
    found = attention_kernels(check(gradient(fun), CT, Q, K, V, *more, tolerance=2e-4))
    # of a softmax of queries, the gradient of values is attention: of keys, as queries, to queries
    assert bool(found) == (name == "softmax of queries")


LARGE = 40 * Q
NO_ROW_AT_ALL = np.broadcast_to(NO_ROW, (B, 1, T, S)).copy()
FLOORS = np.where(np.arange(T)[:, None] == 4, -np.inf, 0).astype("f")
BUCKETS = RNG.integers(0, 9, (T, S)).astype("i4")


def narrow_causal(dtype, size):
    def fun(q, k, v):
        row, col = jnp.arange(size).astype(dtype)[:, None], jnp.arange(size).astype(dtype)
        return ft.nn.softmax(jnp.where(row >= col, scores(q, k), -jnp.inf)) @ v
    return fun


def unsigned_causal(s):
    """Differences of unsigned integers, which are never below 0: all is seen."""
    row, col = jnp.arange(T, dtype="u4")[:, None], jnp.arange(S, dtype="u4")
    return jnp.where(row - col >= 0, s, -jnp.inf)


def offset(n):
    return of_scores(lambda s: jnp.where(
        jnp.arange(T)[:, None] + n >= jnp.arange(S), s, -jnp.inf))


# attention, and what it does where it differs most from what is usual
EDGES = {
    "causal, an offset": (offset(5),),
    "causal, one pair hidden": (offset(S - 2),),
    "causal, half of the rows see nothing": (offset(-T // 2),),
    "causal by numbers, rows that see nothing": (of_scores(lambda s: jnp.where(
        jnp.arange(T)[:, None] - 3 >= jnp.arange(S), s, -1e9)),),
    "hidden by a number": (of_scores(lambda s, m: jnp.where(m, s, -1e9)), NO_ROW),
    "hidden by a number, scaled": (of_scores(lambda s, m: jnp.where(m, s, -4e9) * 0.25), NO_ROW),
    "hidden by two numbers": (of_scores(lambda s, m, n: jnp.where(
        n, jnp.where(m, s, -1e9), -2e9)), NO_ROW, SEEN),
    "hidden by a number twice": (of_scores(lambda s, m, n: jnp.where(
        n, jnp.where(m, s, -1e9), -1e9)), NO_ROW, SEEN),
    "hidden by a number, then infinity": (of_scores(lambda s, m, n: jnp.where(
        n, jnp.where(m, s, -1e9), -jnp.inf)), NO_ROW, SEEN),
    "hidden by infinity, then a number": (of_scores(lambda s, m, n: jnp.where(
        n, jnp.where(m, s, -jnp.inf), -1e9)), SEEN, NO_ROW),
    "causal, then hidden by a number": (of_scores(lambda s, n: jnp.where(n, jnp.where(
        jnp.arange(T)[:, None] >= jnp.arange(S), s, -jnp.inf), -1e9)), NO_ROW),
    "hidden by a number, then causal": (of_scores(lambda s, n: jnp.where(
        jnp.arange(T)[:, None] >= jnp.arange(S), jnp.where(n, s, -1e9), -jnp.inf)), NO_ROW),
    "a bias, then hidden by a number": (of_scores(lambda s, m, x: jnp.where(
        m, s + x, -1e9)), NO_ROW, 100 * PAIRS),
    "hidden by a number, then a bias": (of_scores(lambda s, m, x: jnp.where(
        m, s, -1e9) + x), SEEN, PAIRS),
    "a small number is added": (of_scores(lambda s, m: s + jnp.where(m, 0, -1e9)), SEEN),
    "weights are hidden again": (lambda q, k, v, m: jnp.where(m, ft.nn.softmax(jnp.where(
        m, scores(q, k), -jnp.inf)), 0) @ v, NO_ROW),
    "a bias of the query": (of_scores(lambda s, x: s + 10 * x), QUERIES),
    "a bias of the key": (of_scores(lambda s, x: s + x), KEYS),
    "a bias of the head": (of_scores(lambda s, x: s - x), HEADS),
    "a bias of pairs": (of_scores(lambda s, x: s + x), PAIRS),
    "a tiny bias": (of_scores(lambda s, x: s + 1e-7 * x), HUGE),
    "a bias of buckets": (lambda q, k, v, t, x: ft.nn.softmax(scores(q, k) + t[x]) @ v, KEYS,
                          BUCKETS),
    "queries that are hidden": (of_scores(lambda s, x: s + x), FLOORS),
    "another shift": (lambda q, k, v, x: (lambda e: e / total(e))(jnp.exp(
        scores(q, k) - x)) @ v, QUERIES),
    "a shift that is infinite": (lambda q, k, v, x: (lambda e: e / total(e))(jnp.exp(
        scores(q, k) + x)) @ v, FLOORS),
    "the maximum of a part": (lambda q, k, v, m: (lambda s: (lambda e: e / total(e))(jnp.exp(
        s - ft.lax.stop_gradient(jnp.where(m, s, -jnp.inf).max(-1, keepdims=True)))))(
            scores(q, k)) @ v, NO_ROW),
    "a maximum that is finite": (lambda q, k, v, m: (lambda s: (lambda e: e / total(e))(jnp.exp(
        s - ft.lax.stop_gradient(jnp.nan_to_num(s.max(-1, keepdims=True), neginf=0.0)))))(
            jnp.where(m, scores(q, k), -jnp.inf)) @ v, SEEN),
    "differences without a sign": (of_scores(unsigned_causal),),
}


# no kernel of attention has rows in which some keys are hidden by a number, others by another or by
# infinity, or after which something is added
BESIDE_KERNELS = {
    "hidden by two numbers", "hidden by a number, then infinity",
    "hidden by infinity, then a number", "causal, then hidden by a number",
    "hidden by a number, then causal", "hidden by a number, then a bias",
    "the maximum of a part"}
# without a maximum exponentials of large scores are infinite, and those of attention are not
SMALL_ONLY = {"another shift", "a shift that is infinite"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    fun, *more = EDGES[name]
    for q in (Q, LARGE)[:1 if name in SMALL_ONLY else 2]:
        program = check(fun, q, K, V, *more, tolerance=1e-4)
        assert bool(attention_kernels(program)) == (name not in BESIDE_KERNELS)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", EDGES)
def test_gradients_of_edges(name):
    fun, *more = EDGES[name]
    for q in (Q, LARGE)[:1 if name in SMALL_ONLY else 2]:
        check(gradient(fun), CT, q, K, V, *more, tolerance=1e-3)


def test_causality_in_bytes():
    """Places from 128 on are negative in signed ones."""
    q, k, v = array(1, 136, 16), array(1, 136, 16), array(1, 136, 8)
    check(narrow_causal("i1", 136), q, k, v)
    assert attention_kernels(check(narrow_causal("u1", 136), q, k, v))
