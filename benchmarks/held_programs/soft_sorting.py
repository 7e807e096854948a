"""Learning to rank by relaxed sorting: NeuralSort and an isotonic penalty (Grover 2019)."""

import numpy as np

FIELD = "ranking"
SIZES = {
    "tiny": dict(lists=2, items=6, features=3, hidden=4),
    "small": dict(lists=32, items=48, features=24, hidden=64),
    "large": dict(lists=512, items=256, features=128, hidden=512),
}


def make(lib, lists, items, features, hidden):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def neural_sort(scores, temperature):
        apart = jnp.abs(scores[:, None] - scores[None])
        scaling = items + 1 - 2 * jnp.arange(1, items + 1)
        logits = scaling[:, None] * scores[None] - jnp.sum(apart, axis=1)[None]
        return nn.softmax(logits / temperature, axis=-1)

    def scores_of(params, x):
        h = nn.gelu(x @ params["w1"] + params["b1"])
        h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
        return (h @ params["w2"])[..., 0]

    def gain_of_list(scores, relevance):
        p = neural_sort(scores, 1.0)
        discount = 1 / jnp.log2(jnp.arange(items) + 2.0)
        gains = jnp.exp2(relevance) - 1
        best = jnp.sum(jnp.sort(gains)[::-1] * discount)
        relaxed = jnp.sum((p @ gains) * discount) / best
        order = jnp.argsort(-relevance)
        ordered = scores[order]
        running = lax.cummin(ordered)
        ranks = jnp.argsort(jnp.argsort(-scores))
        hard = jnp.sum(gains / jnp.log2(ranks + 2.0)) / best
        return relaxed - 0.01 * jnp.mean((ordered - running) ** 2), hard

    def loss(params, x, relevance):
        relaxed, hard = lib.vmap(gain_of_list)(scores_of(params, x), relevance)
        return -jnp.mean(relaxed), jnp.mean(hard)

    def step(params, x, relevance):
        (value, hard), grads = lib.value_and_grad(loss, has_aux=True)(params, x, relevance)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(grads)))
        scale = jnp.minimum(1.0, 0.1 / norm)
        return value, hard, lib.tree.map(lambda p, g: p - scale * g, params, grads), grads

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {"w1": draw(features, hidden), "b1": np.zeros(hidden, np.float32),
              "w2": draw(hidden, 1)}
    x = rng.standard_normal((lists, items, features)).astype(np.float32)
    relevance = rng.integers(0, 5, (lists, items)) + 0.01 * rng.standard_normal((lists, items))
    return step, (params, x, relevance.astype(np.float32))
