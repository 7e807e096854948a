"""Gradient of residual blocks and pixel shuffles that enlarge pictures (Lim et al. 2017: EDSR)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=8, width=8, blocks=2),
    "small": dict(images=2, side=24, width=16, blocks=3),
    "large": dict(images=16, side=96, width=64, blocks=8),
}
TOLERANCE = 5e-2  # of bfloat16, in both libraries


def make(lib, images, side, width, blocks):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, p):
        y = lax.conv_general_dilated(x, p["w"].astype(jnp.bfloat16), (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + p["b"].astype(jnp.bfloat16) if "b" in p else y

    def shuffle(x):
        n, h, w, c = x.shape
        x = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
        return x.reshape(n, 2 * h, 2 * w, c // 4)

    def network(params, x):
        first = conv(x.astype(jnp.bfloat16), params["head"])
        y = first
        for p in params["blocks"]:
            y = y + 0.3 * conv(nn.silu(conv(y, p["first"])), p["second"])
        y = conv(y, params["tail"]) + first
        for p in params["up"]:
            y = shuffle(conv(y, p))
        return conv(y, params["out"]).astype(jnp.float32) + params["colour"]

    def loss(params, low, high):
        difference = network(params, low) - high
        return jnp.mean(jnp.sqrt(difference**2 + 1e-2))

    def step(params, low, high):
        return lib.value_and_grad(loss)(params, low, high)

    rng = np.random.default_rng(0)

    def draw(a, b):
        w = rng.standard_normal((3, 3, a, b)) / np.sqrt(9 * a)
        return {"w": w.astype(np.float32), "b": np.zeros(b, np.float32)}

    params = {"head": draw(3, width), "tail": draw(width, width), "out": {"w": draw(width, 3)["w"]},
              "colour": np.full(3, 0.5, np.float32),
              "blocks": [{"first": draw(width, width), "second": draw(width, width)}
                         for _ in range(blocks)],
              "up": [draw(width, 4 * width) for _ in range(2)]}
    low = rng.random((images, side, side, 3)).astype(np.float32)
    high = rng.random((images, 4 * side, 4 * side, 3)).astype(np.float32)
    return step, (params, low, high)
