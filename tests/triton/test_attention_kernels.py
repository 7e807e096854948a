"""Attention in many spellings is one kernel, and what only looks like it is not."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.triton.machine.device import binaries
from tests.triton.emulated import check, kernels_of, program_of

RNG = np.random.default_rng(0)
B, H, T, S, D = 2, 3, 40, 24, 16


def array(*shape):
    return RNG.normal(size=shape).astype("f")


Q, K, V = array(B, H, T, D), array(B, H, S, D), array(B, H, S, 8)
BTHD = array(B, T, H, D), array(B, S, H, D), array(B, S, H, D)
SEEN = RNG.integers(0, 2, (B, 1, T, S)).astype(bool)
SEEN[..., 0] = True
BIAS = array(H, T, S)
PADDED = np.arange(S) < np.array([[5], [24]])


def attend(q, k, v, change=lambda s: s, softmax=ft.nn.softmax):
    return softmax(change(q @ k.swapaxes(-1, -2))) @ v


def scaled(s):
    return s * 0.25


def exponentials(s):
    e = jnp.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def stopped(s):
    e = jnp.exp(s - ft.lax.stop_gradient(s.max(-1, keepdims=True)))
    return e * (1 / e.sum(-1, keepdims=True))


def plain(s):
    return jnp.exp(s) / jnp.exp(s).sum(-1, keepdims=True)


def by_logarithms(s):
    return jnp.exp(ft.nn.log_softmax(s))


def causal(n=0, fill=-np.inf, strict=False):
    def change(s):
        row, col = jnp.arange(s.shape[-2])[:, None], jnp.arange(s.shape[-1])
        seen = row + n > col if strict else col <= row + n
        return jnp.where(seen, s * 0.25, fill)
    return change


def hidden(fill):
    def change(s):
        row, col = jnp.arange(s.shape[-2])[:, None], jnp.arange(s.shape[-1])
        return jnp.where(col > row, fill, s * 0.25)
    return change


def triangle(s):
    return jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s * 0.25, -1e9)


def added(s):
    seen = jnp.arange(s.shape[-2])[:, None] >= jnp.arange(s.shape[-1])
    return s * 0.25 + jnp.where(seen, 0, -jnp.inf)


def grouped(q, k, v):
    q = q.reshape(B, 2, 3, T, D)
    s = jnp.einsum("bhgqd,bhkd->bhgqk", q, k) * 0.25
    return jnp.einsum("bhgqk,bhkd->bhgqd", ft.nn.softmax(s), v).reshape(B, 6, T, D)


def repeated(q, k, v):
    return attend(q, jnp.repeat(k, 3, 1), jnp.repeat(v, 3, 1), scaled)


GROUPED = array(B, 6, T, D), array(B, 2, S, D), array(B, 2, S, D)
DPA = array(B, T, 6, D), array(B, S, 2, D), array(B, S, 2, D)


def in_heads(q, k, v):
    def split(x):
        return x.reshape(B, -1, H, D).swapaxes(1, 2)

    out = attend(split(q), split(k), split(v), scaled)
    return out.swapaxes(1, 2).reshape(B, T, H * D)


def half(q, k, v):
    s = (q @ k.swapaxes(-1, -2)).astype("f") * 0.25
    return ft.nn.softmax(s).astype(q.dtype) @ v


SPELLINGS = {
    "softmax": (lambda q, k, v: attend(q, k, v), (Q, K, V)),
    "scale after": (lambda q, k, v: attend(q, k, v, scaled), (Q, K, V)),
    "divided": (lambda q, k, v: attend(q, k, v, lambda s: s / 4.0), (Q, K, V)),
    "scale before": (lambda q, k, v: attend(q * 0.25, k, v), (Q, K, V)),
    "scaled keys": (lambda q, k, v: attend(q, k / 4.0, v), (Q, K, V)),
    "exponentials": (lambda q, k, v: attend(q, k, v, scaled, exponentials), (Q, K, V)),
    "stopped maximum": (lambda q, k, v: attend(q, k, v, scaled, stopped), (Q, K, V)),
    "no maximum": (lambda q, k, v: attend(q, k, v, scaled, plain), (Q, K, V)),
    "log softmax": (lambda q, k, v: attend(q, k, v, scaled, by_logarithms), (Q, K, V)),
    "einsum": (lambda q, k, v: jnp.einsum("bhqk,bhkd->bhqd", ft.nn.softmax(
        jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4), v), (Q, K, V)),
    "einsum of rows first": (lambda q, k, v: jnp.einsum("bhqk,bkhd->bqhd", ft.nn.softmax(
        jnp.einsum("bqhd,bkhd->bhqk", q * 0.25, k)), v), BTHD),
    "keys first": (lambda q, k, v: jnp.einsum("bkqh,bkhd->bqhd", ft.nn.softmax(
        jnp.einsum("bqhd,bkhd->bkqh", q, k) / 4, axis=1), v), BTHD),
    "projected heads": (in_heads, (array(B, T, H * D), array(B, S, H * D), array(B, S, H * D))),
    "one head": (lambda q, k, v: attend(q, k, v, scaled), (Q[0, 0], K[0, 0], V[0, 0])),
    "no batch": (lambda q, k, v: attend(q, k, v, scaled), (Q[0], K[0], V[0])),
    "vmapped": (ft.vmap(ft.vmap(lambda q, k, v: attend(q, k, v, scaled))), (Q, K, V)),
    "causal": (lambda q, k, v: attend(q, k, v, causal()), (Q, K, V)),
    "causal, strictly": (lambda q, k, v: attend(q, k, v, causal(1, strict=True)), (Q, K, V)),
    "causal, -1e9": (lambda q, k, v: attend(q, k, v, causal(0, -1e9)), (Q, K, V)),
    "causal, -1e4": (lambda q, k, v: attend(q, k, v, causal(2, -1e4)), (Q, K, V)),
    "causal, hidden": (lambda q, k, v: attend(q, k, v, hidden(-1e30)), (Q, K, V)),
    "causal, triangle": (lambda q, k, v: attend(q, k, v, triangle), (Q, K, V)),
    "causal, added": (lambda q, k, v: attend(q, k, v, added), (Q, K, V)),
    "mask": (lambda q, k, v, m: attend(q, k, v, lambda s: jnp.where(m, s, -jnp.inf)),
             (Q, K, V, SEEN)),
    "mask, -1e9": (lambda q, k, v, m: attend(q, k, v, lambda s: jnp.where(m, s / 4, -1e9)),
                   (Q, K, V, SEEN)),
    "padding": (lambda q, k, v, m: attend(q, k, v, lambda s: jnp.where(
        m[:, None, None], s, -1e30)), (Q, K, V, PADDED)),
    "padding and causal": (lambda q, k, v, m: attend(q, k, v, lambda s: causal()(jnp.where(
        m[:, None, None], s, -jnp.inf))), (Q, K, V, PADDED)),
    "padding added": (lambda q, k, v, m: attend(q, k, v, lambda s: s / 4 + jnp.where(
        m[:, None, None], 0, -1e9)), (Q, K, V, PADDED)),
    "bias": (lambda q, k, v, b: attend(q, k, v, lambda s: s / 4 + b), (Q, K, V, BIAS)),
    "distances": (lambda q, k, v: attend(q, k, v, lambda s: causal()(s - 0.1 * jnp.abs(
        jnp.arange(T)[:, None] - jnp.arange(S)))), (Q, K, V)),
    "grouped heads": (grouped, GROUPED),
    "repeated heads": (repeated, GROUPED),
    "dot_product_attention": (ft.nn.dot_product_attention, BTHD),
    "dpa, causal": (lambda q, k, v: ft.nn.dot_product_attention(q, k, v, is_causal=True), BTHD),
    "dpa, grouped": (ft.nn.dot_product_attention, DPA),
    "dpa, grouped, long": (ft.nn.dot_product_attention, (
        array(B, T, 6, D), array(B, 56, 2, D), array(B, 56, 2, D))),
    "dpa, grouped, causal": (lambda q, k, v: ft.nn.dot_product_attention(
        q, k, v, is_causal=True), DPA),
    "dpa, mask": (lambda q, k, v, m: ft.nn.dot_product_attention(q, k, v, mask=m), (*BTHD, SEEN)),
    "dpa, grouped, bias": (lambda q, k, v, b: ft.nn.dot_product_attention(q, k, v, b),
                           (*DPA, array(1, 6, T, S))),
    "dpa, window": (lambda q, k, v: ft.nn.dot_product_attention(
        q, k, v, is_causal=True, local_window_size=7), BTHD),
    "dpa, lengths": (lambda q, k, v, n: ft.nn.dot_product_attention(
        q, k, v, key_value_seq_lengths=n), (*BTHD, np.array([4, 20], "i4"))),
    "bfloat16": (half, tuple(x.astype("bfloat16") for x in (Q, K, V))),
    "float16": (half, tuple(x.astype("float16") for x in (Q, K, V))),
    "bfloat16 softmax": (lambda q, k, v: attend(q, k, v, scaled), tuple(
        x.astype("bfloat16") for x in (Q, K, V))),
    "dpa, bfloat16": (lambda q, k, v: ft.nn.dot_product_attention(q, k, v, is_causal=True),
                      tuple(x.astype("bfloat16") for x in BTHD)),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    fun, args = SPELLINGS[name]
    found = kernels_of(check(fun, *args, tolerance=2e-5))
    assert "attention" in found
    assert not any("matmul" in k for k in found)


def gradient(fun, count):
    def both(ct, *args):
        out, pull = ft.vjp(lambda *xs: fun(*xs, *args[count:]), *args[:count])
        return out, *pull(ct)
    return both


@pytest.mark.one_in(9)
@pytest.mark.parametrize("name", SPELLINGS)
def test_gradients(name):
    fun, args = SPELLINGS[name]
    out = fun(*map(jnp.asarray, args))
    found = kernels_of(check(gradient(fun, 3), array(*out.shape).astype(out.dtype), *args,
                             tolerance=1e-4))
    assert [k for k in found if k.startswith(("attention", "matmul"))] == [
        "attention", "attention_gradient_q", "attention_gradient_kv"]


def test_causal_attention_has_no_mask():
    for name in [n for n in SPELLINGS if n.startswith("causal")]:
        _, program, _ = program_of(*(lambda f, a: (f, *a))(*SPELLINGS[name]))
        (source,) = program.sources[1:]
        assert "offset" in source
        assert "mask" not in source.split("(", 2)[1]


@pytest.mark.parametrize("name", ["projected heads", "einsum of rows first", "keys first",
                                  "dpa, grouped, long", "dpa, bfloat16", "bfloat16"])
def test_results_are_written_where_they_go(name):
    fun, args = SPELLINGS[name]
    _, program, _ = program_of(fun, *args)
    assert kernels_of(program) == ["attention"]
    out = fun(*map(jnp.asarray, args))
    _, program, _ = program_of(gradient(fun, 3), array(*out.shape).astype(out.dtype), *args)
    assert kernels_of(program) == ["attention", "attention_gradient_q", "attention_gradient_kv"]


JOINED = {
    "axis of three": (3 * H * D, lambda x: [x.reshape(B, T, 3, H, D)[:, :, k] for k in range(3)]),
    "split columns": (3 * H * D, lambda x: [y.reshape(B, T, H, D) for y in jnp.split(x, 3, -1)]),
    "values first": (3 * H * D, lambda x: [x.reshape(B, T, H, 3, D)[..., k, :]
                                           for k in (2, 0, 1)]),
    "shared keys": (8 * D, lambda x: [
        y.reshape(B, T, -1, D) for y in jnp.split(x, [4 * D, 6 * D], -1)]),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_parts_of_a_product_are_written_where_they_are_joined(name, dtype):
    width, parts = JOINED[name]
    x, w = array(B, T, 12).astype(dtype), (array(12, width) / 3).astype(dtype)

    def loss(x, w):
        q, k, v = parts(x @ w)
        return (ft.nn.dot_product_attention(q, k, v, is_causal=True) ** 2).sum(dtype="float32")

    program = check(ft.grad(loss, (0, 1)), x, w, tolerance=2e-3)
    kernels = kernels_of(program)
    assert sum("attention" in n for n in kernels) == 3
    after = kernels[kernels.index("attention_gradient_kv") + 1:]
    assert after and all("matmul" in n for n in after), kernels


def test_gradients_of_some_operands():
    for argnums in (0, 1, 2, (0, 1), (1, 2)):
        loss = ft.grad(lambda q, k, v, w: (attend(q, k, v, causal()) * w).sum(), argnums)
        found = kernels_of(check(loss, Q, K, V, array(B, H, T, 8), tolerance=1e-4))
        if argnums != 2:
            assert "attention_gradient_q" in found


def test_layers_share_nothing():
    def layers(x, w):
        for _ in range(2):
            q, k, v = jnp.split(x @ w, 3, -1)
            x = x + in_heads(q, k, v)
        return (x ** 2).sum()

    program = check(ft.grad(layers, (0, 1)), array(B, T, H * D), array(H * D, 3 * H * D) / 8,
                    tolerance=1e-3)
    found = kernels_of(program)
    assert [found.count(k) for k in (
        "attention", "attention_gradient_q", "attention_gradient_kv")] == [2, 2, 2]


def test_a_loop_of_layers():
    def layers(x, ws):
        def layer(x, w):
            q, k, v = jnp.split(x @ w, 3, -1)
            return x + in_heads(q, k, v), None

        return ft.lax.scan(layer, x, ws)[0]

    program = check(layers, array(B, T, H * D), array(2, H * D, 3 * H * D) / 8, tolerance=1e-3)
    assert any("def attention(" in s for s in program.sources)


def test_rows_that_see_nothing_have_no_gradient():
    seen = SEEN.copy()
    seen[0, 0, 3] = False
    loss = ft.grad(lambda q, k, v, m, w: (
        ft.nn.dot_product_attention(q, k, v, mask=m) * w).sum(), (0, 1, 2))
    found = kernels_of(check(loss, *BTHD, seen, array(B, T, H, D), tolerance=1e-4))
    assert "attention_gradient_q" in found


def test_rows_that_see_nothing():
    seen = SEEN.copy()
    seen[0, 0, 3] = False

    def masked(q, k, v, m, fill):
        return attend(q, k, v, lambda s: jnp.where(m, s, fill))

    for fill in (-np.inf, -1e9):  # NaN, and the mean of all values
        program = check(lambda *a, fill=fill: masked(*a, fill), Q, K, V, seen, tolerance=2e-5)
        assert kernels_of(program)[-1] == "attention"
    check(lambda q, k, v, m: ft.nn.dot_product_attention(q, k, v, mask=m), *BTHD, seen)


def test_rows_whose_keys_are_all_padding():
    padding = np.arange(S) < 4  # the first rows see only those

    def both(q, k, v, m):
        return attend(q, k, v, lambda s: causal(0, -1e9)(jnp.where(m, -4e9, s)))

    program = check(both, Q, K, V, padding, tolerance=2e-5)
    assert kernels_of(program)[-1] == "attention"


def dropped(q, k, v, m):
    p = ft.nn.softmax(q @ k.swapaxes(-1, -2))
    return jnp.where(m, p / 0.9, 0) @ v


DIFFERENT = {
    "other axis": (lambda q, k, v: attend(q, k, v, softmax=lambda s: ft.nn.softmax(s, -2)),
                   (Q, K, V)),
    "weights are a result": (lambda q, k, v: (lambda p: (p @ v, p))(
        ft.nn.softmax(q @ k.swapaxes(-1, -2))), (Q, K, V)),
    "scores are a result": (lambda q, k, v: (lambda s: (ft.nn.softmax(s) @ v, s))(
        q @ k.swapaxes(-1, -2)), (Q, K, V)),
    "dropout": (dropped, (Q, K, V, SEEN)),
    "no sum": (lambda q, k, v: jnp.exp(q @ k.swapaxes(-1, -2) / 9) @ v, (Q, K, V)),
    "sum of squares": (lambda q, k, v: attend(q, k, v, softmax=lambda s: (lambda e: e / (
        e * e).sum(-1, keepdims=True))(jnp.exp(s / 9))), (Q, K, V)),
    "other sum": (lambda q, k, v: attend(q, k, v, softmax=lambda s: jnp.exp(s / 9) / (
        1 + jnp.exp(s / 9).sum(-1, keepdims=True))), (Q, K, V)),
    "capped": (lambda q, k, v: attend(q, k, v, jnp.tanh), (Q, K, V)),
    "squared": (lambda q, k, v: attend(q, k, v, lambda s: s * s / 9), (Q, K, V)),
    "scale of rows": (lambda q, k, v, b: attend(q, k, v, lambda s: s * b), (Q, K, V, BIAS)),
    "small weights": (lambda q, k, v, m: attend(q, k, v, lambda s: jnp.where(m, s, -5.0)),
                      (Q, K, V, SEEN)),
    "mask, -1e4": (lambda q, k, v, m: attend(q, k, v, lambda s: jnp.where(m, s, -1e4)),
                   (Q, K, V, SEEN)),
    "masked weights": (lambda q, k, v, m: (lambda p: jnp.where(m, p, 0) @ v)(
        ft.nn.softmax(q @ k.swapaxes(-1, -2))), (Q, K, V, SEEN)),
    "weights of others": (lambda q, k, v: ft.nn.softmax(q @ k.swapaxes(-1, -2))[::-1] @ v,
                          (Q, K, V)),
    "no scale": (lambda q, k, v: attend(q, k, v, lambda s: s * 0.0), (Q, K, V)),
    "no keys": (lambda q, k, v: attend(q, k[:, :, :0], v[:, :, :0], softmax=plain), (Q, K, V)),
    "float64": (lambda q, k, v: attend(q, k, v), tuple(x.astype("d") for x in (Q, K, V))),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_no_attention(name):
    fun, args = DIFFERENT[name]
    assert "attention" not in " ".join(kernels_of(check(fun, *args)))


def test_the_gradient_of_a_bias_keeps_the_weights():
    loss = ft.grad(lambda b, q, k, v: (attend(q, k, v, lambda s: s + b) ** 2).sum())
    assert "attention" not in kernels_of(check(loss, BIAS, Q, K, V, tolerance=1e-3))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["causal", "padding", "dpa, bfloat16", "grouped heads"])
def test_kernels_compile(name):
    fun, args = SPELLINGS[name]
    out = fun(*map(jnp.asarray, args))
    _, program, _ = program_of(gradient(fun, 3), array(*out.shape).astype(out.dtype), *args)
    for binary in binaries(program).values():
        assert binary.cubin[:4] == b"\x7fELF"


def test_weights_are_in_no_memory():
    q = np.zeros((2, 4, 2048, 64), "f")
    _, program, _ = program_of(gradient(lambda q, k, v: attend(q, k, v, causal()), 3), q, q, q, q)
    assert program.arena_bytes < 2 * q.nbytes
