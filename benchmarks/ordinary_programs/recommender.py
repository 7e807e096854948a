"""An Adagrad step of clicks from tables of categories and pairs of them (Naumov et al. 2019)."""

import itertools

import numpy as np

FIELD = "recommendation"
SIZES = {
    "tiny": dict(batch=8, tables=3, rows=20, bag=2, width=4, dense=5, hidden=8),
    "small": dict(batch=64, tables=6, rows=500, bag=3, width=16, dense=13, hidden=32),
    "large": dict(batch=8192, tables=26, rows=10_000, bag=4, width=32, dense=13, hidden=512),
}


def make(lib, batch, tables, rows, bag, width, dense, hidden):
    jnp, nn = lib.numpy, lib.nn
    left, right = np.tril_indices(tables + 1, -1)

    def mlp(layers, x):
        for k, (w, b) in enumerate(layers):
            x = x @ w + b
            x = nn.relu(x) if k < len(layers) - 1 else x
        return x

    def loss(params, numbers, categories, clicked):
        bottom = nn.relu(mlp(params["bottom"], numbers))
        found = lib.vmap(lambda table, i: table[i].sum(axis=1), (0, 1), 1)(params["tables"],
                                                                          categories)
        every = jnp.concatenate([bottom[:, None], found], axis=1)
        pairs = jnp.einsum("bic,bjc->bij", every, every)[:, left, right]
        logit = mlp(params["top"], jnp.concatenate([bottom, pairs], axis=1))[:, 0]
        return jnp.mean(nn.softplus(logit) - clicked * logit)

    def step(params, squares, numbers, categories, clicked):
        value, slope = lib.value_and_grad(loss)(params, numbers, categories, clicked)
        squares = lib.tree.map(lambda s, g: s + g * g, squares, slope)
        params = lib.tree.map(lambda p, s, g: p - 0.01 * g / (jnp.sqrt(s) + 1e-3), params, squares,
                              slope)
        return params, squares, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    def layers(*sizes):
        return [(draw(a, b), np.zeros(b, np.float32)) for a, b in itertools.pairwise(sizes)]

    params = {"bottom": layers(dense, hidden, hidden // 2, width),
              "tables": draw(tables, rows, width) * np.float32(np.sqrt(rows / width)),
              "top": layers(width + len(left), hidden, hidden // 2, 1)}
    categories = rng.integers(0, rows, (batch, tables, bag)).astype(np.int32)
    return step, (params, lib.tree.map(np.zeros_like, params),
                  rng.standard_normal((batch, dense)).astype(np.float32), categories,
                  (rng.random(batch) < 0.3).astype(np.float32))
