"""Two small classifiers of 8x8 images, each written for one image; `ft.vmap` makes the batch.

Parameters are plain dictionaries of arrays, hence pytrees: every transform and `ft.tree.map` accept
them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import functrans as ft
import functrans.numpy as jnp

CLASSES = 10
Params = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Network:
    """A model: `init(key)` draws its parameters, `apply(params, image)` gives logits [10]."""

    name: str
    init: Callable[[Any], Params]
    apply: Callable[[Params, Any], Any]


def layer(key, *shape: int) -> dict[str, Any]:
    """Weights of `shape`, outputs last, scaled for a ReLU after them (He et al. 2015)."""
    fan_in = 1
    for size in shape[:-1]:
        fan_in *= size
    weight = ft.random.normal(key, shape) * (2 / fan_in) ** 0.5
    return {"weight": weight, "bias": jnp.zeros(shape[-1])}


def dense(params, x):
    """Affine map of a vector."""
    return x @ params["weight"] + params["bias"]


def convolve(params, image):
    """3x3 convolution of one image [height, width, channels], padded to keep its size."""
    layout = ("NHWC", "HWIO", "NHWC")
    out = ft.lax.conv_general_dilated(
        image[None], params["weight"], (1, 1), "SAME", dimension_numbers=layout
    )
    return out[0] + params["bias"]


def halve(image):
    """The largest value in every 2x2 square."""
    height, width, channels = image.shape
    return image.reshape(height // 2, 2, width // 2, 2, channels).max(axis=(1, 3))


def init_mlp(key, pixels: int = 64, hidden1: int = 96, hidden2: int = 48) -> Params:
    first, second, third = ft.random.split(key, 3)
    return {
        "hidden1": layer(first, pixels, hidden1),
        "hidden2": layer(second, hidden1, hidden2),
        "logits": layer(third, hidden2, CLASSES),
    }


def apply_mlp(params: Params, image):
    hidden = ft.nn.relu(dense(params["hidden1"], image.reshape(-1)))
    hidden = ft.nn.relu(dense(params["hidden2"], hidden))
    return dense(params["logits"], hidden)


def init_cnn(key) -> Params:
    first, second, third = ft.random.split(key, 3)
    return {
        "conv1": layer(first, 3, 3, 1, 8),
        "conv2": layer(second, 3, 3, 8, 16),
        "logits": layer(third, 4 * 4 * 16, CLASSES),
    }


def apply_cnn(params: Params, image):
    features = ft.nn.relu(convolve(params["conv1"], image[..., None]))
    features = halve(ft.nn.relu(convolve(params["conv2"], features)))
    return dense(params["logits"], features.reshape(-1))


MLP = Network("MLP", init_mlp, apply_mlp)
CNN = Network("CNN", init_cnn, apply_cnn)
LARGE_MLP = Network("MLP 784-256-128-10", lambda key: init_mlp(key, 784, 256, 128), apply_mlp)
"""For images of 28 x 28: that of benchmarks/per_sample.py, which README.md has figures of."""
