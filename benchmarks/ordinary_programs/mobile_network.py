"""A momentum step of inverted residuals with depthwise convolutions (Sandler et al. 2018)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=4, side=16, widths=(8, 8), repeats=1, expand=2, classes=5),
    "small": dict(images=8, side=32, widths=(16, 24), repeats=2, expand=4, classes=10),
    "large": dict(images=64, side=128, widths=(24, 32, 64, 96), repeats=2, expand=6, classes=1000),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # 28 batch norms


def make(lib, images, side, widths, repeats, expand, classes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")

    def norm(x, p):
        mean, var = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
        return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p.get("shift", 0.0)

    def conv(x, w, stride=1, groups=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=names,
                                        feature_group_count=groups)

    def block(p, x, stride):
        h = nn.silu(norm(conv(x, p["widen"]), p["norm1"]))
        h = nn.silu(norm(conv(h, p["depthwise"], stride, h.shape[-1]), p["norm2"]))
        h = norm(conv(h, p["narrow"]), p["norm3"])
        return x + h if h.shape == x.shape else h

    def loss(params, x, labels):
        x = nn.silu(conv(x, params["stem"], 2))
        for k, stage in enumerate(params["stages"]):
            for j, p in enumerate(stage):
                x = block(p, x, 2 if j == 0 and k > 0 else 1)
        logits = jnp.mean(x, axis=(1, 2)) @ params["head"]
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1))

    def step(params, momentum, x, labels):
        value, slope = lib.value_and_grad(loss)(params, x, labels)
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g, momentum, slope)
        return lib.tree.map(lambda p, m: p - 0.05 * m, params, momentum), momentum, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def scales(n):
        return {"scale": np.ones(n, np.float32), "shift": np.zeros(n, np.float32)}

    def draw_block(before, after):
        wide = before * expand
        return {"widen": draw(1, 1, before, wide), "depthwise": draw(3, 3, 1, wide),
                "narrow": draw(1, 1, wide, after), "norm1": scales(wide), "norm2": scales(wide),
                "norm3": {"scale": np.ones(after, np.float32)}}

    stages, before = [], widths[0]
    for width in widths:
        stages.append([draw_block(before if j == 0 else width, width) for j in range(repeats)])
        before = width
    params = {"stem": draw(3, 3, 3, widths[0]), "stages": stages, "head": draw(before, classes)}
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    labels = rng.integers(0, classes, images).astype(np.int32)
    return step, (params, lib.tree.map(np.zeros_like, params), x, labels)
