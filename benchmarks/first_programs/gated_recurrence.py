"""A step of a two-layer LSTM over time on next values of sequences (Hochreiter 1997)."""

import numpy as np

FIELD = "time series"
SIZES = {
    "tiny": dict(batch=4, length=6, width=8, inputs=2),
    "small": dict(batch=32, length=48, width=48, inputs=6),
    "large": dict(batch=256, length=256, width=512, inputs=32),
}


def make(lib, batch, length, width, inputs):
    jnp = lib.numpy

    def cell(p, state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, axis=-1)
        c = lib.nn.sigmoid(f + 1) * c + lib.nn.sigmoid(i) * jnp.tanh(g)
        h = lib.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def loss(params, series):
        zeros = jnp.zeros((batch, width))
        x = series[:-1]
        for p in params["cells"]:
            x = lib.lax.scan(lambda s, v, p=p: cell(p, s, v), (zeros, zeros), x)[1]
        error = x @ params["out"] + params["bias"] - series[1:]
        return jnp.mean(jnp.where(jnp.abs(error) < 1, error**2 / 2, jnp.abs(error) - 0.5))

    def train(params, speed, series):
        value, grads = lib.value_and_grad(loss)(params, series)
        speed = lib.tree.map(lambda s, g: 0.9 * s + jnp.clip(g, -0.1, 0.1), speed, grads)
        return lib.tree.map(lambda p, s: p - 0.1 * s, params, speed), speed, value

    rng = np.random.default_rng(0)

    def normal(a, b):
        return (rng.standard_normal((a, b)) / a**0.5).astype(np.float32)

    cells = [{"x": normal(n, 4 * width), "h": normal(width, 4 * width),
              "b": np.zeros(4 * width, np.float32)} for n in (inputs, width)]  # fmt: skip
    params = {"cells": cells, "out": normal(width, inputs), "bias": np.zeros(inputs, np.float32)}
    speed = {"cells": [{k: np.zeros_like(p) for k, p in c.items()} for c in cells],
             "out": np.zeros_like(params["out"]), "bias": np.zeros(inputs, np.float32)}  # fmt: skip
    phase = rng.uniform(0, 6, (batch, inputs))
    series = np.sin(0.3 * np.arange(length + 1)[:, None, None] + phase).astype(np.float32)
    return train, (params, speed, series)
