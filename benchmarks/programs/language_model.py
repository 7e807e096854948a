"""An Adam step of a decoder language model in mixed precision (Touvron et al. 2023: Llama)."""

import numpy as np

FIELD = "language"
SIZES = {
    "tiny": dict(batch=1, length=16, width=32, heads=4, groups=2, layers=1, words=64),
    "small": dict(batch=2, length=64, width=64, heads=4, groups=2, layers=2, words=256),
    "large": dict(batch=8, length=512, width=512, heads=8, groups=2, layers=4, words=8192),
}
TOLERANCE = 6e-2  # of bfloat16, in both libraries


def make(lib, batch, length, width, heads, groups, layers, words):
    jnp, nn = lib.numpy, lib.nn
    head = width // heads

    def rms_norm(x, scale):
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return (wide / jnp.sqrt(mean + 1e-6)).astype(x.dtype) * scale

    def rotate(x):  # batch, length, heads, head
        freqs = 1e4 ** (-jnp.arange(0, head, 2) / head)
        angles = jnp.arange(length)[:, None, None] * freqs
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)

    def attention(x, p):
        q = rotate((x @ p["query"]).reshape(batch, length, heads, head))
        k = rotate((x @ p["key"]).reshape(batch, length, groups, head))
        v = (x @ p["value"]).reshape(batch, length, groups, head)
        k, v = (jnp.repeat(each, heads // groups, axis=2) for each in (k, v))
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k).astype(jnp.float32) / head**0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        mixed = jnp.einsum("nhqk,nkhd->nqhd", nn.softmax(scores).astype(x.dtype), v)
        return mixed.reshape(x.shape) @ p["out"]

    def mlp(x, p):
        return (nn.silu(x @ p["gate"]) * (x @ p["up"])) @ p["down"]

    def loss(params, tokens):
        params = lib.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        x = params["embedding"][tokens[:, :-1]]
        for layer in params["layers"]:
            x = x + attention(rms_norm(x, layer["norm1"]), layer)
            x = x + mlp(rms_norm(x, layer["norm2"]), layer)
        logits = rms_norm(x, params["norm"]) @ params["embedding"].T
        log_probs = nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1))

    def step(params, m, v, count, tokens):
        value, grads = lib.value_and_grad(loss)(params, tokens)
        m = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = lib.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, grads)

        def update(p, m, v):
            m_hat, v_hat = m / (1 - 0.9**count), v / (1 - 0.95**count)
            return p - 3e-4 * (m_hat / (jnp.sqrt(v_hat) + 1e-8) + 0.1 * p)

        return value, lib.tree.map(update, params, m, v), m, v

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    hidden = 8 * width // 3 // 32 * 32 + 32

    def layer():
        return {
            "norm1": np.ones(width, np.float32), "norm2": np.ones(width, np.float32),
            "query": normal(width, width), "key": normal(width, groups * head),
            "value": normal(width, groups * head), "out": normal(width, width),
            "gate": normal(width, hidden), "up": normal(width, hidden),
            "down": normal(hidden, width),
        }  # fmt: skip

    params = {"norm": np.ones(width, np.float32), "layers": [layer() for _ in range(layers)]}
    params["embedding"] = normal(width, words).T.copy()
    m = lib.tree.map(np.zeros_like, params)
    v = lib.tree.map(lambda p: (1e-6 * rng.uniform(1, 2, p.shape)).astype(np.float32), params)
    tokens = rng.integers(words, size=(batch, length + 1), dtype=np.int32)
    return step, (params, m, v, np.float32(50), tokens)
