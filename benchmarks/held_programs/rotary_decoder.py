"""Greedy decoding of a transformer with rotary and grouped attention and a cache (Su 2021)."""

import numpy as np

FIELD = "language models"
SIZES = {
    "tiny": dict(batch=2, prompt=4, length=3, layers=1, heads=2, groups=1, width=4, vocabulary=13),
    "small": dict(batch=2, prompt=24, length=8, layers=3, heads=6, groups=2, width=24,
                  vocabulary=1000),
    "large": dict(batch=16, prompt=512, length=64, layers=12, heads=16, groups=4, width=64,
                  vocabulary=32000),
}


def make(lib, batch, prompt, length, layers, heads, groups, width, vocabulary):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    features, total = heads * width, prompt + length

    def norm(x, scale):
        return scale * x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)

    def rotate(x, positions):
        angles = positions[:, None] * 10000.0 ** (-jnp.arange(0, width, 2) / width)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)

    def attend(layer, x, positions, cache):
        q = rotate((x @ layer["q"]).reshape(batch, -1, heads, width), positions)
        k = rotate((x @ layer["k"]).reshape(batch, -1, groups, width), positions)
        v = (x @ layer["v"]).reshape(batch, -1, groups, width)
        keys = lax.dynamic_update_slice(cache[0], k, (0, positions[0], 0, 0))
        values = lax.dynamic_update_slice(cache[1], v, (0, positions[0], 0, 0))
        q = q.reshape(batch, -1, groups, heads // groups, width)
        scores = jnp.einsum("bqgrd,bkgd->bgrqk", q, keys) / width**0.5
        visible = jnp.arange(total)[None] <= positions[:, None]
        weights = nn.softmax(jnp.where(visible, scores, -1e9), axis=-1)
        out = jnp.einsum("bgrqk,bkgd->bqgrd", weights, values).reshape(batch, -1, features)
        return out @ layer["o"], (keys, values)

    def forward(params, tokens, positions, caches):
        x = params["embed"][tokens]

        def block(x, at):
            layer, cache = at
            out, cache = attend(layer, norm(x, layer["n1"]), positions, cache)
            x = x + out
            h = norm(x, layer["n2"])
            return x + (nn.silu(h @ layer["gate"]) * (h @ layer["up"])) @ layer["down"], cache

        x, caches = lax.scan(block, x, (params["layers"], caches))
        return norm(x[:, -1], params["norm"]) @ params["embed"].T, caches

    def step(params, tokens):
        empty = jnp.zeros((layers, batch, total, groups, width))
        logits, caches = forward(params, tokens, jnp.arange(prompt), (empty, empty))

        def decode(carry, position):
            logits, caches = carry
            token = jnp.argmax(logits, axis=-1)
            logits, caches = forward(params, token[:, None], position[None], caches)
            return (logits, caches), (token, nn.logsumexp(logits, axis=-1))

        positions = prompt + jnp.arange(length)
        (logits, _), (chosen, sums) = lax.scan(decode, (logits, caches), positions)
        return chosen.T, sums, logits

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    ones = np.ones((layers, features), np.float32)
    stack = {"q": draw(layers, features, features), "k": draw(layers, features, groups * width),
             "v": draw(layers, features, groups * width), "o": draw(layers, features, features),
             "gate": draw(layers, features, 3 * features), "n1": ones, "n2": ones,
             "up": draw(layers, features, 3 * features),
             "down": draw(layers, 3 * features, features)}
    params = {"embed": rng.standard_normal((vocabulary, features)).astype(np.float32),
              "layers": stack, "norm": ones[0]}
    return step, (params, rng.integers(0, vocabulary, (batch, prompt)).astype(np.int32))
