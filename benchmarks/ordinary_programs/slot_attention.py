"""Gradient of slots that compete for places of a picture, and of a decoder (Locatello et al. 2020).

Each slot paints the whole picture from a broadcast grid; their masks mix the paintings.
"""

import numpy as np

FIELD = "object discovery"
SIZES = {
    "tiny": dict(images=2, side=8, width=8, slots=3, rounds=2),
    "small": dict(images=4, side=16, width=16, slots=4, rounds=2),
    "large": dict(images=16, side=64, width=64, slots=7, rounds=3),
}
TOLERANCE = {"cpu": 2e-3, "gpu": 3e-2}


def make(lib, images, side, width, slots, rounds):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, p):
        return lax.conv_general_dilated(x, p["w"], (1, 1), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]

    def norm(x):
        mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-6)

    def grid(n):
        line = jnp.linspace(0, 1, n)
        y, x = jnp.meshgrid(line, line, indexing="ij")
        return jnp.stack([x, y, 1 - x, 1 - y], axis=-1)

    def gru(p, h, x):
        r, z = jnp.split(nn.sigmoid(x @ p["xg"] + h @ p["hg"]), 2, axis=-1)
        new = jnp.tanh(x @ p["xn"] + r * (h @ p["hn"]))
        return (1 - z) * new + z * h

    def find(p, x, s):
        x = norm(x)
        k, v = x @ p["k"], x @ p["v"]
        for _ in range(rounds):
            scores = jnp.einsum("bnd,bsd->bns", k, norm(s) @ p["q"]) / width**0.5
            weights = nn.softmax(scores, axis=-1) + 1e-8
            weights = weights / jnp.sum(weights, axis=1, keepdims=True)
            s = gru(p["gru"], s, jnp.einsum("bns,bnd->bsd", weights, v))
            s = s + nn.silu(norm(s) @ p["up"]) @ p["down"]
        return s

    def loss(params, x, noise):
        h = x
        for p in params["encoder"]:
            h = nn.silu(conv(h, p))
        h = (h + grid(side) @ params["place"]).reshape(images, side * side, width)
        h = nn.silu(norm(h) @ params["mlp"])
        s = find(params["slots"], h, params["mean"] + nn.softplus(params["spread"]) * noise)
        n = side // 4
        y = jnp.broadcast_to(s.reshape(-1, 1, 1, width), (images * slots, n, n, width))
        y = y + grid(n) @ params["replace"]
        for p in params["decoder"]:
            y = lax.conv_transpose(y, p["w"], (2, 2), "SAME",
                                   dimension_numbers=("NHWC", "HWIO", "NHWC"))
            y = nn.silu(y + p["b"])
        y = conv(y, params["last"]).reshape(images, slots, side, side, 4)
        mask = nn.softmax(y[..., 3:], axis=1)
        return jnp.mean((jnp.sum(mask * y[..., :3], axis=1) - x) ** 2)

    def step(params, x, noise):
        return lib.value_and_grad(loss)(params, x, noise)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def draw_conv(k, a, b):
        return {"w": draw(k, k, a, b), "b": np.zeros(b, np.float32)}

    gates = {"xg": draw(width, 2 * width), "hg": draw(width, 2 * width),
             "xn": draw(width, width), "hn": draw(width, width)}
    params = {"encoder": [draw_conv(5, a, width) for a in (3, width, width)],
              "place": draw(4, width), "replace": draw(4, width), "mlp": draw(width, width),
              "slots": {"q": draw(width, width), "k": draw(width, width), "v": draw(width, width),
                        "gru": gates, "up": draw(width, 2 * width), "down": draw(2 * width, width)},
              "mean": draw(1, width), "spread": draw(1, width),
              "decoder": [draw_conv(5, width, width) for _ in range(2)],
              "last": draw_conv(3, width, 4)}
    x = rng.random((images, side, side, 3)).astype(np.float32)
    return step, (params, x, rng.standard_normal((images, slots, width)).astype(np.float32))
