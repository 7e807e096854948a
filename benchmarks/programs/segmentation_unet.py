"""An Adam step of a U-Net that segments images, with the Dice loss (Ronneberger et al. 2015)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=8, widths=(4, 8), groups=2),
    "small": dict(images=2, side=32, widths=(8, 16, 32), groups=4),
    "large": dict(images=16, side=128, widths=(32, 64, 128, 256), groups=8),
}


def make(lib, images, side, widths, groups):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    layout = ("NHWC", "HWIO", "NHWC")

    def group_norm(x, p):
        n, h, w, c = x.shape
        x = x.reshape(n, h, w, groups, c // groups)
        x = nn.standardize(x, axis=(1, 2, 4), epsilon=1e-5)
        return x.reshape(n, h, w, c) * p["scale"] + p["shift"]

    def conv(x, p):
        x = lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=layout)
        return nn.silu(group_norm(x, p))

    def down(x):
        summed = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return summed / 4.0

    def network(params, x):
        skips = []
        for index, level in enumerate(params["down"]):
            x = conv(conv(x if index == 0 else down(x), level["first"]), level["second"])
            skips.append(x)
        skips.pop()
        for level in params["up"]:
            x = lax.conv_transpose(x, level["wider"], (2, 2), "SAME", dimension_numbers=layout)
            x = jnp.concatenate([skips.pop(), x + level["bias"]], axis=-1)
            x = conv(conv(x, level["first"]), level["second"])
        return (x @ params["head"])[..., 0]

    def loss(params, x, mask):
        logits = network(params, x)
        entropy = jnp.mean(nn.softplus(logits) - mask * logits)
        p = nn.sigmoid(logits)
        overlap = 2 * jnp.sum(p * mask, axis=(1, 2)) + 1
        dice = overlap / (jnp.sum(p, axis=(1, 2)) + jnp.sum(mask, axis=(1, 2)) + 1)
        return entropy + jnp.mean(1 - dice)

    def step(params, m, v, x, mask):
        value, grads = lib.value_and_grad(loss)(params, x, mask)
        m = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = lib.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grads)
        params = lib.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return value, params, m, v

    rng = np.random.default_rng(0)

    def kernel(size, fan_in, fan_out):
        scale = np.sqrt(2 / (size * size * fan_in))
        return (scale * rng.standard_normal((size, size, fan_in, fan_out))).astype(np.float32)

    def block(fan_in, width):
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return {
            "first": {"kernel": kernel(3, fan_in, width), "scale": ones, "shift": zeros},
            "second": {"kernel": kernel(3, width, width), "scale": ones, "shift": zeros},
        }

    params = {
        "down": [block(*pair) for pair in zip((3, *widths), widths)],
        "up": [
            block(2 * b, b) | {"wider": kernel(2, a, b), "bias": np.zeros(b, np.float32)}
            for a, b in zip(widths[:0:-1], widths[-2::-1])
        ],
        "head": rng.standard_normal((widths[0], 1)).astype(np.float32) / np.float32(widths[0]),
    }
    m = lib.tree.map(np.zeros_like, params)
    v = lib.tree.map(lambda p: (1e-4 * rng.uniform(1, 2, p.shape)).astype(np.float32), params)
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    grid = np.linspace(-1, 1, side)
    centre = rng.uniform(-0.5, 0.5, (images, 2, 1, 1))
    radius = rng.uniform(0.2, 0.6, (images, 1, 1))
    distance = np.hypot(grid[:, None] - centre[:, 0], grid - centre[:, 1])
    return step, (params, m, v, x, (distance < radius).astype(np.float32))
