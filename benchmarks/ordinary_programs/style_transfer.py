"""Adam steps on a picture towards the Gram matrices of another (Gatys et al. 2016)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=1, side=16, widths=(4, 8), depth=1, steps=2),
    "small": dict(images=1, side=32, widths=(8, 16), depth=2, steps=2),
    "large": dict(images=2, side=256, widths=(64, 128, 256), depth=2, steps=2),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}


def make(lib, images, side, widths, depth, steps):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, p):
        y = lax.conv_general_dilated(x, p["w"], (1, 1), ((1, 1), (1, 1)),
                                     dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return nn.softplus(4 * (y + p["b"][:, None, None])) / 4

    def features(params, x):
        found = []
        for k, stage in enumerate(params):
            if k:
                x = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
            for p in stage:
                x = conv(x, p)
                found.append(x)
        return found

    def gram(x):
        n, c, h, w = x.shape
        x = x.reshape(n, c, h * w)
        return jnp.einsum("nip,njp->nij", x, x) / (h * w)

    def loss(x, params, content, grams):
        found = features(params, x)
        likeness = jnp.mean((found[-1] - content) ** 2)
        style = sum(jnp.mean((gram(y) - g) ** 2) for y, g in zip(found, grams))
        rough = (jnp.mean((x[..., 1:] - x[..., :-1]) ** 2)
                 + jnp.mean((x[..., 1:, :] - x[..., :-1, :]) ** 2))
        return likeness + 10 * style + 0.1 * rough

    def step(params, picture, style):
        content = features(params, picture)[-1]
        grams = [gram(y) for y in features(params, style)]
        x, first, second = picture, jnp.zeros_like(picture), jnp.zeros_like(picture)
        values = []
        for k in range(steps):
            value, slope = lib.value_and_grad(loss)(x, params, content, grams)
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            x = x - 0.02 * first / (1 - 0.9 ** (k + 1)) / (
                jnp.sqrt(second / (1 - 0.99 ** (k + 1))) + 1e-4)
            values.append(value)
        return x, first, jnp.stack(values)

    rng = np.random.default_rng(0)

    def draw(a, b):
        return {"w": (rng.standard_normal((b, a, 3, 3)) / np.sqrt(9 * a)).astype(np.float32),
                "b": (0.1 * rng.standard_normal(b)).astype(np.float32)}

    params, before = [], 3
    for width in widths:
        params.append([draw(before if k == 0 else width, width) for k in range(depth)])
        before = width
    picture, style = rng.random((2, images, 3, side, side)).astype(np.float32)
    return step, (params, picture, style)
