"""The programs that are timed, written once for every library with NumPy's and JAX's names.

Each takes the array module (`functrans.numpy`, `jax.numpy`) or the library, and returns a function,
so that the libraries trace the same source.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

LAYERS, WIDTH = 12, 64
BLOCKS, SEQUENCE, MODEL, HEADS = 4, 16, 32, 4


def random_array(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[-1]))


def make_tanh_loss(xp: ModuleType) -> Callable[[Any, Any], Any]:
    """sum(tanh(x @ w)**2)."""
    return lambda w, x: xp.sum(xp.tanh(x @ w) ** 2)


def nested_grad(grad: Callable, function: Callable, depth: int) -> Callable:
    """The derivative of order `depth` of a scalar function."""
    for _ in range(depth):
        function = grad(function)
    return function


def mlp_arguments() -> tuple[Any, np.ndarray, np.ndarray]:
    """Parameters of 12 layers of width 64, a batch of inputs and one of targets."""
    rng = np.random.default_rng(0)
    params = [
        {"weight": random_array(rng, WIDTH, WIDTH), "bias": random_array(rng, WIDTH)}
        for _ in range(LAYERS)
    ]
    return params, random_array(rng, 32, WIDTH), random_array(rng, 32, WIDTH)


def make_mlp_loss(xp: ModuleType) -> Callable[[Any, Any, Any], Any]:
    """Mean squared error of a tanh MLP."""

    def loss(params, x, target):
        for layer in params[:-1]:
            x = xp.tanh(x @ layer["weight"] + layer["bias"])
        out = x @ params[-1]["weight"] + params[-1]["bias"]
        return xp.mean((out - target) ** 2)

    return loss


def transformer_arguments() -> tuple[Any, np.ndarray, np.ndarray]:
    """Parameters of 4 pre-norm blocks, a batch of embedded sequences and their targets."""
    rng = np.random.default_rng(0)
    head = MODEL // HEADS
    params = [
        {
            "norm1": {"scale": np.ones(MODEL, np.float32), "shift": np.zeros(MODEL, np.float32)},
            "norm2": {"scale": np.ones(MODEL, np.float32), "shift": np.zeros(MODEL, np.float32)},
            "query": random_array(rng, MODEL, HEADS, head),
            "key": random_array(rng, MODEL, HEADS, head),
            "value": random_array(rng, MODEL, HEADS, head),
            "mix": random_array(rng, HEADS, head, MODEL),
            "widen": random_array(rng, MODEL, 4 * MODEL),
            "widen_bias": random_array(rng, 4 * MODEL),
            "narrow": random_array(rng, 4 * MODEL, MODEL),
            "narrow_bias": random_array(rng, MODEL),
        }
        for _ in range(BLOCKS)
    ]
    shape = (2, SEQUENCE, MODEL)
    return params, random_array(rng, *shape), random_array(rng, *shape)


def make_transformer_loss(xp: ModuleType) -> Callable[[Any, Any, Any], Any]:
    """Mean squared error of a causal transformer of pre-norm blocks with tanh-gelu."""

    def layer_norm(params, x):
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(centred**2, axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + 1e-5) * params["scale"] + params["shift"]

    def softmax(x):
        weights = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    def gelu(x):
        return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def attention(params, x, mask):
        query = xp.einsum("bsm,mhd->bhsd", x, params["query"])
        key = xp.einsum("bsm,mhd->bhsd", x, params["key"])
        value = xp.einsum("bsm,mhd->bhsd", x, params["value"])
        scores = xp.einsum("bhsd,bhtd->bhst", query, key) / (MODEL // HEADS) ** 0.5
        weights = softmax(xp.where(mask, scores, -1e9))
        mixed = xp.einsum("bhst,bhtd->bhsd", weights, value)
        return xp.einsum("bhsd,hdm->bsm", mixed, params["mix"])

    def loss(params, x, target):
        mask = np.tri(SEQUENCE, dtype=bool)
        for block in params:
            x = x + attention(block, layer_norm(block["norm1"], x), mask)
            hidden = gelu(layer_norm(block["norm2"], x) @ block["widen"] + block["widen_bias"])
            x = x + hidden @ block["narrow"] + block["narrow_bias"]
        return xp.mean((x - target) ** 2)

    return loss


def small_tree(convert: Callable[[np.ndarray], Any]) -> list[dict[str, Any]]:
    """50 arrays of 8 floats in 25 dictionaries."""
    rng = np.random.default_rng(0)
    return [
        {"weight": convert(random_array(rng, 8)), "bias": convert(random_array(rng, 8))}
        for _ in range(25)
    ]
