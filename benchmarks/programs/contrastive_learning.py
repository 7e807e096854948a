"""An Adam step of SimCLR (Chen et al. 2020) for a ConvNeXt in bfloat16 (Liu et al. 2022)."""

import numpy as np

FIELD = "self-supervised learning"
SIZES = {
    "tiny": dict(images=4, side=8, patch=2, widths=(8, 16), blocks=1),
    "small": dict(images=8, side=16, patch=2, widths=(16, 32), blocks=1),
    "large": dict(images=256, side=64, patch=4, widths=(64, 128, 256), blocks=2),
}
TOLERANCE = 6e-2  # of bfloat16, in both libraries


def make(lib, images, side, patch, widths, blocks):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    half = jnp.bfloat16
    layout = ("NHWC", "HWIO", "NHWC")

    def layer_norm(x, scale):
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        var = wide.var(-1, keepdims=True)
        return ((wide - mean) * lax.rsqrt(var + 1e-6)).astype(x.dtype) * scale

    def reduce(x, kernel, stride):
        return lax.conv_general_dilated(x, kernel, (stride,) * 2, "VALID", dimension_numbers=layout)

    def block(x, p):
        y = lax.conv_general_dilated(
            x, p["depthwise"], (1, 1), "SAME", dimension_numbers=layout,
            feature_group_count=x.shape[-1],
        )  # fmt: skip
        y = layer_norm(y, p["norm"])
        return x + p["scale"] * (nn.gelu(y @ p["up"]) @ p["down"])

    def encode(params, x):
        params = lib.tree.map(lambda p: p.astype(half), params)
        x = x.astype(half)
        for index, stage in enumerate(params["stages"]):
            x = reduce(x, stage["reduce"], patch if index == 0 else 2)
            for p in stage["blocks"]:
                x = block(x, p)
        x = layer_norm(x.mean(axis=(1, 2)), params["norm"])
        z = (nn.silu(x @ params["head1"]) @ params["head2"]).astype(jnp.float32)
        return z / jnp.linalg.norm(z, axis=-1, keepdims=True)

    def loss(params, views):
        z = encode(params, views.reshape(2 * images, side, side, 3))
        similar = z @ z.T / 0.2
        similar = jnp.where(jnp.eye(2 * images, dtype=bool), -jnp.inf, similar)
        positive = jnp.roll(jnp.arange(2 * images), images)
        log_probs = nn.log_softmax(similar, axis=-1)
        return -jnp.mean(log_probs[jnp.arange(2 * images), positive])

    def step(seed, params, m, v, x):
        key_noise, key_flip, key_gain = lib.random.split(lib.random.key(seed), 3)
        flip = lib.random.bernoulli(key_flip, 0.5, (2, images, 1, 1, 1))
        gain = lib.random.uniform(key_gain, (2, images, 1, 1, 3), minval=0.6, maxval=1.4)
        views = gain * jnp.where(flip, x[:, :, ::-1], x)
        views = views + 0.1 * lib.random.normal(key_noise, views.shape)
        value, grads = lib.value_and_grad(loss)(params, views)
        m = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = lib.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, grads)
        params = lib.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-6), params, m, v)
        return value, params, m, v

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def layer(width):
        return {
            "depthwise": normal(7, 7, 1, width), "norm": np.ones(width, np.float32),
            "up": normal(width, 4 * width), "down": normal(4 * width, width),
            "scale": np.full(width, 0.3, np.float32),
        }  # fmt: skip

    sizes = (patch,) + (2,) * (len(widths) - 1)
    stages = [{"reduce": normal(size, size, before, width), "blocks": [layer(width)] * blocks}
              for size, before, width in zip(sizes, (3, *widths), widths)]  # fmt: skip
    last = widths[-1]
    params = {"stages": stages, "norm": np.ones(last, np.float32)}
    params |= {"head1": normal(last, last), "head2": normal(last, 64)}
    m = lib.tree.map(np.zeros_like, params)
    v = lib.tree.map(lambda p: (1e-4 * rng.uniform(1, 2, p.shape)).astype(np.float32), params)
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (np.uint32(0), params, m, v, x)
