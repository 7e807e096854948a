"""Gradients and per-sample gradients of small models: an MLP, a CNN and a transformer.

Parameters are lists, whose leaves have the same order in every library.
"""

from __future__ import annotations

import itertools

import numpy as np
from bounds import Best

from cpu_workloads.entries import Entries, normal, workload

MLP_SIZES = (784, 256, 128, 10)


def labels(count: int) -> np.ndarray:
    return np.random.default_rng(9).integers(0, 10, count, dtype=np.int32)


def dense(inputs: int, outputs: int, seed: int) -> list[np.ndarray]:
    return [normal(inputs, outputs, seed=seed, scale=inputs**-0.5), np.zeros(outputs, np.float32)]


def cross_entropy(lib, logits, label):
    """Mean negative log-likelihood of integer labels."""
    scores = lib.nn.log_softmax(logits, axis=-1)
    return -lib.numpy.mean(lib.numpy.take_along_axis(scores, label[..., None], axis=-1))


def mlp(lib):
    """Dense layers with relu between them."""

    def run(params, x):
        for weight, bias in params[:-1]:
            x = lib.nn.relu(x @ weight + bias)
        weight, bias = params[-1]
        return x @ weight + bias

    return run


def mlp_loss(lib):
    return lambda params, x, label: cross_entropy(lib, mlp(lib)(params, x), label)


def torch_cross_entropy(torch):
    # torch wants 64-bit labels; the conversion of 256 of them costs nothing
    return lambda logits, label: torch.nn.functional.cross_entropy(logits, label.long())


def torch_mlp(torch):
    def run(params, x):
        for weight, bias in params[:-1]:
            x = torch.relu(torch.addmm(bias, x, weight) if x.ndim == 2 else x @ weight + bias)
        weight, bias = params[-1]
        return x @ weight + bias

    return run


def torch_mlp_loss(torch):
    entropy = torch_cross_entropy(torch)
    return lambda params, x, label: entropy(torch_mlp(torch)(params, x), label)


def mlp_arrays(sizes=MLP_SIZES, batch: int = 256):
    params = [dense(a, b, seed) for seed, (a, b) in enumerate(itertools.pairwise(sizes))]
    return params, normal(batch, sizes[0], seed=7), labels(batch)


def cnn_loss(lib):
    """Two 3x3 convolutions with pooling, and one dense layer, on 28 x 28 images."""
    lax = lib.lax

    def block(x, weight, bias):
        y = lax.conv_general_dilated(
            x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        window = (1, 2, 2, 1)
        return lax.reduce_window(
            lib.nn.relu(y + bias), -np.inf, lax.max, window, window, "VALID"
        )

    def loss(params, x, label):
        if x.ndim == 3:  # one sample, under vmap
            x, label = x[None], label[None]
        for weight, bias in params[:-1]:
            x = block(x, weight, bias)
        weight, bias = params[-1]
        return cross_entropy(lib, x.reshape(x.shape[0], -1) @ weight + bias, label)

    return loss


def torch_cnn_loss(torch):
    call, entropy = torch.nn.functional, torch_cross_entropy(torch)

    def loss(params, x, label):
        if x.ndim == 3:
            x, label = x[None], label[None]
        for weight, bias in params[:-1]:
            x = call.max_pool2d(torch.relu(call.conv2d(x, weight, bias, padding=1)), 2)
        weight, bias = params[-1]
        return entropy(x.flatten(1) @ weight + bias, label)

    return loss


def cnn_arrays(batch: int = 64):
    kernels = [
        [normal(3, 3, 1, 8, seed=1, scale=1 / 3), np.zeros(8, np.float32)],
        [normal(3, 3, 8, 16, seed=2, scale=1 / 8), np.zeros(16, np.float32)],
    ]
    return [*kernels, dense(784, 10, 3)], normal(batch, 28, 28, 1, seed=7), labels(batch)


def torch_cnn_arrays(batch: int = 64):
    """The same in torch's layout, channels first."""
    params, x, label = cnn_arrays(batch)
    kernels = [[np.ascontiguousarray(w.transpose(3, 2, 0, 1)), b] for w, b in params[:-1]]
    weight, bias = params[-1]
    weight = weight.reshape(7, 7, 16, 10).transpose(2, 0, 1, 3).reshape(784, 10)
    return [*kernels, [weight, bias]], x.transpose(0, 3, 1, 2), label


def restore_cnn(*gradients):
    """torch's gradients in JAX's layout; per-sample ones have one more axis in front."""
    first, b1, second, b2, weight, b3 = gradients
    front = tuple(weight.shape[:-2])
    kernel = (*range(len(front)), *(len(front) + axis for axis in (2, 3, 1, 0)))
    rows = weight.reshape(*front, 16, 49, 10).swapaxes(-3, -2).reshape(*front, 784, 10)
    return first.permute(kernel), b1, second.permute(kernel), b2, rows, b3


MODEL, LAYERS, HEADS, LENGTH = 128, 2, 4, 64


def layer_norm(lib):
    """Layer norm over the last axis."""

    def norm(x, scale, shift):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lib.lax.rsqrt(variance + 1e-5) * scale + shift

    return norm


def transformer(lib):
    """Pre-norm blocks with causal attention and gelu."""
    xp, norm = lib.numpy, layer_norm(lib)

    def attend(x, into, out):
        heads = (x @ into).reshape(*x.shape[:-1], 3, HEADS, MODEL // HEADS)
        q, k, v = (xp.moveaxis(heads[..., i, :, :], -2, -3) for i in range(3))
        scores = q @ xp.swapaxes(k, -1, -2) / (MODEL // HEADS) ** 0.5
        mask = xp.tri(LENGTH, dtype=bool)
        mixed = lib.nn.softmax(xp.where(mask, scores, -1e9), axis=-1) @ v
        return xp.moveaxis(mixed, -3, -2).reshape(x.shape) @ out

    def run(params, x):
        for scale1, shift1, into, out, scale2, shift2, widen, bias, narrow in params:
            x = x + attend(norm(x, scale1, shift1), into, out)
            x = x + lib.nn.gelu(norm(x, scale2, shift2) @ widen + bias) @ narrow
        return x

    return run


def transformer_loss(lib):
    """Mean squared error of the blocks."""
    return lambda params, x, target: lib.numpy.mean((transformer(lib)(params, x) - target) ** 2)


def torch_transformer(torch):
    call = torch.nn.functional

    def attend(x, into, out):
        heads = (x @ into).unflatten(-1, (3, HEADS, MODEL // HEADS))
        q, k, v = (part.transpose(-2, -3) for part in heads.unbind(-3))
        mixed = call.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(-2, -3).flatten(-2) @ out

    def run(params, x):
        for scale1, shift1, into, out, scale2, shift2, widen, bias, narrow in params:
            x = x + attend(call.layer_norm(x, (MODEL,), scale1, shift1), into, out)
            hidden = call.layer_norm(x, (MODEL,), scale2, shift2) @ widen + bias
            x = x + call.gelu(hidden, approximate="tanh") @ narrow
        return x

    return run


def torch_transformer_loss(torch):
    return lambda params, x, target: ((torch_transformer(torch)(params, x) - target) ** 2).mean()


def transformer_params() -> list[list[np.ndarray]]:
    ones, zeros = np.ones(MODEL, np.float32), np.zeros(MODEL, np.float32)
    return [
        [
            ones, zeros, normal(MODEL, 3 * MODEL, seed=seed, scale=MODEL**-0.5),
            normal(MODEL, MODEL, seed=seed + 1, scale=MODEL**-0.5), ones, zeros,
            normal(MODEL, 4 * MODEL, seed=seed + 2, scale=MODEL**-0.5),
            np.zeros(4 * MODEL, np.float32),
            normal(4 * MODEL, MODEL, seed=seed + 3, scale=MODEL**-0.5),
        ]
        for seed in range(0, 4 * LAYERS, 4)
    ]  # fmt: skip


def transformer_arrays(batch: int = 16):
    shape = (batch, LENGTH, MODEL)
    return transformer_params(), normal(*shape, seed=20), normal(*shape, seed=21)


def add_gradient(add: Entries, make_loss, arrays, torch_loss, torch_arrays, restore=None) -> None:
    add.traced(lambda lib: lib.grad(make_loss(lib)), *arrays)
    if torch := add.lib.torch:
        add.torch_gradient(torch_loss(torch), *torch_arrays, restore=restore)


def add_per_sample(add: Entries, make_loss, arrays, torch_loss, torch_arrays, restore=None) -> None:
    add.traced(lambda lib: lib.vmap(lib.grad(make_loss(lib)), in_axes=(None, 0, 0)), *arrays)
    if torch := add.lib.torch:
        gradient = torch.func.grad(torch_loss(torch))
        per_sample = torch.func.vmap(gradient, in_dims=(None, 0, 0))
        add.torch(per_sample, *torch_arrays, restore=restore)


@workload("MLP 784-256-128-10, batch 256: gradient", Best())
def mlp_gradient(add):
    add_gradient(add, mlp_loss, mlp_arrays(), torch_mlp_loss, mlp_arrays())


@workload("MLP 784-256-128-10, batch 256: per-sample gradients", 15e-3)
def mlp_per_sample(add):
    add_per_sample(add, mlp_loss, mlp_arrays(), torch_mlp_loss, mlp_arrays())


@workload("CNN, batch 64: gradient", Best())
def cnn_gradient(add):
    add_gradient(add, cnn_loss, cnn_arrays(), torch_cnn_loss, torch_cnn_arrays(), restore_cnn)


@workload("CNN, batch 64: per-sample gradients", Best())
def cnn_per_sample(add):
    add_per_sample(add, cnn_loss, cnn_arrays(), torch_cnn_loss, torch_cnn_arrays(), restore_cnn)


@workload("2-layer transformer d128 S64 B16: gradient", Best(time=0.8), tolerance=1e-3)
def transformer_gradient(add):
    arrays = transformer_arrays()
    add_gradient(add, transformer_loss, arrays, torch_transformer_loss, arrays)


@workload("2-layer transformer d128 S64 B16: per-sample gradients", Best(time=0.8), tolerance=1e-3)
def transformer_per_sample(add):
    arrays = transformer_arrays()
    add_per_sample(add, transformer_loss, arrays, torch_transformer_loss, arrays)
