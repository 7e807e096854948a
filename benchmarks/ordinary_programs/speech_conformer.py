"""An AdamW step of attention with relative places beside convolutions (Gulati et al. 2020)."""

import numpy as np

FIELD = "audio"
SIZES = {
    "tiny": dict(batch=2, frames=16, bands=8, width=16, heads=2, layers=1, kernel=5, words=12),
    "small": dict(batch=2, frames=64, bands=20, width=32, heads=4, layers=2, kernel=15, words=40),
    "large": dict(batch=16, frames=1600, bands=80, width=256, heads=4, layers=4, kernel=31,
                  words=1000),
}


def make(lib, batch, frames, bands, width, heads, layers, kernel, words):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def norm(x, p):
        mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"]

    def subsample(x, w):
        return nn.silu(lax.conv_general_dilated(x, w, (2, 2), "SAME",
                                                dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def feed(p, x):
        return 0.5 * (nn.silu(norm(x, p["norm"]) @ p["up"]) @ p["down"])

    def attend(p, x, far):
        q, k, v = jnp.split(norm(x, p["norm"]) @ p["qkv"], 3, axis=-1)
        q, k, v = (y.reshape(*y.shape[:2], heads, -1) for y in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        weights = nn.softmax(scores + p["places"][:, far], axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]

    def convolve(p, x):
        a, b = jnp.split(norm(x, p["norm"]) @ p["in"], 2, axis=-1)
        x = lax.conv_general_dilated(a * nn.sigmoid(b), p["depthwise"], (1,), "SAME",
                                     dimension_numbers=("NWC", "WIO", "NWC"),
                                     feature_group_count=width)
        mean, var = jnp.mean(x, (0, 1)), jnp.var(x, (0, 1))
        return nn.silu((x - mean) * lax.rsqrt(var + 1e-5) * p["scale"]) @ p["out"]

    def loss(params, x, labels):
        x = subsample(subsample(x[..., None], params["first"]), params["second"])
        x = x.reshape(batch, x.shape[1], -1) @ params["embed"]
        places = jnp.arange(x.shape[1])
        far = jnp.clip(places[:, None] - places, -32, 32) + 32
        for p in params["layers"]:
            x = x + feed(p["feed1"], x)
            x = x + attend(p["attend"], x, far)
            x = x + convolve(p["convolve"], x)
            x = norm(x + feed(p["feed2"], x), p["norm"])
        logits = x @ params["head"]
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[..., None], -1))

    def step(params, first, second, x, labels):
        value, slope = lib.value_and_grad(loss)(params, x, labels)
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = lib.tree.map(lambda s, g: 0.98 * s + 0.02 * g * g, second, slope)
        params = lib.tree.map(lambda p, m, s: p - 1e-3 * (m / (jnp.sqrt(s) + 1e-4) + 1e-2 * p),
                              params, first, second)
        return params, first, second, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def scales():
        return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}

    def draw_feed():
        return {"norm": scales(), "up": draw(width, 4 * width), "down": draw(4 * width, width)}

    def draw_layer():
        return {"feed1": draw_feed(), "feed2": draw_feed(), "norm": scales(),
                "attend": {"norm": scales(), "qkv": draw(width, 3 * width),
                           "out": draw(width, width), "places": draw(heads, 65)},
                "convolve": {"norm": scales(), "in": draw(width, 2 * width),
                             "depthwise": draw(kernel, 1, width), "out": draw(width, width),
                             "scale": np.ones(width, np.float32)}}

    channels = width // 4
    params = {"first": draw(3, 3, 1, channels), "second": draw(3, 3, channels, channels),
              "embed": draw(-(-bands // 4) * channels, width), "head": draw(width, words),
              "layers": [draw_layer() for _ in range(layers)]}
    zeros = lib.tree.map(np.zeros_like, params)
    x = rng.standard_normal((batch, frames, bands)).astype(np.float32)
    return step, (params, zeros, zeros, x,
                  rng.integers(0, words, (batch, -(-frames // 4))).astype(np.int32))
