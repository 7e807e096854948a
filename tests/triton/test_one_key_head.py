"""Queries of many heads and keys of one (multi-query attention): one kernel however it is written,
and three for the gradients, also of losses that multiply by a number."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import nn
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(7)
B, H, S, T, D = 2, 4, 24, 40, 16
HEADS_FIRST, ROWS_FIRST = (B, H, S, D), (B, S, H, D)
PLAIN, WITH_HEAD, HEAD_LAST = (B, T, D), (B, 1, T, D), (B, T, 1, D)


def by_exponentials(s):
    e = jnp.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def einsum(scores, result, softmax=nn.softmax, change=lambda s: s):
    def fun(q, k, v):
        weights = softmax(change(jnp.einsum(scores, q, k) / 4))
        return jnp.einsum(result, weights, v)
    return fun


def product(q, k, v):
    return nn.softmax(q @ k.swapaxes(-1, -2) / 4) @ v


def causal(s):
    return jnp.where(jnp.arange(s.shape[-1]) <= jnp.arange(s.shape[-2])[:, None] + 3, s, -jnp.inf)


def in_groups(q, k, v):
    s = jnp.einsum("bghqd,bgkd->bghqk", q.reshape(B, 1, H, S, D), k) / 4
    return jnp.einsum("bghqk,bgkd->bghqd", nn.softmax(s), v).reshape(B, H, S, D)


WAYS = {
    "einsum": (einsum("bhqd,bkd->bhqk", "bhqk,bkd->bhqd"), HEADS_FIRST, PLAIN),
    "einsum, a head": (einsum("bhqd,bgkd->bhqk", "bhqk,bgkd->bhqd"), HEADS_FIRST, WITH_HEAD),
    "einsum, rows first": (einsum("bqhd,bkd->bhqk", "bhqk,bkd->bqhd"), ROWS_FIRST, PLAIN),
    "einsum, scores by rows": (einsum("bqhd,bkd->bqhk", "bqhk,bkd->bqhd"), ROWS_FIRST, PLAIN),
    "causal, rows first": (einsum("bqhd,bkd->bhqk", "bhqk,bkd->bqhd", change=causal), ROWS_FIRST,
                           PLAIN),
    "causal": (einsum("bhqd,bkd->bhqk", "bhqk,bkd->bhqd", change=causal), HEADS_FIRST, PLAIN),
    "exponentials": (einsum("bhqd,bkd->bhqk", "bhqk,bkd->bhqd", by_exponentials), HEADS_FIRST,
                     PLAIN),
    "product": (product, HEADS_FIRST, WITH_HEAD),
    "none": (lambda q, k, v: product(q, k[:, None], v[:, None]), HEADS_FIRST, PLAIN),
    "broadcast": (lambda q, k, v: product(q, *[jnp.broadcast_to(x, (B, H, T, D)) for x in (k, v)]),
                  HEADS_FIRST, WITH_HEAD),
    "repeat": (lambda q, k, v: product(q, jnp.repeat(k, H, 1), jnp.repeat(v, H, 1)), HEADS_FIRST,
               WITH_HEAD),
    "tile": (lambda q, k, v: product(q, *[jnp.tile(x, (1, H, 1, 1)) for x in (k, v)]), HEADS_FIRST,
             WITH_HEAD),
    "vmap": (ft.vmap(ft.vmap(product, (0, None, None))), HEADS_FIRST, PLAIN),
    "groups": (in_groups, HEADS_FIRST, WITH_HEAD),
    "dpa": (nn.dot_product_attention, ROWS_FIRST, HEAD_LAST),
    "dpa, causal": (lambda *x: nn.dot_product_attention(*x, is_causal=True), ROWS_FIRST, HEAD_LAST),
}
LOSSES = {"sum of squares": lambda x: (x ** 2).sum(), "mean": lambda x: 3 * (x * x).mean()}
GRADIENT = ["attention", "attention_gradient_q", "attention_gradient_kv"]


def gradient(fun, loss):
    return ft.grad(lambda *x: loss(fun(*x).astype("float32")), (0, 1, 2))


def attention_of(names):
    return [n for n in names if n.startswith(("attention", "matmul"))]


@pytest.mark.parametrize("name", WAYS)
def test_one_kernel_and_three_for_gradients(name):
    fun, q, k = WAYS[name]
    dtype = ("float32", "bfloat16")[len(name) % 2]
    args = [RNG.normal(size=s).astype(dtype) for s in (q, k, k)]
    if name in ("einsum", "einsum, rows first", "dpa, causal"):  # the interpreter is slow
        assert attention_of(kernels_of(check(fun, *args, tolerance=2e-5))) == ["attention"]
        for loss in LOSSES.values():
            found = kernels_of(check(gradient(fun, loss), *args, tolerance=1e-4))
            assert attention_of(found) == GRADIENT
        return
    for f, expected in ((fun, GRADIENT[:1]), (gradient(fun, LOSSES["mean"]), GRADIENT)):
        assert attention_of(kernels_of(program_of(f, *args)[1])) == expected


def test_other_multiples_are_no_gradient_of_attention():
    """A cotangent that keys and queries do not have in common, to the number."""
    def grads(q, k, v, ct):
        p = nn.softmax(jnp.einsum("bhqd,bkd->bhqk", q, k))
        dp = jnp.einsum("bhqd,bkd->bhqk", ct, v * jnp.arange(1.0, 1 + D))
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        return (jnp.einsum("bhqk,bkd->bhqd", p, v), jnp.einsum("bhqk,bkd->bhqd", ds, k),
                jnp.einsum("bhqk,bhqd->bkd", p, ct))

    args = [RNG.normal(size=s).astype("f") for s in (HEADS_FIRST, PLAIN, PLAIN, HEADS_FIRST)]
    found = kernels_of(check(grads, *args, tolerance=1e-4))
    assert "attention_gradient_q" not in found
