"""Gradient of flow between pictures, by correlations of near places (Sun et al. 2018: PWC-Net)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(pairs=2, side=16, widths=(4, 8), reach=1),
    "small": dict(pairs=2, side=32, widths=(8, 16), reach=2),
    "large": dict(pairs=8, side=256, widths=(32, 64, 96), reach=4),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}  # a place is rounded to its neighbours


def make(lib, pairs, side, widths, reach):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def pyramid(params, x):
        levels = []
        for p in params:
            x = nn.silu(conv(nn.silu(conv(x, p["narrow"], 2)), p["same"]))
            levels.append(x)
        return levels

    def warp(image, flow):
        """Values of one image at places that a flow moved, between four neighbours."""
        h, w, _ = image.shape
        y, x = jnp.meshgrid(jnp.arange(h), jnp.arange(w), indexing="ij")
        u = jnp.clip(x + flow[..., 0], 0, w - 1.001)
        v = jnp.clip(y + flow[..., 1], 0, h - 1.001)
        left, top = jnp.floor(u).astype(jnp.int32), jnp.floor(v).astype(jnp.int32)
        a, b = (u - left)[..., None], (v - top)[..., None]
        above = (1 - a) * image[top, left] + a * image[top, left + 1]
        below = (1 - a) * image[top + 1, left] + a * image[top + 1, left + 1]
        return (1 - b) * above + b * below

    def correlations(x, y):
        _, h, w, _ = x.shape
        padded = jnp.pad(y, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
        moved = [padded[:, i:i + h, j:j + w]
                 for i in range(2 * reach + 1) for j in range(2 * reach + 1)]
        return jnp.stack([jnp.mean(x * z, axis=-1) for z in moved], axis=-1)

    def loss(params, first, second, truth):
        flow, total = None, 0.0
        for p, x, y in zip(params["decoders"], reversed(pyramid(params["encoder"], first)),
                           reversed(pyramid(params["encoder"], second))):
            n, h, w, _ = x.shape
            if flow is None:
                flow = jnp.zeros((n, h, w, 2))
            else:
                flow = 2 * jnp.repeat(jnp.repeat(flow, 2, axis=1), 2, axis=2)
            cost = nn.silu(correlations(x, lib.vmap(warp)(y, flow)))
            z = jnp.concatenate([cost, x, flow], axis=-1)
            for q in p["layers"]:
                z = nn.silu(conv(z, q))
            flow = flow + conv(z, p["flow"])
            k = side // h
            small = truth.reshape(n, h, k, w, k, 2).mean(axis=(2, 4)) / k
            total = total + jnp.mean(jnp.sqrt(jnp.sum((flow - small) ** 2, axis=-1) + 1e-2))
        return total

    def step(params, first, second, truth):
        return lib.value_and_grad(loss)(params, first, second, truth)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    params = {"encoder": [{"narrow": draw(3, 3, a, b), "same": draw(3, 3, b, b)}
                          for a, b in zip((3, *widths), widths)], "decoders": []}
    for width in reversed(widths):
        near = (2 * reach + 1) ** 2
        params["decoders"].append({
            "layers": [draw(3, 3, near + width + 2, 2 * width), draw(3, 3, 2 * width, width)],
            "flow": draw(3, 3, width, 2)})
    first, second = rng.random((2, pairs, side, side, 3)).astype(np.float32)
    return step, (params, first, second,
                  (4 * rng.standard_normal((pairs, side, side, 2))).astype(np.float32))
