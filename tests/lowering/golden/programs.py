"""The programs of the golden texts: one for each thing that a plan has to get right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functrans as ft
import functrans.numpy as jnp
from functrans import lax


def array(*shape: int | ft.Dim, dtype: str = "float32") -> ft.ShapeDtypeStruct:
    return ft.ShapeDtypeStruct(shape, dtype)


def mlp_loss(params: Any, x: Any, y: Any) -> Any:
    (w1, b1), (w2, b2) = params
    hidden = jnp.tanh(x @ w1 + b1)
    return jnp.mean((hidden @ w2 + b2 - y) ** 2)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / 8
    return jnp.einsum("hqk,hkd->hqd", ft.nn.softmax(scores, axis=-1), v)


def attention_loss(q: Any, k: Any, v: Any) -> Any:
    return jnp.sum(jnp.sin(attention(q, k, v)))


def layer_norm_loss(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - jnp.mean(x, 1, keepdims=True)
    scale = lax.rsqrt(jnp.mean(centred * centred, 1, keepdims=True) + 1e-5)
    return jnp.sum(jnp.tanh(centred * scale * gain + bias))


def rnn_loss(w: Any, u: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x @ u)
        return h, None

    h, _ = lax.scan(cell, jnp.zeros((xs.shape[1], w.shape[0]), "float32"), xs)
    return jnp.sum(h * h)


def power_iteration(a: Any, x: Any) -> Any:
    def goes_on(state: Any) -> Any:
        _, change, steps = state
        return (change > 1e-4) & (steps < 100)

    def step(state: Any) -> Any:
        x, _, steps = state
        y = a @ x
        y = y / jnp.sqrt(jnp.sum(y * y))
        return y, jnp.max(jnp.abs(y - x)), steps + 1

    return lax.while_loop(goes_on, step, (x, jnp.float32(jnp.inf), 0))


def branches(flags: Any, x: Any) -> Any:
    def one(flag: Any, x: Any) -> Any:
        return lax.cond(flag, lambda x: jnp.sum(jnp.exp(x)) * x, lambda x: x[::-1] + 1, x)

    return ft.vmap(one)(flags, x)


def convolution_loss(x: Any, w: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME")
    return jnp.sum(jnp.maximum(y, 0) ** 2)


def order(x: Any) -> Any:
    values, places = lax.top_k(x, 4)
    return jnp.sort(x, axis=-1), jnp.argsort(x, axis=-1), values, places


def running_sums(x: Any) -> Any:
    return jnp.cumsum(x, axis=0), jnp.cumsum(jnp.exp(x), axis=1)


def low_pass(x: Any) -> Any:
    spectrum = jnp.fft.fft(x) * jnp.exp(-1j * jnp.arange(x.shape[-1]))
    return jnp.abs(spectrum), jnp.real(jnp.fft.ifft(spectrum * jnp.conj(spectrum)))


def clipped_gradient(w: Any, x: Any, y: Any) -> Any:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.sum((jnp.tanh(x @ w) - y) ** 2)

    gradients = ft.vmap(ft.grad(loss), (None, 0, 0))(w, x, y)
    norms = jnp.sqrt(jnp.sum(gradients * gradients, (1, 2)))
    scale = jnp.minimum(1, 1 / norms)
    return jnp.sum(gradients * scale[:, None, None], 0)


def update_rows(table: Any, rows: Any, step: Any) -> Any:
    return table.at[rows].add(jnp.tanh(step)), table.at[0].set(0.0)


def update_temporary(x: Any, rows: Any, step: Any) -> Any:
    changed = jnp.tanh(x).at[rows].add(step)
    return changed.at[3].multiply(2.0) @ x.T


def update_in_loop(table: Any, x: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, t: t.at[i].set(jnp.sin(t[i] + x)), table)


def two_layers(x: Any, w1: Any, w2: Any) -> Any:
    return jnp.tanh(x @ w1) @ w2


def sgd(w: Any, momentum: Any, x: Any) -> Any:
    gradient = ft.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w)
    momentum = 0.9 * momentum + gradient
    return w - 0.1 * momentum, momentum


def classify(w1: Any, w2: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ w1)
    return ft.nn.softmax(hidden @ w2, axis=-1), jnp.mean(hidden, 0)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp_gradient": (ft.grad(mlp_loss), (
        ((array(64, 128), array(128)), (array(128, 32), array(32))), array(256, 64),
        array(256, 32))),
    "attention_gradient": (ft.grad(attention_loss, (0, 1, 2)), (array(4, 128, 64),) * 3),
    "layer_norm_gradient": (ft.grad(layer_norm_loss, (0, 1, 2)), (
        array(512, 256), array(256), array(256))),
    "softmax": (lambda x: ft.nn.softmax(x, axis=-1), (array(64, 1000),)),
    "rnn_gradient": (ft.grad(rnn_loss, (0, 1)), (array(64, 64), array(32, 64), array(16, 8, 32))),
    "while_loop": (power_iteration, (array(128, 128), array(128))),
    # of bodies that are no part of one kernel on a GPU: launched, and launched in a loop
    "large_scan": (ft.grad(rnn_loss), (array(1024, 1024), array(64, 1024), array(3, 256, 64))),
    "long_scan": (rnn_loss, (array(1024, 1024), array(64, 1024), array(40_000, 256, 64))),
    "large_while_loop": (power_iteration, (array(4096, 4096), array(4096))),
    "vmap_of_cond": (branches, (array(32, dtype="bool"), array(32, 64))),
    "convolution_gradient": (ft.grad(convolution_loss, (0, 1)), (
        array(4, 8, 32, 32), array(16, 8, 3, 3))),
    "sort_and_top_k": (order, (array(16, 200),)),
    "cumulative_sums": (running_sums, (array(64, 300),)),
    "complex_fft": (low_pass, (array(8, 256),)),
    "per_sample_clipping": (clipped_gradient, (array(64, 32), array(128, 64), array(128, 32))),
    "donated_update": (ft.jit(update_rows, donate_argnums=0), (
        array(1000, 16), array(50, dtype="int32"), array(50, 16))),
    "donated_loop_update": (ft.jit(update_in_loop, donate_argnums=0), (array(40, 16), array(16))),
    "donated_dead_argument": (ft.jit(two_layers, donate_argnums=0), (
        array(64, 32), array(32, 128), array(128, 32))),
    "updated_temporary": (update_temporary, (array(50, 16), array(8, dtype="int32"), array(8, 16))),
    "donated_optimizer_step": (ft.jit(sgd, donate_argnums=(0, 1)), (
        array(64, 32), array(64, 32), array(128, 64))),
    "named_sizes": (classify, (array(64, 128), array(128, 10), array(ft.Dim("n"), 64))),
}
