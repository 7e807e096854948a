"""Random small networks of every kind of layer that has parameters.

A network is plain data. A sample is x of [T] tokens or [T, F] numbers and a target of [outputs];
every layer maps [T, F] to another [T, F] and asks `p(name, *shape)` for its parameters, which are
made as it first runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial as by
from typing import Any

import hypothesis.strategies as st
import ml_dtypes
import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, nn, tree
from tests.per_sample.packings import pack

TIMES = (1, 2, 5)
BATCHES = (1, 2, 3, 7)
LONGEST = 7  # what T grows to at most
VOCABULARY = 4
BFLOAT16, FLOAT32, FLOAT64 = map(np.dtype, (ml_dtypes.bfloat16, "float32", "float64"))
OTHER = {BFLOAT16: FLOAT32, FLOAT32: BFLOAT16, FLOAT64: FLOAT32}  # what some layers go through

Array = Any


class Parameters:
    """The parameters that layers ask for by name, made on demand where `aliases` is None."""

    def __init__(self, given: dict[str, Any] | None, other: Any, seed: int = 0) -> None:
        self.made: dict[str, Any] = {}
        self.aliases, self.other, self.seed, self.layer = given, other, seed, ""

    def __call__(self, name: str, *shape: int) -> Any:
        return self.named(f"{self.layer}.{name}", *shape)

    def named(self, name: str, *shape: int) -> Any:
        """A parameter that other layers may ask for, too."""
        if self.aliases is not None:
            return self.aliases[name]
        if name not in self.made:
            rng = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
            values = rng.uniform(0.2, 1.3, shape) * rng.choice([-1.0, 1.0], shape)
            self.made[name] = exact(values / np.sqrt(max(shape, default=1)))
        return jnp.asarray(self.made[name])


def exact(x: Any) -> np.ndarray[Any, Any]:
    """Numbers that every dtype represents, in float64."""
    return np.asarray(x, BFLOAT16).astype(np.float64)


def cast(p: Parameters, x: Array) -> Array:
    """x by way of another dtype."""
    return x.astype(p.other).astype(x.dtype)


def constant(x: Array, *shape: int) -> Array:
    """Fixed numbers of this shape in the dtype of x."""
    return jnp.asarray(np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape), x.dtype)


def ramp(x: Array) -> Array:
    """x with rows that differ, so that no two of them tie."""
    return x + constant(x, *x.shape) * 0.3


# dense layers: x [T, F] times something made of parameters, [F, o]

@ft.custom_vjp
def product(x: Array, w: Array) -> Array:
    return x @ w


product.defvjp(lambda x, w: (x @ w, (x, w)), lambda r, g: (g @ r[1].T, r[0].T @ g))

DENSE: dict[str, Callable[..., Array]] = {
    "matmul": lambda p, x, o: x @ p("w", x.shape[1], o),
    "matmul_left": lambda p, x, o: (p("w", x.shape[1], o).T @ x.T).T,
    "of_rows": lambda p, x, o: x @ p("w", o, x.shape[1]).T,
    "einsum": lambda p, x, o: jnp.einsum("ti,io->to", x, p("w", x.shape[1], o)),
    "einsum_out_in": lambda p, x, o: jnp.einsum("oi,ti->to", p("w", o, x.shape[1]), x),
    "tensordot": lambda p, x, o: jnp.tensordot(x, p("w", o, x.shape[1]), axes=[[1], [1]]),
    "dot_general": lambda p, x, o: lax.dot_general(p("w", x.shape[1], o), x,
                                                   (((0,), (1,)), ((), ()))).T,
    "row_by_row": lambda p, x, o: ft.vmap(lambda w, r: w @ r, (None, 0))(
        p("w", o, x.shape[1]), x),
    "mapped": lambda p, x, o: lax.map(by(lambda w, r: r @ w, p("w", x.shape[1], o)), x),
    "products": lambda p, x, o: (x[:, :, None] * p("w", x.shape[1], o)).sum(1),
    "custom_vjp": lambda p, x, o: product(x, p("w", x.shape[1], o)),
    "jitted": lambda p, x, o: ft.jit(jnp.matmul)(x, p("w", x.shape[1], o)),
    "reshaped": lambda p, x, o: x @ p("w", x.shape[1] * o).reshape(x.shape[1], o),
    "squeezed": lambda p, x, o: x @ p("w", 1, x.shape[1], 1, o)[0, :, 0],
    "sliced": lambda p, x, o: x @ p("w", x.shape[1] + 1, o + 2)[1:, :o],
    "strided": lambda p, x, o: x @ p("w", 2 * x.shape[1], o)[::2],
    "reversed": lambda p, x, o: x @ p("w", x.shape[1], o)[::-1],
    "padded": lambda p, x, o: x @ jnp.pad(p("w", x.shape[1], o), ((0, 0), (1, 0)))[:, :o],
    "gathered": lambda p, x, o: x @ p("w", 2, o)[jnp.arange(x.shape[1]) % 2],
    "broadcast": lambda p, x, o: x @ jnp.broadcast_to(p("w", 1, o), (x.shape[1], o)),
    "tiled": lambda p, x, o: jnp.concatenate([x, x], 1) @ jnp.tile(p("w", x.shape[1], o), (2, 1)),
    "joined": lambda p, x, o: x @ jnp.concatenate([p("v", x.shape[1], 1), p("w", x.shape[1], o)],
                                                  1)[:, 1:],
    "cast": lambda p, x, o: x @ cast(p, p("w", x.shape[1], o)),
    "cast_both": lambda p, x, o: (x.astype(p.other) @ p("w", x.shape[1], o).astype(p.other)
                                  ).astype(x.dtype),
    "masked": lambda p, x, o: x @ (p("w", x.shape[1], o) * constant(x, x.shape[1], o)),
    "scaled": lambda p, x, o: 0.5 * (x @ (2.5 * p("w", x.shape[1], o))),
    "normalised": lambda p, x, o: x @ unit(p("w", x.shape[1], o)) * p("g", o),
    "squashed": lambda p, x, o: x @ jnp.tanh(p("w", x.shape[1], o)),
    "whole": lambda p, x, o: (x.reshape(-1) @ p("w", x.size, o))[None],
    "whole_folded": lambda p, x, o: jnp.einsum("ti,tio->o", x, p("w", *x.shape, o))[None],
    "low_rank": lambda p, x, o: x @ (p("a", x.shape[1], 2) @ p("b", 2, o)),
    "low_rank_twice": lambda p, x, o: (x @ p("a", x.shape[1], 1)) @ p("b", 1, o),
    "adapted": lambda p, x, o: x @ (constant(x, x.shape[1], o) + p("a", x.shape[1], 1) @
                                    p("b", 1, o)),
    "kronecker": lambda p, x, o: x @ jnp.kron(p("a", x.shape[1], 1), p("b", 1, o)),
    "per_place": lambda p, x, o: jnp.einsum("ti,tio->to", x, p("w", x.shape[0], x.shape[1], o)),
    "mixture": lambda p, x, o: jnp.einsum("e,eio,ti->to", nn.softmax(p("m", 2)),
                                          p("w", 2, x.shape[1], o), x),
    "experts": lambda p, x, o: jnp.einsum("te,eio,ti->to", nn.softmax(x @ p("m", x.shape[1], 2)),
                                          p("w", 2, x.shape[1], o), x),
    "detached": lambda p, x, o: lax.stop_gradient(x @ p("v", x.shape[1], o)) +
    x @ p("w", x.shape[1], o),
    "linear_part": lambda p, x, o: ft.jvp(lambda a: jnp.tanh(a @ p("w", x.shape[1], o)), (x,),
                                          (jnp.cos(x),))[1],
}


def unit(w: Array) -> Array:
    return w * lax.rsqrt((w * w).sum(0) + 0.1)


# layers that keep the width

def layer_norm(x: Array, axis: int = -1) -> Array:
    centred = x - x.mean(axis, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(axis, keepdims=True) + 0.1)


def rms_norm(x: Array) -> Array:
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 0.1)


SAME: dict[str, Callable[..., Array]] = {
    "bias": lambda p, x: x + p("b", x.shape[1]),
    "bias_row": lambda p, x: x + p("b", 1, x.shape[1]),
    "bias_column": lambda p, x: x + p("b", x.shape[0], 1),
    "bias_scalar": lambda p, x: x - p("b"),
    "bias_joined": lambda p, x: x + jnp.concatenate([p("a", 1), p("b", x.shape[1])])[:x.shape[1]],
    "position": lambda p, x: x + p("e", LONGEST, x.shape[1])[:x.shape[0]],
    "position_gathered": lambda p, x: x + p("e", LONGEST, x.shape[1])[jnp.arange(x.shape[0])],
    "position_sliced": lambda p, x: x + lax.dynamic_slice_in_dim(
        p("e", LONGEST, x.shape[1]), jnp.argmax(ramp(x)) % 2, x.shape[0]),
    "position_low_rank": lambda p, x: x + p("t", LONGEST, 1)[:x.shape[0]] * p("f", x.shape[1]),
    "scale": lambda p, x: x * p("s", x.shape[1]),
    "scale_scalar": lambda p, x: p("s") * x,
    "scale_column": lambda p, x: x * p("s", x.shape[0], 1),
    "scale_each": lambda p, x: x * p("s", *x.shape),
    "scale_exp": lambda p, x: jnp.exp(p("s", x.shape[1])) * x,
    "divided": lambda p, x: x / (2.0 + p("s", x.shape[1])),
    "affine": lambda p, x: x * (1.0 + p("s", x.shape[1])) + p("b", x.shape[1]),
    "affine_packed": lambda p, x: x * p("p", 2, x.shape[1])[0] + p("p", 2, x.shape[1])[1],
    "layer_norm": lambda p, x: layer_norm(x) * p("s", x.shape[1]) + p("b", x.shape[1]),
    "layer_norm_scale": lambda p, x: layer_norm(x) * p("s", x.shape[1]),
    "standardize": lambda p, x: nn.standardize(x, epsilon=0.1) * p("s", x.shape[1]),
    "norm_over_time": lambda p, x: layer_norm(x, 0) * p("s", x.shape[1]) + p("b", x.shape[1]),
    "rms_norm": lambda p, x: rms_norm(x) * p("s", x.shape[1]),
    "rms_norm_plus": lambda p, x: rms_norm(x) * (1.0 + p("s", x.shape[1])),
    "prelu": lambda p, x: jnp.where(ramp(x) > 0, x, x * p("s", x.shape[1])),
    "swish": lambda p, x: x * nn.sigmoid(x * p("s", x.shape[1])),
    "power": lambda p, x: (1.5 + jnp.sin(x)) ** p("s", x.shape[1]),
    "blend": lambda p, x: x * nn.sigmoid(p("s")) + jnp.roll(x, 1, 0) * (1.0 - nn.sigmoid(p("s"))),
    "time_mixed": lambda p, x: p("w", x.shape[0], x.shape[0]) @ x,
    "cast_scale": lambda p, x: x * cast(p, p("s", x.shape[1])),
    "tied_twice": lambda p, x: jnp.tanh(x @ tied(p, x)) @ tied(p, x),
    "tied_transposed": lambda p, x: jnp.tanh(x @ tied(p, x)) @ tied(p, x).T,
    "tied_thrice": lambda p, x: tied(p, x) @ jnp.tanh(tied(p, x) @ x[0]) + x @ tied(p, x),
    "tied": lambda p, x: x + x @ tied(p, x),
    "squared": lambda p, x: x @ tied(p, x) @ tied(p, x),
    "powered": lambda p, x: x @ (tied(p, x) @ tied(p, x)),
    "symmetric": lambda p, x: x @ (tied(p, x) + tied(p, x).T),
    "tied_bias": lambda p, x: jnp.tanh(x + tied(p, x)[0]) * tied(p, x)[-1],
    "tanh": lambda p, x: jnp.tanh(x), "relu": lambda p, x: nn.relu(ramp(x)),
    "gelu": lambda p, x: nn.gelu(x), "softmax": lambda p, x: nn.softmax(x),
    "time_softmax": lambda p, x: nn.softmax(x, axis=0) * 2.0,
    "max_pool": lambda p, x: lax.reduce_window(ramp(x), -np.inf, lax.max, (2, 1), (1, 1), "SAME"),
    "mean_pool": lambda p, x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (2, 1), "SAME") * 0.5,
    "mean": lambda p, x: x.mean(0, keepdims=True),
    "last": lambda p, x: x[-1:], "swap": lambda p, x: x.T[:LONGEST],
    "flip": lambda p, x: x[::-1], "cumulated": lambda p, x: jnp.cumsum(x, 0) * 0.5,
    "routed": lambda p, x: x[jnp.argsort(ramp(x)[:, 0])],
}


def tied(p: Parameters, x: Array) -> Array:
    """One square matrix for all layers of this width."""
    return p.named(f"tied{x.shape[1]}", x.shape[1], x.shape[1])


# convolutions over time, and over time and features

def conv1d(p: Parameters, x: Array, o: int, groups: int = 1, width: int = 2,
           strides: int = 1, padding: Any = "SAME", **dilations: Any) -> Array:
    kernel = p("k", o, x.shape[1] // groups, width)
    return lax.conv_general_dilated(x.T[None], kernel, (strides,), padding,
                                    feature_group_count=groups, **dilations)[0].T[:LONGEST]


def conv_last(p: Parameters, x: Array, o: int, **more: Any) -> Array:
    return lax.conv_general_dilated(x[None], p("k", 3, x.shape[1], o), (1,), "SAME",
                                    dimension_numbers=("NWC", "WIO", "NWC"), **more)[0]


def conv2d(p: Parameters, x: Array, o: int, strides: Any = (1, 1), padding: Any = "SAME",
           channels: int = 1, groups: int = 1, **more: Any) -> Array:
    image = jnp.stack([x, jnp.sin(x)])[None, :channels]
    kernel = p("k", o * groups, channels // groups, 2, 2)
    out = lax.conv_general_dilated(image, kernel, strides, padding, feature_group_count=groups,
                                   **more)[0]
    return out.mean(2).T[:LONGEST] + out.sum(1).mean(1)


def conv_transposed(p: Parameters, x: Array, o: int, kernel: bool, strides: int) -> Array:
    shape = (3, o, x.shape[1]) if kernel else (3, x.shape[1], o)
    return lax.conv_transpose(x[None], p("k", *shape), (strides,), "SAME", transpose_kernel=kernel,
                              dimension_numbers=("NWC", "WIO", "NWC"))[0][:LONGEST]


CONVOLUTIONS: dict[str, Callable[..., Array]] = {
    "conv": conv1d,
    "conv_point": lambda p, x, o: conv1d(p, x, o, width=1),
    "conv_strided": lambda p, x, o: conv1d(p, x, o, strides=2, width=3),
    "conv_padded": lambda p, x, o: conv1d(p, x, o, padding=[(1, 2)], width=3),
    "conv_causal": lambda p, x, o: conv1d(p, x, o, padding=[(2, 0)], width=3),
    "conv_dilated": lambda p, x, o: conv1d(p, x, o, rhs_dilation=(2,), padding=[(2, 0)]),
    "conv_spread": lambda p, x, o: conv1d(p, x, o, lhs_dilation=(2,), padding=[(1, 1)]),
    "conv_valid": lambda p, x, o: conv1d(p, x, o, width=x.shape[0], padding="VALID"),
    "conv_depthwise": lambda p, x, o: conv1d(p, x, x.shape[1], groups=x.shape[1]),
    "conv_depthwise_wide": lambda p, x, o: conv1d(p, x, 2 * x.shape[1], groups=x.shape[1],
                                                  strides=2),
    "conv_grouped": lambda p, x, o: conv1d(p, jnp.concatenate([x, x * 0.5], 1), 2 * o, groups=2),
    "conv_channels_last": conv_last,
    "conv_last_dilated": lambda p, x, o: conv_last(p, x, o, rhs_dilation=(2,)),
    "conv_transposed": lambda p, x, o: conv_transposed(p, x, o, False, 2),
    "conv_transposed_kernel": lambda p, x, o: conv_transposed(p, x, o, True, 1),
    "conv_patches": lambda p, x, o: lax.conv_general_dilated_patches(
        x.T[None], (2,), (1,), "SAME")[0].T @ p("k", 2 * x.shape[1], o),
    "convolve": lambda p, x, o: ft.vmap(lambda c, k: jnp.convolve(c, k, mode="same"), 1, 1)(
        x, jnp.broadcast_to(p("k", 1, 1), (1, x.shape[1]))),
    "conv2d": conv2d,
    "conv2d_strided": lambda p, x, o: conv2d(p, x, o, strides=(2, 1)),
    "conv2d_padded": lambda p, x, o: conv2d(p, x, o, padding=[(1, 1), (1, 0)], channels=2),
    "conv2d_dilated": lambda p, x, o: conv2d(p, x, o, padding=[(2, 0), (1, 1)],
                                             rhs_dilation=(2, 2), channels=2),
    "conv2d_spread": lambda p, x, o: conv2d(p, x, o, lhs_dilation=(1, 2), padding=[(1, 0), (1, 1)]),
    "conv2d_depthwise": lambda p, x, o: conv2d(p, x, o, channels=2, groups=2),
}


# attention

def heads(x: Array, count: int) -> Array:
    return x.reshape(x.shape[0], count, -1)


def attend(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """Multi-head attention of [T, heads, size] by einsum."""
    scores = jnp.einsum("tnh,snh->nts", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tri(q.shape[0], dtype=bool), scores, -1e9)
    return jnp.einsum("nts,snh->tnh", nn.softmax(scores), v).reshape(q.shape[0], -1)


def attention(p: Parameters, x: Array, o: int, causal: bool = False) -> Array:
    q, k, v = jnp.split(x @ p("qkv", x.shape[1], 12), 3, axis=1)
    return attend(heads(q, 2), heads(k, 2), heads(v, 2), causal) @ p("out", 4, o)


def attention_of_heads(p: Parameters, x: Array, o: int) -> Array:
    q, k, v = jnp.einsum("ti,cinh->ctnh", x, p("qkv", 3, x.shape[1], 2, o))
    return jnp.einsum("tnh,nho->to", heads(attend(q, k, v), 2), p("out", 2, o, o))


def attention_of_library(p: Parameters, x: Array, o: int) -> Array:
    wide = np.promote_types(x.dtype, "float32")
    q, k, v = (heads(x @ p(name, x.shape[1], 2 * o), 2).astype(wide)[None] for name in "qkv")
    return nn.dot_product_attention(q, k, v, is_causal=True)[0].mean(1).astype(x.dtype)


def attention_of_one_group(p: Parameters, x: Array, o: int) -> Array:
    """Two heads of queries share the keys and values."""
    q = heads(x @ p("q", x.shape[1], 2 * o), 2)
    k, v = (jnp.broadcast_to((x @ p(name, x.shape[1], o))[:, None], q.shape) for name in "kv")
    return attend(q, k, v) @ p("out", 2 * o, o)


# layers in loops and branches

def stacked(p: Parameters, x: Array, o: int) -> Array:
    w, b = p("w", 2, x.shape[1], x.shape[1]), p("b", 2, x.shape[1])
    for i in range(2):
        x = jnp.tanh(x @ w[i] + b[i])
    return x


def scanned(p: Parameters, x: Array, o: int) -> Array:
    def layer(x: Array, w: Any) -> Any:
        return x + jnp.tanh(x @ w[0] + w[1]), None
    return lax.scan(layer, x, (p("w", 3, x.shape[1], x.shape[1]), p("b", 3, x.shape[1])))[0]


def scanned_index(p: Parameters, x: Array, o: int) -> Array:
    w = p("w", 2, x.shape[1], x.shape[1])
    return lax.fori_loop(0, 2, lambda i, x: jnp.tanh(x @ w[i]), x)


def scanned_backwards(p: Parameters, x: Array, o: int) -> Array:
    return lax.scan(lambda x, w: (jnp.tanh(w @ x.T).T, x.sum()), x,
                    p("w", 2, x.shape[1], x.shape[1]), reverse=True)[0]


def repeated(p: Parameters, x: Array, o: int) -> Array:
    return lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ tied(p, x)), x)


def until(p: Parameters, x: Array, o: int) -> Array:
    """A loop whose number of steps depends on the sample."""
    return lax.while_loop(lambda s: s[0] < 2.5, lambda s: (
        s[0] + 1.0 + jnp.where(ramp(s[1]).sum() > 0.1, 1.0, 0.0).astype(x.dtype),
        jnp.tanh(s[1] @ tied(p, x) + p("b", x.shape[1]))), (jnp.zeros((), x.dtype), x))[1]


def rnn_step(p: Parameters, width: int, o: int) -> Any:
    w, u, b = p("w", width, o), p("u", o, o), p("b", o)
    return lambda h, r: (lambda n: (n, n))(jnp.tanh(r @ w + h @ u + b))


def lstm_step(p: Parameters, width: int, o: int) -> Any:
    w, b = p("w", width + o, 4 * o), p("b", 4 * o)

    def step(state: Any, r: Array) -> Any:
        h, c = state
        i, f, g, y = jnp.split(jnp.concatenate([r, h]) @ w + b, 4)
        c = nn.sigmoid(f + 1.0) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(y) * jnp.tanh(c)
        return (h, c), h
    return step


def gru_step(p: Parameters, width: int, o: int) -> Any:
    w, u = p("w", 3, width, o), p("u", 3, o, o)

    def step(h: Array, r: Array) -> Any:
        z, s = (nn.sigmoid(r @ w[i] + h @ u[i]) for i in range(2))
        h = z * h + (1 - z) * jnp.tanh(r @ w[2] + (s * h) @ u[2])
        return h, h
    return step


def recurrent(make: Any, carry: Any, python: bool = False, **options: Any) -> Any:
    def layer(p: Parameters, x: Array, o: int) -> Array:
        step, state = make(p, x.shape[1], o), carry(jnp.zeros(o, x.dtype))
        if not python:
            return lax.scan(step, state, x, **options)[1]
        ys = []
        for t in range(x.shape[0]):
            state, y = step(state, x[t])
            ys.append(y)
        return jnp.stack(ys)
    return layer


def conditional(p: Parameters, x: Array, o: int) -> Array:
    a, b = p("a", x.shape[1], o), p("b", x.shape[1], o)
    return lax.cond(ramp(x).sum() > 0.0, lambda: x @ a, lambda: jnp.sin(x @ b))


def conditional_once(p: Parameters, x: Array, o: int) -> Array:
    """A weight of one of the branches, an operand of both."""
    w, b = p("w", x.shape[1], o), p("b", o)
    return lax.cond(ramp(x)[0, 0] > 0.0, lambda x, b: x @ w + b,
                    lambda x, b: 0.0 * (x @ w) + b, x, b)


def switched(p: Parameters, x: Array, o: int) -> Array:
    w = p("w", 3, x.shape[1], o)
    return lax.switch(jnp.argmax(ramp(x)) % 3, [lambda i=i: x @ w[i] for i in range(3)])


def chosen(p: Parameters, x: Array, o: int) -> Array:
    """An expert for each row, by a gather of matrices."""
    i = (ramp(x)[:, 0] > 0).astype("int32")
    return jnp.einsum("ti,tio->to", x, p("w", 2, x.shape[1], o)[i])


def gated(p: Parameters, x: Array, o: int) -> Array:
    return nn.silu(x @ p("a", x.shape[1], o)) * (x @ p("b", x.shape[1], o))


def gated_packed(p: Parameters, x: Array, o: int) -> Array:
    a, b = jnp.split(x @ p("w", x.shape[1], 2 * o) + p("b", 2 * o), 2, axis=-1)
    return nn.sigmoid(a) * b


def token_bag(p: Parameters, x: Array, o: int) -> Array:
    """An embedding of places that depend on the data."""
    i = jnp.argsort(ramp(x).reshape(-1))[:3] % VOCABULARY
    return jnp.broadcast_to(p("e", VOCABULARY, o)[i].mean(0), (x.shape[0], o)) + x.mean()


def branches(p: Parameters, x: Array, o: int) -> Array:
    return jnp.concatenate([x @ p("a", x.shape[1], o), x[:, :1],
                            jnp.tanh(x @ p("b", x.shape[1], 1))], axis=-1)


LAYERS: dict[str, Callable[[Parameters, Array, int], Array]] = {
    **DENSE, **{k: lambda p, x, o, f=f: f(p, x) for k, f in SAME.items()}, **CONVOLUTIONS,
    "attention": attention,
    "attention_causal": lambda p, x, o: attention(p, x, o, True),
    "attention_of_heads": attention_of_heads, "attention_of_library": attention_of_library,
    "attention_of_one_group": attention_of_one_group,
    "stacked": stacked, "scanned": scanned, "scanned_index": scanned_index,
    "scanned_backwards": scanned_backwards, "repeated": repeated, "until": until,
    "rnn": recurrent(rnn_step, lambda h: h), "rnn_python": recurrent(rnn_step, lambda h: h, True),
    "rnn_reverse": recurrent(rnn_step, lambda h: h, reverse=True),
    "lstm": recurrent(lstm_step, lambda h: (h, h)),
    "lstm_python": recurrent(lstm_step, lambda h: (h, h), True),
    "gru": recurrent(gru_step, lambda h: h),
    "cond": conditional, "cond_once": conditional_once, "switch": switched, "chosen": chosen,
    "gated": gated, "gated_packed": gated_packed, "token_bag": token_bag, "branches": branches,
    "bilinear": lambda p, x, o: jnp.einsum("ti,oij,tj->to", x,
                                           p("w", o, x.shape[1], x.shape[1]), jnp.sin(x)),
    "bilinear_form": lambda p, x, o: (x @ p("w", x.shape[1], x.shape[1])) @ jnp.cos(x).T,
    "dense_layer": lambda p, x, o: jnp.tanh(x @ p("w", x.shape[1], o) + p("b", o)),
    "dense_summed": lambda p, x, o: x @ p("a", x.shape[1], o) + jnp.sin(x) @ p("b", x.shape[1], o),
    "checkpointed": lambda p, x, o: ft.checkpoint(lambda x, w, b: nn.gelu(x @ w + b))(
        x, p("w", x.shape[1], o), p("b", o)),
    "residual": lambda p, x, o: x + jnp.tanh(x @ p("w", x.shape[1], o)) @ p("v", o, x.shape[1]),
    "outer": lambda p, x, o: x * jnp.outer(p("a", x.shape[0]), p("b", x.shape[1])),
}

# the first layer: tokens [T] to [T, F]

EMBEDDINGS: dict[str, Callable[[Parameters, Array, int], Array]] = {
    "index": lambda p, i, o: p("e", VOCABULARY, o)[i],
    "take": lambda p, i, o: jnp.take(p("e", VOCABULARY, o), i, axis=0, mode="clip"),
    "wrapped": lambda p, i, o: jnp.take(p("e", VOCABULARY, o), i, axis=0, mode="wrap"),
    "columns": lambda p, i, o: jnp.take(p("e", o, VOCABULARY), i, axis=1, mode="clip").T,
    "one_hot": lambda p, i, o: nn.one_hot(i, VOCABULARY, dtype=p("e", VOCABULARY, o).dtype) @
    p("e", VOCABULARY, o),
    "bag": lambda p, i, o: p("e", VOCABULARY, o)[i].sum(0, keepdims=True),
    "bag_weighted": lambda p, i, o: jnp.einsum("t,to->o", constant(p("w", VOCABULARY), i.size) +
                                               p("w", VOCABULARY)[i],
                                               p("e", VOCABULARY, o)[i])[None],
    "row_by_row": lambda p, i, o: lax.map(by(lambda e, t: e[t], p("e", VOCABULARY, o)), i),
    "scanned": lambda p, i, o: lax.scan(by(lambda e, c, t: (c * 0.5 + e[t], c),
                                           p("e", VOCABULARY, o)), p("b", o), i)[0][None],
    "plain": lambda p, i, o: p("e", 1, o)[i],
    "scaled": lambda p, i, o: p("e", VOCABULARY, o)[i] * 1.5 + p("t", LONGEST, o)[:i.size],
    "pairs": lambda p, i, o: p("e", VOCABULARY, 2, o)[i, jnp.arange(i.size) % 2],
    "tied": lambda p, i, o: p.named(f"embedding{o}", VOCABULARY, o)[i],
}

# the last layer: [T, F] to outputs of a fixed number, and these with the target to a loss

OUTPUTS: dict[str, Callable[[Parameters, Array, int], Array]] = {
    "dense": lambda p, x, o: x.mean(0) @ p("w", x.shape[1], o) + p("b", o),
    "left": lambda p, x, o: p("w", o, x.shape[1]) @ x.sum(0) * 0.5 + p("b", o),
    "last": lambda p, x, o: x[-1] @ p("w", x.shape[1], o) + p("b", o),
    "by_row": lambda p, x, o: (x @ p("w", x.shape[1], o) + p("b", o)).mean(0),
    "weighted": lambda p, x, o: jnp.einsum("t,tf,fo->o", nn.softmax(x @ p("q", x.shape[1])), x,
                                           p("w", x.shape[1], o)) + p("b", o),
    "tied": lambda p, x, o: (x.mean(0) @ p.named(
        f"embedding{x.shape[1]}", VOCABULARY, x.shape[1]).T)[:o] + p("b", o),
    "maximum": lambda p, x, o: ramp(x).max(0) @ p("w", x.shape[1], o) + p("b", o),
}
LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "squares": lambda z, y: ((z - y) ** 2).sum(),
    "mean": lambda z, y: 0.5 * jnp.mean(jnp.square(z - y - 1.0)),
    "entropy": lambda z, y: -(nn.log_softmax(jnp.append(z, z.sum() * 0.0)) *
                              nn.softmax(jnp.append(y, y.sum() * 0.0))).sum(),
    "huber": lambda z, y: (jnp.sqrt(1.0 + (z - y) ** 2) - 1.0).sum(),
    "picked": lambda z, y: (z.shape[0] + 1.0) * z[jnp.argmax(y)] + jnp.vdot(z, z),
}


@dataclass(frozen=True)
class Layer:
    name: str
    width: int


@dataclass(frozen=True)
class Network:
    """A network on batches of `batch` samples of length `time`, and how its parameters are kept.

    `embedding` is empty where x is numbers. `packing` is the tree that the loss is given: "dict",
    "list", "nested", "flat" (all parameters in one vector) or "halves" (every second parameter is a
    constant).
    """

    embedding: str
    layers: tuple[Layer, ...]
    output: str
    outputs: int
    loss_name: str
    packing: str
    width: int
    time: int
    batch: int
    seed: int

    def arrays(self) -> Any:
        """Parameters, samples, targets: exact numbers in float64, int32 tokens."""
        rng = np.random.default_rng([self.seed, 1])
        if self.embedding:  # some tokens are negative, some out of range
            xs = rng.integers(-VOCABULARY - 2, VOCABULARY + 2, (self.batch, self.time))
            xs = np.where(rng.random(xs.shape) < 0.7, abs(xs) % 3, xs).astype(np.int32)
        else:
            xs = exact(rng.uniform(-1.5, 1.5, (self.batch, self.time, self.width)))
        ys = exact(rng.uniform(-1.0, 1.0, (self.batch, self.outputs)))
        p = Parameters(None, np.float64, self.seed)
        self.run(p, jnp.asarray(xs[0]), np.float64)
        return dict(p.made), xs, ys

    def run(self, p: Parameters, x: Array, dtype: Any) -> Array:
        if self.embedding:
            p.layer = "embedding"
            x = EMBEDDINGS[self.embedding](p, x, self.width)
        for i, layer in enumerate(self.layers):
            p.layer = f"{i:02}"
            x = bounded(LAYERS[layer.name](p, x, layer.width))
            assert x.ndim == 2
            assert x.dtype == dtype, layer
        p.layer = "output"
        return OUTPUTS[self.output](p, x, self.outputs)


def bounded(x: Array) -> Array:
    """Values stay small."""
    return x * lax.rsqrt(1.0 + 0.1 * (x * x).sum())


@st.composite
def networks(draw: Any, longest: int = 4) -> Network:
    widths = st.integers(1, 6)
    embedding = draw(st.sampled_from(["", "", *EMBEDDINGS]))
    layers = st.builds(Layer, st.sampled_from(list(LAYERS)), widths)
    width = draw(widths)
    return Network(
        embedding, tuple(draw(st.lists(layers, min_size=1, max_size=longest))),
        draw(st.sampled_from(list(OUTPUTS))), draw(st.integers(1, 3)),
        draw(st.sampled_from(list(LOSSES))),
        draw(st.sampled_from(["dict", "list", "nested", "flat", "halves"])), width,
        draw(st.sampled_from(TIMES)), draw(st.sampled_from(BATCHES)), draw(st.integers(0, 999)))



@dataclass(frozen=True)
class Problem:
    """A network at one dtype: the loss and the outputs of a sample, and the arrays of a batch."""

    network: Network
    dtype: np.dtype[Any]
    other: np.dtype[Any]
    unpack: Callable[[Any, Any], dict[str, Any]]
    params: Any
    xs: np.ndarray[Any, Any]
    ys: np.ndarray[Any, Any]

    def outputs(self, params: Any, x: Array) -> Array:
        given = self.unpack(params, self.dtype)
        return self.network.run(Parameters(given, self.other), x, self.dtype)

    def loss(self, params: Any, x: Array, y: Array) -> Array:
        return LOSSES[self.network.loss_name](self.outputs(params, x), y)


def problem(network: Network, dtype: Any, exactly: bool = False) -> Problem:
    """The problem of a network; `exactly` leaves out the ways through other dtypes."""
    made, xs, ys = network.arrays()
    params, unpack = pack(network.packing, made)
    dtype = np.dtype(dtype)
    return Problem(network, dtype, dtype if exactly else OTHER[dtype], unpack,
                   tree.map(lambda w: w.astype(dtype), params),
                   xs if network.embedding else xs.astype(dtype), ys.astype(dtype))
