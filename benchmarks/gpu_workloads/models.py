"""Gradients and per-sample gradients of models: an MLP, an RNN and a transformer."""

from __future__ import annotations

import itertools

from cpu_workloads.models import mlp_loss, torch_mlp_loss
from per_sample_workloads import quantities

import functrans as ft
from gpu_workloads.entries import workload

AXES = (None, 0, 0)
MAX_NORM = 19.0
"""Near the median of the norms of the samples, so that some are clipped and some are not."""

FLIPS = 6e-2
"""Of a sum over samples with random labels, by units that tf32 moves across 0 (all are at 4e-2)."""


def mlp_sets(add):
    sizes, batch = add.size(784, 30), add.size(4096, 24)
    layers = list(itertools.pairwise((sizes, add.size(512, 20), add.size(256, 16), 10)))

    def draw():
        params = [[add.normal(a, b, scale=a**-0.5), add.normal(b, scale=0.1)] for a, b in layers]
        return params, add.normal(batch, sizes), add.integers(10, batch)

    return add.sets(draw)


@workload("MLP 784-512-256-10, batch 4096: value_and_grad", 110e-6, FLIPS)
def mlp_gradient(add):
    sets = mlp_sets(add)
    add.traced(lambda lib: lib.value_and_grad(mlp_loss(lib)), sets)
    add.torch_gradient(torch_mlp_loss(add.torch_module), sets)


# rounding moves some units across 0, and with them whole columns of a sample's gradient
@workload("MLP, batch 4096: per-sample gradients", 2900e-6, 3e-3, stray=2e-2)
def mlp_per_sample(add):
    torch, sets = add.torch_module, mlp_sets(add)[:1]  # the results are 8.8 GB
    add.traced(lambda lib: lib.vmap(lib.grad(mlp_loss(lib)), in_axes=AXES), sets)
    add.torch(torch.func.vmap(torch.func.grad(torch_mlp_loss(torch)), in_dims=AXES), sets)


@workload("MLP, batch 4096: clipped mean of DP-SGD", 220e-6, FLIPS)
def mlp_clipped(add):
    torch, sets = add.torch_module, mlp_sets(add)
    clip = quantities.clipped_mean(MAX_NORM)
    program = quantities.of_torch_gradients(clip, torch_mlp_loss(torch), torch)

    def make(lib):
        if lib is ft:
            return ft.per_sample.clipped_mean(mlp_loss(ft), MAX_NORM)
        return quantities.of_gradients(clip, mlp_loss(lib), lib)

    def reference(params, x, label):  # in 8 parts: the gradients of all take 18 GB
        parts = [program(params, *part) for part in zip(x.chunk(8), label.chunk(8))]
        return [torch.stack(same).mean(0) for same in zip(*parts)]

    add.expect(reference, sets)
    add.traced(make, sets)
    add.torch(program, sets)


def rnn_loss(lib):
    """The mean of the squares of all states of a tanh RNN over (steps, batch, hidden)."""
    xp = lib.numpy

    def run(weights, xs):
        into, across = weights

        def step(h, drive):
            h = xp.tanh(drive + h @ across.T)
            return h, h

        start = xp.zeros(xs.shape[1:], xs.dtype)
        return xp.mean(lib.lax.scan(step, start, xs @ into.T)[1] ** 2)

    return run


def torch_rnn_loss(torch):
    """torch's own loop over the steps, in cuDNN; its module keeps the weights elsewhere."""

    def run(weights, xs):
        # (input, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first)
        start = xs.new_zeros(1, *xs.shape[1:])
        return (torch.rnn_tanh(
            xs, start, weights, False, 1, 0.0, True, False, False
        )[0] ** 2).mean()  # fmt: skip

    return run


@workload("RNN of 1000 steps, h256 B64, by scan: value_and_grad", 4.5e-3, 3e-3, host=True)
def rnn(add):
    hidden, steps, batch = add.size(256, 16), add.size(1000, 20), add.size(64, 4)
    scale = 0.7 * hidden**-0.5  # contracting, so that errors of single steps do not grow
    sets = add.sets(lambda: (
        [add.normal(hidden, hidden, scale=scale) for _ in range(2)],
        add.normal(steps, batch, hidden),
    ))  # fmt: skip
    add.traced(lambda lib: lib.value_and_grad(rnn_loss(lib)), sets)
    add.torch_gradient(torch_rnn_loss(add.torch_module), sets)


def transformer_loss(lib):
    """Mean squared error of pre-norm blocks, attention as einsum and softmax."""
    xp = lib.numpy

    def norm(x, scale, shift):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lib.lax.rsqrt(variance + 1e-5) * scale + shift

    def attend(x, query, key, value, out):
        q, k, v = (xp.einsum("bsm,mhd->bhsd", x, w) for w in (query, key, value))
        scores = xp.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5
        mixed = xp.einsum("bhst,bhtd->bhsd", lib.nn.softmax(scores, axis=-1), v)
        return xp.einsum("bhsd,hdm->bsm", mixed, out)

    def loss(params, x, target):
        for scale1, shift1, *heads, scale2, shift2, widen, bias, narrow in params:
            x = x + attend(norm(x, scale1, shift1), *heads)
            x = x + lib.nn.gelu(norm(x, scale2, shift2) @ widen + bias) @ narrow
        return xp.mean((x - target).astype("float32") ** 2)

    return loss


def torch_transformer_loss(add):
    torch, call = add.torch_module, add.nn

    def fused(q, k, v):
        if q.dtype == torch.float64:  # the reference must not be one of the kernels it checks
            return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        return call.scaled_dot_product_attention(q, k, v)

    def attend(x, query, key, value, out):
        split = lambda w: (x @ w.flatten(1)).unflatten(-1, w.shape[1:]).transpose(1, 2)
        mixed = fused(*map(split, (query, key, value)))
        return mixed.transpose(1, 2).flatten(-2) @ out.flatten(0, 1)

    def norm(x, scale, shift):
        return call.layer_norm(x, scale.shape, scale, shift)

    def loss(params, x, target):
        for scale1, shift1, *heads, scale2, shift2, widen, bias, narrow in params:
            x = x + attend(norm(x, scale1, shift1), *heads)
            hidden = norm(x, scale2, shift2) @ widen + bias
            x = x + call.gelu(hidden, approximate="tanh") @ narrow
        error = x - target
        return ((error if error.dtype == torch.float64 else error.float()) ** 2).mean()

    return loss


# halves between the layers put all libraries 2 to 4 % off
@workload("4-layer transformer d1024 B8 S1024 bfloat16: value_and_grad", 6.0e-3, 6e-2,
          host=True, limit=60)  # fmt: skip
def transformer(add):
    width, heads, length, batch = (
        add.size(1024, 32), add.size(16, 2), add.size(1024, 16), add.size(8, 2)
    )  # fmt: skip
    half = {"dtype": "bfloat16"}
    head = width // heads

    def block():
        ones = lambda: add.normal(width, scale=0.1).add_(1).bfloat16()
        shift = lambda size: add.normal(size, scale=0.1, **half)
        dense = lambda *shape, inputs=width: add.normal(*shape, scale=inputs**-0.5, **half)
        return [
            ones(), shift(width), *(dense(width, heads, head) for _ in range(3)),
            dense(heads, head, width), ones(), shift(width), dense(width, 4 * width),
            shift(4 * width), dense(4 * width, width, inputs=4 * width),
        ]  # fmt: skip

    shape = batch, length, width
    sets = [([block() for _ in range(4)], add.normal(*shape, **half), add.normal(*shape, **half))]
    add.traced(lambda lib: lib.value_and_grad(transformer_loss(lib)), sets)
    add.torch_gradient(torch_transformer_loss(add), sets)
