"""Gradient of a recurrent network in both directions under a random field (Lample et al. 2016)."""

import numpy as np

FIELD = "language"
SIZES = {
    "tiny": dict(batch=3, length=8, width=8, hidden=8, tags=4, words=30),
    "small": dict(batch=8, length=20, width=32, hidden=32, tags=9, words=200),
    "large": dict(batch=64, length=100, width=256, hidden=256, tags=25, words=20_000),
}


def make(lib, batch, length, width, hidden, tags, words):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def lstm(p, x, reverse):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x + h @ p["inner"], 4, axis=-1)
            c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((batch, hidden))
        return lax.scan(cell, (start, start), x @ p["outer"] + p["bias"], reverse=reverse)[1]

    def partition(scores, between, kept):
        def forward(a, element):
            score, here = element
            new = nn.logsumexp(a[:, :, None] + between, axis=1) + score
            return jnp.where(here[:, None], new, a), None

        last, _ = lax.scan(forward, scores[0], (scores[1:], kept[1:]))
        return nn.logsumexp(last, axis=-1)

    def loss(params, text, targets, kept):
        x = params["words"][text]
        both = [lstm(params[name], x, name == "backward") for name in ("forward", "backward")]
        scores = jnp.concatenate(both, axis=-1) @ params["tag"]
        own = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
        pairs = params["between"][targets[:-1], targets[1:]]
        right = jnp.sum(own * kept, 0) + jnp.sum(pairs * kept[1:], 0)
        return jnp.mean(partition(scores, params["between"], kept) - right)

    def step(params, text, targets, kept):
        return lib.value_and_grad(loss)(params, text, targets, kept)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def draw_lstm():
        return {"outer": draw(width, 4 * hidden), "inner": draw(hidden, 4 * hidden),
                "bias": np.zeros(4 * hidden, np.float32)}

    params = {"words": rng.standard_normal((words, width)).astype(np.float32),
              "forward": draw_lstm(), "backward": draw_lstm(), "tag": draw(2 * hidden, tags),
              "between": draw(tags, tags)}
    text = rng.integers(0, words, (length, batch)).astype(np.int32)
    targets = rng.integers(0, tags, (length, batch)).astype(np.int32)
    kept = np.arange(length)[:, None] < rng.integers(length // 2, length + 1, batch)
    return step, (params, text, targets, kept)
