"""A training step of a denoising diffusion model on a U-Net with attention (Ho et al. 2020)."""

import numpy as np

FIELD = "diffusion"
SIZES = {
    "tiny": dict(images=2, side=8, width=8),
    "small": dict(images=2, side=16, width=16),
    "large": dict(images=32, side=32, width=64),
}
LAYOUT = ("NHWC", "HWIO", "NHWC")


def make(lib, images, side, width):
    jnp, lax, nn = lib.numpy, lib.lax, lib.nn

    def conv(x, p, stride=1):
        strides = (stride, stride)
        return p["bias"] + lax.conv_general_dilated(
            x, p["kernel"], strides, "SAME", dimension_numbers=LAYOUT)  # fmt: skip

    def group_norm(x, groups=4):
        grouped = x.reshape(*x.shape[:3], groups, -1)
        mean = jnp.mean(grouped, axis=(1, 2, 4), keepdims=True)
        var = jnp.var(grouped, axis=(1, 2, 4), keepdims=True)
        return ((grouped - mean) / jnp.sqrt(var + 1e-5)).reshape(x.shape)

    def block(x, time, p):
        y = conv(nn.silu(group_norm(x)), p["conv1"])
        y = y + (nn.silu(time) @ p["time"])[:, None, None, :]
        return conv(nn.silu(group_norm(y)), p["conv2"]) + conv(x, p["skip"])

    def attention(x, p):
        n, h, w, c = x.shape
        tokens = group_norm(x).reshape(n, h * w, c)
        q, k, v = jnp.split(tokens @ p["qkv"], 3, axis=-1)
        weights = nn.softmax(jnp.einsum("nqc,nkc->nqk", q, k) / np.sqrt(c).astype(np.float32))
        return x + (weights @ v @ p["out"]).reshape(x.shape)

    def unet(params, x, t):
        angles = t[:, None] * 1e4 ** (-jnp.arange(width // 2) / (width // 2))
        time = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1)
        time = nn.silu(time @ params["time1"]) @ params["time2"]
        high = block(conv(x, params["stem"]), time, params["down1"])
        low = block(conv(high, params["shrink"], stride=2), time, params["down2"])
        low = attention(low, params["attention"])
        low = block(low, time, params["middle"])
        up = lax.conv_transpose(low, params["grow"], (2, 2), "SAME", dimension_numbers=LAYOUT)
        up = block(jnp.concatenate([up, high], axis=-1), time, params["up"])
        return conv(nn.silu(group_norm(up)), params["head"])

    def loss(params, x, seed):
        k1, k2 = lib.random.split(lib.random.key(seed))
        t = lib.random.randint(k1, (images,), 0, 1000).astype(jnp.float32)
        angle = (0.5 * jnp.pi * t / 1000)[:, None, None, None]
        noise = lib.random.normal(k2, x.shape)
        noisy = jnp.cos(angle) * x + jnp.sin(angle) * noise
        return jnp.mean((unet(params, noisy, t) - noise) ** 2)

    def step(params, m, v, count, x, seed):
        value, grads = lib.value_and_grad(loss)(params, x, seed)
        m = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = lib.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = lib.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return value, params, m, v

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def kernel(size, before, after):
        return {"kernel": normal(size, size, before, after), "bias": np.zeros(after, np.float32)}

    def layers(before, after):
        return {"conv1": kernel(3, before, after), "conv2": kernel(3, after, after),
                "skip": kernel(1, before, after), "time": normal(2 * width, after)}  # fmt: skip

    wide = 2 * width
    params = {
        "time1": normal(width, wide), "time2": normal(wide, wide),
        "stem": kernel(3, 3, width), "down1": layers(width, width),
        "shrink": kernel(3, width, wide), "down2": layers(wide, wide),
        "attention": {"qkv": normal(wide, 3 * wide), "out": normal(wide, wide)},
        "middle": layers(wide, wide), "grow": normal(4, 4, wide, width),
        "up": layers(wide, width), "head": kernel(3, width, 3),
    }  # fmt: skip
    m = lib.tree.map(lambda p: (1e-2 * rng.standard_normal(p.shape)).astype(np.float32), params)
    v = lib.tree.map(lambda p: (1e-4 * rng.uniform(1, 2, p.shape)).astype(np.float32), params)
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, m, v, np.float32(100), x, np.uint32(0))
