"""Loss and gradient of masked words under padded bidirectional attention (Devlin et al. 2019)."""

import numpy as np

FIELD = "language models"
SIZES = {
    "tiny": dict(batch=2, length=12, width=16, heads=2, layers=1, words=40),
    "small": dict(batch=4, length=48, width=48, heads=4, layers=2, words=200),
    "large": dict(batch=16, length=256, width=512, heads=8, layers=4, words=30522),
}


def make(lib, batch, length, width, heads, layers, words):
    jnp, nn = lib.numpy, lib.nn
    depth = width // heads

    def norm(x, p):
        mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + 1e-12) * p["scale"] + p["shift"]

    def split(x):
        return x.reshape(batch, length, heads, depth).transpose(0, 2, 1, 3)

    def block(p, x, bias):
        q, k, v = (split(x @ p[n]) for n in ("q", "k", "v"))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(depth).astype(np.float32) + bias
        y = (nn.softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(x + y @ p["out"] + p["out_bias"], p["norm1"])
        h = nn.gelu(x @ p["up"] + p["up_bias"], approximate=False)
        return norm(x + h @ p["down"] + p["down_bias"], p["norm2"])

    def loss(params, text, kept, targets, hidden):
        bias = jnp.where(kept, 0.0, -1e9)[:, None, None, :]
        x = norm(params["words"][text] + params["places"], params["norm"])
        for p in params["blocks"]:
            x = block(p, x, bias)
        h = norm(nn.gelu(x @ params["head"], approximate=False), params["norm_head"])
        logits = h @ params["words"].T + params["head_bias"]
        each = jnp.take_along_axis(nn.log_softmax(logits, axis=-1), targets[..., None], -1)[..., 0]
        return -jnp.sum(each * hidden) / jnp.sum(hidden)

    def step(params, text, kept, targets, hidden):
        return lib.value_and_grad(loss)(params, text, kept, targets, hidden)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def scales():
        return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}

    def draw_block():
        p = {n: draw(width, width) for n in ("q", "k", "v", "out")}
        p |= {n + "_bias": np.zeros(width, np.float32) for n in ("out", "down")}
        p |= {"up": draw(width, 4 * width), "up_bias": np.zeros(4 * width, np.float32)}
        return p | {"down": draw(4 * width, width), "norm1": scales(), "norm2": scales()}

    params = {"words": (0.05 * rng.standard_normal((words, width))).astype(np.float32),
              "places": (0.05 * rng.standard_normal((length, width))).astype(np.float32),
              "norm": scales(), "norm_head": scales(), "head": draw(width, width),
              "head_bias": np.zeros(words, np.float32),
              "blocks": [draw_block() for _ in range(layers)]}
    targets = rng.integers(0, words, (batch, length)).astype(np.int32)
    hidden = rng.random((batch, length)) < 0.15
    text = np.where(hidden, 0, targets).astype(np.int32)
    kept = np.arange(length) < rng.integers(length // 2, length + 1, (batch, 1))
    return step, (params, text, kept, targets, (hidden & kept).astype(np.float32))
