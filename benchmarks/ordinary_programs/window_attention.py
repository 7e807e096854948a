"""Loss and gradient of attention within shifted windows of a picture (Liu et al. 2021: Swin)."""

import ml_dtypes
import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=16, patch=4, window=2, width=16, heads=2, depths=(2, 2), classes=5),
    "small": dict(images=2, side=32, patch=2, window=4, width=16, heads=2, depths=(2, 2),
                  classes=10),
    "large": dict(images=32, side=224, patch=4, window=7, width=96, heads=3, depths=(2, 2, 2),
                  classes=1000),
}
TOLERANCE = 5e-2  # of bfloat16, in both libraries


def make(lib, images, side, patch, window, width, heads, depths, classes):
    jnp, nn = lib.numpy, lib.nn
    area = window * window
    at = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij"), -1)
    apart = at.reshape(area, 1, 2) - at.reshape(1, area, 2) + window - 1
    index = (apart[..., 0] * (2 * window - 1) + apart[..., 1]).astype(np.int32)

    def norm(x, p):
        wide = x.astype(jnp.float32)
        mean, var = jnp.mean(wide, -1, keepdims=True), jnp.var(wide, -1, keepdims=True)
        return ((wide - mean) / jnp.sqrt(var + 1e-5)).astype(x.dtype) * p["scale"] + p["shift"]

    def shift_mask(size):
        """Windows at the border hold places that are not neighbours."""
        part = np.zeros((size, size), np.int32)
        cuts = (slice(0, -window), slice(-window, -(window // 2)), slice(-(window // 2), None))
        for i, rows in enumerate(cuts):
            for j, columns in enumerate(cuts):
                part[rows, columns] = 3 * i + j
        part = part.reshape(size // window, window, size // window, window)
        part = part.transpose(0, 2, 1, 3).reshape(-1, area)
        return np.where(part[:, :, None] == part[:, None, :], 0, -100).astype(np.float32)

    def attend(p, x, count, shifted):
        n, size, _, c = x.shape
        if shifted:
            x = jnp.roll(x, (-(window // 2), -(window // 2)), axis=(1, 2))
        x = x.reshape(n, size // window, window, size // window, window, c)
        x = x.transpose(0, 1, 3, 2, 4, 5).reshape(-1, area, c)
        qkv = (x @ p["qkv"] + p["qkv_bias"]).reshape(-1, area, 3, count, c // count)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = (q * (c // count) ** -0.5) @ k.swapaxes(-1, -2)
        scores = scores.astype(jnp.float32) + p["places"][index].transpose(2, 0, 1)
        if shifted:
            mask = jnp.asarray(shift_mask(size))
            scores = scores.reshape(n, -1, count, area, area) + mask[:, None]
            scores = scores.reshape(-1, count, area, area)
        y = nn.softmax(scores, axis=-1).astype(x.dtype) @ v
        y = y.transpose(0, 2, 1, 3).reshape(-1, area, c) @ p["out"]
        y = y.reshape(n, size // window, size // window, window, window, c)
        y = y.transpose(0, 1, 3, 2, 4, 5).reshape(n, size, size, c)
        return jnp.roll(y, (window // 2, window // 2), axis=(1, 2)) if shifted else y

    def merge(x, w):
        x = jnp.concatenate([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], axis=-1)
        return x @ w

    def loss(params, x, labels):
        n = side // patch
        x = x.reshape(images, n, patch, n, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        x = x.reshape(images, n, n, -1).astype(jnp.bfloat16) @ params["embed"]
        for level, stage in enumerate(params["stages"]):
            x = merge(x, stage["merge"]) if level else x
            for k, p in enumerate(stage["blocks"]):
                x = x + attend(p, norm(x, p["norm1"]), heads * 2**level, k % 2 == 1)
                x = x + nn.gelu(norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        logits = (jnp.mean(x, axis=(1, 2)) @ params["head"]).astype(jnp.float32)
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1))

    def step(params, x, labels):
        return lib.value_and_grad(loss)(params, x, labels)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(ml_dtypes.bfloat16)

    def scales(c):
        return {"scale": np.ones(c, ml_dtypes.bfloat16), "shift": np.zeros(c, ml_dtypes.bfloat16)}

    def draw_block(c, count):
        return {"qkv": draw(c, 3 * c), "qkv_bias": np.zeros(3 * c, ml_dtypes.bfloat16),
                "places": np.zeros(((2 * window - 1) ** 2, count), np.float32), "out": draw(c, c),
                "up": draw(c, 4 * c), "down": draw(4 * c, c), "norm1": scales(c),
                "norm2": scales(c)}

    stages = []
    for level, depth in enumerate(depths):
        c = width * 2**level
        stage = {"blocks": [draw_block(c, heads * 2**level) for _ in range(depth)]}
        stages.append(stage | ({"merge": draw(2 * c, c)} if level else {}))
    params = {"embed": draw(patch**2 * 3, width), "stages": stages, "head": draw(c, classes)}
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, x, rng.integers(0, classes, images).astype(np.int32))
