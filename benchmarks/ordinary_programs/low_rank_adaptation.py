"""An AdamW step of low-rank changes to a frozen decoder in bfloat16 (Hu et al. 2022: LoRA).

The decoder shares keys among heads, turns them by place, and gates its layers.
"""

import numpy as np

FIELD = "language models"
SIZES = {
    "tiny": dict(batch=2, length=12, width=16, heads=4, shared=2, hidden=24, layers=1, words=20,
                 rank=2),
    "small": dict(batch=2, length=64, width=64, heads=4, shared=2, hidden=128, layers=2, words=200,
                  rank=4),
    "large": dict(batch=4, length=1024, width=1024, heads=16, shared=4, hidden=2816, layers=4,
                  words=16384, rank=16),
}
TOLERANCE = {"cpu": 3e-2, "gpu": 3e-2}  # of bfloat16


def make(lib, batch, length, width, heads, shared, hidden, layers, words, rank):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    size = width // heads

    def norm(x, scale):
        y = x.astype(jnp.float32)
        y = y * lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)
        return y.astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)

    def dense(x, w, change):
        low = x @ change["a"].astype(jnp.bfloat16) @ change["b"].astype(jnp.bfloat16)
        return x @ w.astype(jnp.bfloat16) + 2 * low

    def turn(x):
        angles = jnp.arange(length)[:, None] / 1e4 ** (jnp.arange(size // 2) / (size // 2))
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(jnp.bfloat16)

    def attend(p, change, x):
        q = turn(dense(x, p["q"], change["q"]).reshape(batch, length, heads, size))
        k = turn((x @ p["k"].astype(jnp.bfloat16)).reshape(batch, length, shared, size))
        v = dense(x, p["v"], change["v"]).reshape(batch, length, shared, size)
        k, v = (jnp.repeat(y, heads // shared, axis=2) for y in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / size**0.5
        causal = jnp.arange(length)[:, None] >= jnp.arange(length)
        weights = nn.softmax(jnp.where(causal, scores, -1e9), axis=-1).astype(jnp.bfloat16)
        y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, width)
        return y @ p["out"].astype(jnp.bfloat16)

    def loss(changes, base, words_in, words_out):
        x = base["embed"][words_in].astype(jnp.bfloat16)
        for p, change in zip(base["layers"], changes):
            x = x + attend(p, change, norm(x, p["norm1"]))
            h = norm(x, p["norm2"])
            gate, up = (h @ p[k].astype(jnp.bfloat16) for k in ("gate", "up"))
            x = x + (nn.silu(gate) * up) @ p["down"].astype(jnp.bfloat16)
        logits = (norm(x, base["norm"]) @ base["embed"].T.astype(jnp.bfloat16)).astype(jnp.float32)
        right = jnp.take_along_axis(logits, words_out[..., None], axis=-1)[..., 0]
        return jnp.mean(nn.logsumexp(logits, axis=-1) - right)

    def step(changes, first, second, base, words_in, words_out):
        value, slope = lib.value_and_grad(loss)(changes, base, words_in, words_out)
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = lib.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, second, slope)
        changes = lib.tree.map(lambda p, m, s: p - 1e-4 * (m / (jnp.sqrt(s) + 1e-3) + 0.01 * p),
                               changes, first, second)
        return changes, first, value

    rng = np.random.default_rng(0)

    def draw(a, b):
        return (rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)

    ones, keys = np.ones(width, np.float32), shared * size
    base = {"embed": draw(words, width) * (words / width) ** 0.5, "norm": ones, "layers": [
        {"norm1": ones, "norm2": ones, "q": draw(width, width), "k": draw(width, keys),
         "v": draw(width, keys), "out": draw(width, width), "gate": draw(width, hidden),
         "up": draw(width, hidden), "down": draw(hidden, width)} for _ in range(layers)]}
    base["embed"] = base["embed"].astype(np.float32)
    changes = [{"q": {"a": draw(width, rank), "b": 0.1 * draw(rank, width)},
                "v": {"a": draw(width, rank), "b": 0.1 * draw(rank, keys)}} for _ in range(layers)]
    zeros = lib.tree.map(np.zeros_like, changes)
    text = rng.integers(0, words, (batch, length + 1)).astype(np.int32)
    return step, (changes, zeros, zeros, base, text[:, :-1], text[:, 1:])
