"""Regression on sets with small layers, gradient and Adam (Zaheer and others 2017)."""

import numpy as np

FIELD = "sets"
SIZES = {
    "tiny": dict(sets=4, members=5, width=16, layers=2),
    "small": dict(sets=128, members=12, width=64, layers=4),
    "server": dict(sets=256, members=64, width=128, layers=6),
    "large": dict(sets=4096, members=64, width=256, layers=6),
}


def make(lib, sets, members, width, layers):
    jnp = lib.numpy

    def network(parameters, x):
        for weight, bias in parameters[:layers]:
            x = x + lib.nn.silu(x @ weight + bias)
        x = jnp.concatenate([jnp.mean(x, axis=1), jnp.max(x, axis=1)], axis=-1)[:, :width]
        for weight, bias in parameters[layers:]:
            x = x + lib.nn.silu(x @ weight + bias)
        return jnp.sum(x, axis=-1)

    def loss(parameters, x, y):
        return jnp.mean((network(parameters, x) - y) ** 2)

    def step(parameters, first, second, x, y):
        value, slope = lib.value_and_grad(loss)(parameters, x, y)
        tree = lib.tree.map
        first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = tree(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
        new = tree(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-4), parameters, first, second)
        return value, new, first, second

    rng = np.random.default_rng(0)

    def drawn(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    parameters = [(drawn(width, width), np.zeros(width, np.float32)) for _ in range(2 * layers)]
    zeros = [tuple(np.zeros_like(x) for x in pair) for pair in parameters]
    x = rng.standard_normal((sets, members, width)).astype(np.float32)
    return step, (parameters, zeros, zeros, x, x.mean((1, 2)))
