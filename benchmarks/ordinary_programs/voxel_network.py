"""Gradient of a network of residual 3-D convolutions that labels voxels (Cicek et al. 2016)."""

import numpy as np

FIELD = "medical images"
SIZES = {
    "tiny": dict(batch=1, side=8, widths=(4, 8), classes=3),
    "small": dict(batch=1, side=16, widths=(8, 16), classes=3),
    "large": dict(batch=2, side=64, widths=(32, 64, 128), classes=4),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # instance norms


def make(lib, batch, side, widths, classes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NDHWC", "DHWIO", "NDHWC")

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride,) * 3, "SAME", dimension_numbers=names)

    def norm(x):
        mean = jnp.mean(x, axis=(1, 2, 3), keepdims=True)
        return (x - mean) * lax.rsqrt(jnp.var(x, axis=(1, 2, 3), keepdims=True) + 1e-5)

    def unit(p, x):
        h = nn.leaky_relu(norm(conv(x, p["first"])))
        return nn.leaky_relu(norm(conv(h, p["second"])) + x @ p["skip"])

    def network(params, x):
        levels = []
        for k, p in enumerate(params["down"]):
            if k:
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1),
                                      "VALID")
            x = unit(p, x)
            levels.append(x)
        for p, skip in zip(params["up"], reversed(levels[:-1])):
            for axis in (1, 2, 3):
                x = jnp.repeat(x, 2, axis=axis)
            x = unit(p, jnp.concatenate([x, skip], axis=-1))
        return x @ params["head"]

    def loss(params, x, labels):
        p = nn.softmax(network(params, x), axis=-1)
        target = nn.one_hot(labels, classes)
        both = jnp.sum(p * target, axis=(1, 2, 3))
        size = jnp.sum(p, axis=(1, 2, 3)) + jnp.sum(target, axis=(1, 2, 3))
        entropy = -jnp.mean(jnp.sum(target * jnp.log(p + 1e-6), axis=-1))
        return entropy + 1 - jnp.mean((2 * both + 1) / (size + 1))

    def step(params, x, labels):
        return lib.value_and_grad(loss)(params, x, labels)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def draw_unit(a, b):
        return {"first": draw(3, 3, 3, a, b), "second": draw(3, 3, 3, b, b), "skip": draw(a, b)}

    down = [draw_unit(a, b) for a, b in zip((1, *widths[:-1]), widths)]
    up = [draw_unit(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1])]
    params = {"down": down, "up": up, "head": draw(widths[0], classes)}
    x = rng.standard_normal((batch, side, side, side, 1)).astype(np.float32)
    return step, (params, x, rng.integers(0, classes, (batch, side, side, side)).astype(np.int32))
