"""The models: an MLP, a CNN, a language model, an LSTM and an embedding bag.

Each loss takes one sample or a batch, whose mean it then is; parameters are lists, whose leaves
have the same order in every library.
"""

from __future__ import annotations

import numpy as np
from cpu_workloads.entries import normal
from cpu_workloads.models import (
    LENGTH,
    MODEL,
    cross_entropy,
    dense,
    labels,
    layer_norm,
    mlp,
    mlp_arrays,
    torch_cross_entropy,
    torch_mlp,
    torch_transformer,
    transformer,
    transformer_params,
)


def output_sum(lib):
    """The sum of the MLP's outputs, a scalar for the tangent kernel."""
    return lambda params, x: mlp(lib)(params, x).sum()


def torch_output_sum(torch):
    return lambda params, x: torch_mlp(torch)(params, x).sum()


def output_arrays():
    params, x, _ = mlp_arrays()
    return params, x


VOCABULARY = 512


def language_loss(lib):
    """Cross entropy of the next token; the embeddings of tokens are the output layer too."""
    norm, blocks = layer_norm(lib), transformer(lib)

    def loss(params, tokens):
        table, layers, (scale, shift) = params
        x = norm(blocks(layers, table[tokens[..., :-1]]), scale, shift)
        return cross_entropy(lib, x @ table.T, tokens[..., 1:])

    return loss


def torch_language_loss(torch):
    blocks, entropy = torch_transformer(torch), torch_cross_entropy(torch)

    def loss(params, tokens):
        table, layers, (scale, shift) = params
        x = blocks(layers, torch.nn.functional.embedding(tokens[..., :-1], table))
        x = torch.nn.functional.layer_norm(x, (MODEL,), scale, shift)
        logits = x @ table.T
        return entropy(logits.reshape(-1, VOCABULARY), tokens[..., 1:].reshape(-1))

    return loss


def language_arrays(batch: int = 16):
    tokens = np.random.default_rng(5).integers(0, VOCABULARY, (batch, LENGTH + 1), dtype=np.int32)
    last = [np.ones(MODEL, np.float32), np.zeros(MODEL, np.float32)]
    table = normal(VOCABULARY, MODEL, seed=6, scale=MODEL**-0.5)
    return [table, transformer_params(), last], tokens


STEPS, INPUTS, HIDDEN = 32, 32, 128


def lstm_loss(lib):
    """Cross entropy of a dense layer on the last state of an LSTM."""
    xp = lib.numpy

    def loss(params, xs, label):
        into, across, bias, weight, shift = params

        def step(state, x):
            h, c = state
            i, f, g, o = xp.split(x @ into + h @ across + bias, 4, axis=-1)
            c = lib.nn.sigmoid(f) * c + lib.nn.sigmoid(i) * xp.tanh(g)
            return (lib.nn.sigmoid(o) * xp.tanh(c), c), None

        start = xp.zeros((*xs.shape[:-2], HIDDEN), xs.dtype)
        (h, _), _ = lib.lax.scan(step, (start, start), xp.moveaxis(xs, -2, 0))
        return cross_entropy(lib, h @ weight + shift, label)

    return loss


def torch_lstm_loss(torch):
    entropy = torch_cross_entropy(torch)

    def loss(params, xs, label):
        into, across, bias, weight, shift = params
        h = c = xs.new_zeros((*xs.shape[:-2], HIDDEN))
        for x in xs.unbind(-2):
            i, f, g, o = (x @ into + h @ across + bias).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return entropy(h @ weight + shift, label)

    return loss


def lstm_arrays(batch: int = 64):
    into = normal(INPUTS, 4 * HIDDEN, seed=1, scale=INPUTS**-0.5)
    across = normal(HIDDEN, 4 * HIDDEN, seed=2, scale=HIDDEN**-0.5)
    params = [into, across, np.zeros(4 * HIDDEN, np.float32), *dense(HIDDEN, 10, 3)]
    return params, normal(batch, STEPS, INPUTS, seed=7), labels(batch)


ROWS, WIDTH, BAG = 5000, 64, 20


def bag_loss(lib):
    """Cross entropy of a dense layer on the mean of BAG rows of a table."""

    def loss(params, ids, label):
        table, weight, bias = params
        return cross_entropy(lib, table[ids].mean(-2) @ weight + bias, label)

    return loss


def torch_bag_loss(torch):
    entropy = torch_cross_entropy(torch)

    def loss(params, ids, label):
        table, weight, bias = params
        pooled = torch.nn.functional.embedding(ids, table).mean(-2)
        return entropy(pooled @ weight + bias, label)

    return loss


def bag_arrays(batch: int = 128):
    """Words come as often as in a text: some more than once in a bag."""
    ids = np.minimum(np.random.default_rng(5).zipf(1.3, (batch, BAG)) - 1, ROWS - 1)
    return [normal(ROWS, WIDTH, seed=6), *dense(WIDTH, 10, 3)], ids.astype(np.int32), labels(batch)
