"""A momentum step of layers that read all layers before them (Huang et al. 2017: DenseNet)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=3, side=16, growth=4, blocks=(2, 2), classes=5),
    "small": dict(images=8, side=32, growth=8, blocks=(3, 3), classes=10),
    "large": dict(images=64, side=64, growth=32, blocks=(6, 8, 6), classes=200),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # batch norms of TF32


def make(lib, images, side, growth, blocks, classes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x, p):
        mean, var = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
        return nn.silu((x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"])

    def loss(params, x, labels):
        x = conv(x, params["stem"], 2)
        for k, block in enumerate(params["blocks"]):
            if k:
                x = conv(norm(x, block["norm"]), block["narrow"])
                x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
            for p in block["layers"]:
                y = conv(norm(x, p["norm1"]), p["point"])
                y = conv(norm(y, p["norm2"]), p["wide"])
                x = jnp.concatenate([x, y], axis=-1)
        x = jnp.mean(norm(x, params["norm"]), axis=(1, 2))
        logits = x @ params["head"]
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1))

    def step(params, momentum, x, labels):
        value, slope = lib.value_and_grad(loss)(params, x, labels)
        momentum = lib.tree.map(lambda m, p, g: 0.9 * m + g + 1e-4 * p, momentum, params, slope)
        params = lib.tree.map(lambda p, m: p - 0.1 * m, params, momentum)
        return params, momentum, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def scales(n):
        return {"scale": np.ones(n, np.float32), "shift": np.zeros(n, np.float32)}

    width, found = 2 * growth, []
    params = {"stem": draw(5, 5, 3, width), "blocks": found}
    for k, count in enumerate(blocks):
        block = {"layers": []}
        if k:
            block |= {"norm": scales(width), "narrow": draw(1, 1, width, width // 2)}
            width //= 2
        for _ in range(count):
            block["layers"].append({
                "norm1": scales(width), "point": draw(1, 1, width, 4 * growth),
                "norm2": scales(4 * growth), "wide": draw(3, 3, 4 * growth, growth)})
            width += growth
        found.append(block)
    params |= {"norm": scales(width), "head": draw(width, classes)}
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, lib.tree.map(np.zeros_like, params), x,
                  rng.integers(0, classes, images).astype(np.int32))
