"""Gradient of state spaces whose rates depend on the words (Gu and Dao 2023: Mamba)."""

import numpy as np

FIELD = "language models"
SIZES = {
    "tiny": dict(batch=2, length=16, width=8, states=4, layers=1, words=20),
    "small": dict(batch=2, length=64, width=32, states=8, layers=2, words=100),
    "large": dict(batch=4, length=1024, width=256, states=16, layers=2, words=4096),
}


def make(lib, batch, length, width, states, layers, words):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    inner, rank = 2 * width, max(1, width // 16)

    def join(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    def normalise(x, scale):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale

    def mix(p, x):
        x, gate = jnp.split(x @ p["in"], 2, axis=-1)
        x = lax.conv_general_dilated(x, p["conv"], (1,), [(3, 0)], feature_group_count=inner,
                                     dimension_numbers=("NWC", "WIO", "NWC"))
        x = nn.silu(x)
        rate, b, c = jnp.split(x @ p["select"], (rank, rank + states), axis=-1)
        rate = nn.softplus(rate @ p["rate"] + p["rate_bias"])
        decay = jnp.exp(-rate[..., None] * jnp.exp(p["log_decay"]))
        inward = (rate * x)[..., None] * b[..., None, :]
        _, h = lax.associative_scan(join, (decay, inward), axis=1)
        y = jnp.einsum("blds,bls->bld", h, c) + p["skip"] * x
        return (y * nn.silu(gate)) @ p["out"]

    def loss(params, text):
        x = params["words"][text[:, :-1]]
        for p in params["blocks"]:
            x = x + mix(p, normalise(x, p["scale"]))
        logits = x @ params["words"].T
        of_next = jnp.take_along_axis(logits, text[:, 1:, None], axis=-1)[..., 0]
        return jnp.mean(nn.logsumexp(logits, axis=-1) - of_next)

    def step(params, text):
        return lib.value_and_grad(loss)(params, text)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def draw_block():
        return {"in": draw(width, 2 * inner), "conv": draw(4, 1, inner),
                "select": draw(inner, rank + 2 * states), "rate": draw(rank, inner),
                "rate_bias": np.full(inner, -3, np.float32), "skip": np.ones(inner, np.float32),
                "log_decay": np.log(np.tile(np.arange(1, states + 1), (inner, 1))).astype(
                    np.float32), "out": draw(inner, width), "scale": np.ones(width, np.float32)}

    params = {"words": (0.1 * rng.standard_normal((words, width))).astype(np.float32),
              "blocks": [draw_block() for _ in range(layers)]}
    return step, (params, rng.integers(0, words, (batch, length + 1)).astype(np.int32))
