"""Loss and gradient of a detector with a pyramid of features and focal losses (Lin et al. 2017)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=32, widths=(4, 8, 8), pyramid=8, classes=3),
    "small": dict(images=2, side=64, widths=(8, 16, 16), pyramid=16, classes=5),
    "large": dict(images=16, side=256, widths=(64, 128, 256), pyramid=128, classes=80),
}
TOLERANCE = {"cpu": 2e-3, "gpu": 3e-2}  # group norms of TF32


def make(lib, images, side, widths, pyramid, classes):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def conv(x, p, stride=1):
        return lax.conv_general_dilated(x, p["w"], (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]

    def norm(x, groups=2):
        n, h, w, c = x.shape
        x = x.reshape(n, h, w, groups, c // groups)
        mean = jnp.mean(x, axis=(1, 2, 4), keepdims=True)
        var = jnp.var(x, axis=(1, 2, 4), keepdims=True)
        return ((x - mean) * lax.rsqrt(var + 1e-5)).reshape(n, h, w, c)

    def network(params, x):
        x = nn.silu(norm(conv(x, params["stem"], 4)))
        levels = []
        for k, p in enumerate(params["stages"]):
            y = nn.silu(norm(conv(x, p["first"], 1 + (k > 0))))
            x = nn.silu(y + norm(conv(y, p["second"])))
            levels.append(x)
        merged, tops = None, []
        for x, p in zip(reversed(levels), params["lateral"]):
            x = conv(x, p)
            if merged is not None:
                n, h, w, c = merged.shape
                x = x + lib.image.resize(merged, (n, 2 * h, 2 * w, c), "nearest")
            merged = x
            tops.append(merged)
        outs = []
        for x in tops:
            for p in params["tower"]:
                x = nn.silu(conv(x, p))
            outs.append(conv(x, params["head"]).reshape(images, -1, classes + 4))
        return jnp.concatenate(outs, axis=1)

    def loss(params, x, labels, boxes):
        out = network(params, x)
        logits, offsets = out[..., :classes], out[..., classes:]
        target = nn.one_hot(labels, classes)  # -1 is the background
        p = nn.sigmoid(logits)
        entropy = -(target * nn.log_sigmoid(logits) + (1 - target) * nn.log_sigmoid(-logits))
        focal = jnp.where(target > 0, 0.25 * (1 - p) ** 2, 0.75 * p**2) * entropy
        found = (labels >= 0).astype(jnp.float32)
        far = jnp.abs(offsets - boxes)
        smooth = jnp.where(far < 0.1, 5 * far**2, far - 0.05)
        count = jnp.maximum(jnp.sum(found), 1.0)
        return jnp.sum(focal) / count + jnp.sum(found[..., None] * smooth) / count

    def step(params, x, labels, boxes):
        return lib.value_and_grad(loss)(params, x, labels, boxes)

    rng = np.random.default_rng(0)

    def draw(k, a, b, bias=0.0):
        w = rng.standard_normal((k, k, a, b)) / np.sqrt(k * k * a)
        return {"w": w.astype(np.float32), "b": np.full(b, bias, np.float32)}

    params = {"stem": draw(7, 3, widths[0]), "head": draw(3, pyramid, classes + 4, -2.0),
              "stages": [{"first": draw(3, a, b), "second": draw(3, b, b)}
                         for a, b in zip((widths[0], *widths), widths)],
              "lateral": [draw(1, a, pyramid) for a in reversed(widths)],
              "tower": [draw(3, pyramid, pyramid) for _ in range(2)]}
    places = sum((side // 4 // 2**k) ** 2 for k in range(len(widths)))
    labels = np.where(rng.random((images, places)) < 0.05,
                      rng.integers(0, classes, (images, places)), -1).astype(np.int32)
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, x, labels, rng.standard_normal((images, places, 4)).astype(np.float32))
