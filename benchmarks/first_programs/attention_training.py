"""A step of a small causal transformer with rotary positions and momentum (Su 2021)."""

import numpy as np

FIELD = "language"
SIZES = {
    "tiny": dict(batch=2, length=8, width=16, heads=2, layers=1, words=11),
    "small": dict(batch=4, length=32, width=64, heads=4, layers=2, words=64),
    "large": dict(batch=16, length=512, width=512, heads=8, layers=6, words=8192),
}


def make(lib, batch, length, width, heads, layers, words):
    jnp = lib.numpy
    size = width // heads
    rates = 1 / 100 ** (np.arange(size // 2) / (size // 2))
    angles = (np.arange(length)[:, None] * rates).astype(np.float32)
    cos, sin = np.cos(angles), np.sin(angles)

    def rotated(x):
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    def scaled(x, gain):
        return gain * x * lib.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-5)

    def block(x, p):
        h = scaled(x, p["first"])
        q, k, v = (jnp.reshape(part, (batch, length, heads, size)).transpose(0, 2, 1, 3)
                   for part in jnp.split(h @ p["qkv"], 3, axis=-1))  # fmt: skip
        scores = rotated(q) @ rotated(k).swapaxes(-1, -2) / size**0.5
        scores = jnp.where(np.tri(length, dtype=bool), scores, -1e9)
        mixed = (lib.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + mixed @ p["out"]
        h = scaled(x, p["second"])
        return x + (lib.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    def loss(params, tokens):
        x = params["embed"][tokens[:, :-1]]
        for p in params["blocks"]:
            x = block(x, p)
        logits = scaled(x, params["last"]) @ params["embed"].T
        total = lib.scipy.special.logsumexp(logits, axis=-1)
        right = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
        return jnp.mean(total - right)

    def train(params, momentum, tokens):
        value, grads = lib.value_and_grad(loss)(params, tokens)
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return lib.tree.map(lambda p, m: p - 0.02 * m, params, momentum), momentum, value

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)

    ones = np.ones(width, np.float32)
    blocks = [{"first": ones, "second": ones, "qkv": normal(width, 3 * width),
               "out": normal(width, width), "gate": normal(width, 2 * width),
               "up": normal(width, 2 * width), "down": normal(2 * width, width)}
              for _ in range(layers)]  # fmt: skip
    params = {"embed": normal(words, width), "blocks": blocks, "last": ones}
    zeros = {"embed": np.zeros((words, width), np.float32), "last": 0 * ones,
             "blocks": [{k: np.zeros_like(p) for k, p in b.items()} for b in blocks]}  # fmt: skip
    tokens = rng.integers(0, words, (batch, length + 1)).astype(np.int32)
    return train, (params, zeros, tokens)
