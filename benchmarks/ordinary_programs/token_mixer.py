"""An SGD step of networks that mix tokens, then channels (Tolstikhin et al. 2021: MLP-Mixer)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, side=16, patch=4, width=16, tokens=8, channels=32, layers=1, classes=5),
    "small": dict(images=4, side=32, patch=4, width=48, tokens=32, channels=96, layers=2,
                  classes=10),
    "large": dict(images=64, side=224, patch=16, width=512, tokens=256, channels=2048, layers=4,
                  classes=1000),
}


def make(lib, images, side, patch, width, tokens, channels, layers, classes):
    jnp, nn = lib.numpy, lib.nn
    count = (side // patch) ** 2

    def norm(x, p):
        mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) / jnp.sqrt(var + 1e-6) * p["scale"] + p["shift"]

    def mlp(p, x):
        return nn.gelu(x @ p["up"] + p["up_bias"]) @ p["down"]

    def loss(params, x, labels):
        n = side // patch
        x = x.reshape(images, n, patch, n, patch, 3).transpose(0, 1, 3, 2, 4, 5)
        x = x.reshape(images, count, -1) @ params["embed"]
        for p in params["layers"]:
            y = norm(x, p["norm1"]).swapaxes(1, 2)
            x = x + mlp(p["tokens"], y).swapaxes(1, 2)
            x = x + mlp(p["channels"], norm(x, p["norm2"]))
        logits = jnp.mean(norm(x, params["norm"]), axis=1) @ params["head"]
        return jnp.mean(nn.logsumexp(logits, axis=1)
                        - jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0])

    def step(params, x, labels):
        value, slope = lib.value_and_grad(loss)(params, x, labels)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, slope), slope, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def scales():
        return {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}

    def draw_mlp(a, b):
        return {"up": draw(a, b), "up_bias": np.zeros(b, np.float32), "down": draw(b, a)}

    params = {"embed": draw(3 * patch**2, width), "norm": scales(), "head": draw(width, classes),
              "layers": [{"tokens": draw_mlp(count, tokens), "channels": draw_mlp(width, channels),
                          "norm1": scales(), "norm2": scales()} for _ in range(layers)]}
    x = rng.standard_normal((images, side, side, 3)).astype(np.float32)
    return step, (params, x, rng.integers(0, classes, images).astype(np.int32))
