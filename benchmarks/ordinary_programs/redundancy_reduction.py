"""A step of features of two views whose correlations are reduced (Zbontar et al. 2021)."""

import numpy as np

FIELD = "self-supervised learning"
SIZES = {
    "tiny": dict(images=6, side=16, widths=(4, 8), features=12),
    "small": dict(images=16, side=32, widths=(8, 16), features=32),
    "large": dict(images=256, side=64, widths=(32, 64, 128), features=2048),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 1e-1}  # batch norms, differences of correlations


def make(lib, images, side, widths, features):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")

    def norm(x, axes):
        mean = jnp.mean(x, axis=axes)
        return (x - mean) * lax.rsqrt(jnp.var(x, axis=axes) + 1e-3)

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=names)

    def encode(params, x):
        for p in params["stages"]:
            x = nn.gelu(norm(conv(x, p["down"], 2), (0, 1, 2)))
            x = x + nn.gelu(norm(conv(x, p["same"]), (0, 1, 2)))
        h = jnp.mean(x, axis=(1, 2))
        h = nn.gelu(norm(h @ params["first"], 0))
        return h @ params["second"]

    def loss(params, a, b):
        z = [norm(encode(params, view), 0) for view in (a, b)]
        correlation = z[0].T @ z[1] / images
        diagonal = jnp.diagonal(correlation)
        off = jnp.sum(correlation**2) - jnp.sum(diagonal**2)
        return (jnp.sum((diagonal - 1) ** 2) + 5e-3 * off) / features

    def step(params, momentum, x, noise):
        flipped = jnp.flip(x, axis=2) * 0.9 + 0.1
        value, slope = lib.value_and_grad(loss)(params, x + 0.1 * noise, flipped)
        size = jnp.sqrt(sum(jnp.sum(g * g) for g in lib.tree.leaves(slope)))
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g / (size + 1), momentum, slope)
        return lib.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    params = {"stages": [{"down": draw(3, 3, a, b), "same": draw(3, 3, b, b)}
                         for a, b in zip((3, *widths[:-1]), widths)],
              "first": draw(widths[-1], features), "second": draw(features, features)}
    x, noise = rng.standard_normal((2, images, side, side, 3)).astype(np.float32)
    return step, (params, lib.tree.map(np.zeros_like, params), x, noise)
