"""Gradient of pictures that a network warps before it reads them (Jaderberg et al. 2015)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=3, side=12, width=4, classes=5),
    "small": dict(images=8, side=28, width=8, classes=10),
    "large": dict(images=256, side=64, width=64, classes=100),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # a place is rounded to its neighbours


def make(lib, images, side, width, classes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names)

    def pool(x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4

    def features(p, x):
        x = pool(nn.silu(conv(x, p["first"])))
        x = pool(nn.silu(conv(x, p["second"])))
        return jnp.mean(x, axis=(1, 2))

    def sample(image, theta):
        """Bilinear interpolation at places that an affine map gives."""
        line = jnp.linspace(-1, 1, side)
        y, x = jnp.meshgrid(line, line, indexing="ij")
        u = (theta[0] * x + theta[1] * y + theta[2] + 1) * (side - 1) / 2
        v = (theta[3] * x + theta[4] * y + theta[5] + 1) * (side - 1) / 2
        left, top = jnp.floor(u), jnp.floor(v)
        out = 0.0
        for i in (0, 1):
            for j in (0, 1):
                weight = (1 - jnp.abs(u - left - j)) * (1 - jnp.abs(v - top - i))
                a = jnp.clip(left + j, 0, side - 1).astype(jnp.int32)
                b = jnp.clip(top + i, 0, side - 1).astype(jnp.int32)
                out = out + weight[..., None] * image[b, a]
        return out

    def loss(params, x, labels):
        theta = features(params["locate"], x) @ params["affine"]
        theta = theta + jnp.array([0.9, 0.05, 0.01, -0.05, 0.9, 0.02])
        warped = lib.vmap(sample)(x, theta)
        logits = features(params["read"], warped) @ params["head"]
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1))

    def step(params, x, labels):
        return lib.value_and_grad(loss)(params, x, labels)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def draw_features():
        return {"first": draw(5, 5, 3, width), "second": draw(3, 3, width, 2 * width)}

    params = {"locate": draw_features(), "affine": 0.01 * draw(2 * width, 6),
              "read": draw_features(), "head": draw(2 * width, classes)}
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, x, rng.integers(0, classes, images).astype(np.int32))
