"""An SGD step of an autoencoder with a book of codes, straight through (Oord et al. 2017)."""

import numpy as np

FIELD = "generative models"
SIZES = {
    "tiny": dict(images=2, side=16, width=8, code=4, codes=16),
    "small": dict(images=4, side=32, width=16, code=8, codes=64),
    "large": dict(images=64, side=128, width=128, code=64, codes=512),
}
TOLERANCE = {"cpu": 2e-2, "gpu": 1e-1}  # codes that are as near are another choice


def make(lib, images, side, width, code, codes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=names)

    def residual(p, x):
        return x + conv(nn.silu(conv(nn.silu(x), p["first"])), p["second"])

    def encode(p, x):
        x = nn.silu(conv(x, p["in"], 2))
        x = conv(x, p["down"], 2)
        return residual(p["block"], x) @ p["out"]

    def decode(p, z):
        x = residual(p["block"], z @ p["in"])
        x = nn.silu(lax.conv_transpose(x, p["up"], (2, 2), "SAME", dimension_numbers=names))
        return lax.conv_transpose(x, p["out"], (2, 2), "SAME", dimension_numbers=names)

    def loss(params, x):
        z = encode(params["encoder"], x)
        flat, book = z.reshape(-1, code), params["book"]
        far = jnp.sum(flat**2, 1)[:, None] - 2 * flat @ book.T + jnp.sum(book**2, 1)
        nearest = book[jnp.argmin(far, axis=1)].reshape(z.shape)
        straight = z + lax.stop_gradient(nearest - z)
        y = decode(params["decoder"], straight)
        codebook = jnp.mean((nearest - lax.stop_gradient(z)) ** 2)
        commitment = jnp.mean((z - lax.stop_gradient(nearest)) ** 2)
        return jnp.mean((y - x) ** 2) + codebook + 0.25 * commitment

    def step(params, x):
        value, slope = lib.value_and_grad(loss)(params, x)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, slope), value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def block():
        return {"first": draw(3, 3, width, width), "second": draw(1, 1, width, width)}

    params = {
        "encoder": {"in": draw(4, 4, 3, width), "down": draw(4, 4, width, width),
                    "block": block(), "out": draw(width, code)},
        "decoder": {"in": draw(code, width), "block": block(),
                    "up": draw(4, 4, width, width), "out": draw(4, 4, width, 3)},
        "book": 4 * draw(1, codes, code)[0],
    }
    return step, (params, rng.standard_normal((images, side, side, 3)).astype(np.float32))
