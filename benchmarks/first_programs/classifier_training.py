"""A step of AdamW on a multilayer perceptron with dropout (Srivastava 2014, Loshchilov 2019)."""

from itertools import pairwise

import numpy as np

FIELD = "deep learning"
SIZES = {
    "tiny": dict(batch=16, features=8, width=16, layers=2, classes=3),
    "small": dict(batch=256, features=64, width=128, layers=4, classes=10),
    "large": dict(batch=4096, features=512, width=2048, layers=6, classes=100),
}


def make(lib, batch, features, width, layers, classes):
    jnp = lib.numpy

    def forward(params, x, key):
        for k, layer in enumerate(params[:-1]):
            x = lib.nn.gelu(x @ layer["w"] + layer["b"])
            keep = lib.random.bernoulli(lib.random.fold_in(key, k), 0.9, x.shape)
            x = jnp.where(keep, x / 0.9, 0.0)
        return x @ params[-1]["w"] + params[-1]["b"]

    def loss(params, x, labels, key):
        logits = forward(params, x, key)
        picked = jnp.take_along_axis(lib.nn.log_softmax(logits), labels[:, None], axis=1)
        smooth = -jnp.mean(lib.nn.log_softmax(logits))
        return -0.9 * jnp.mean(picked) + 0.1 * smooth

    def update(state, x, labels, seed):
        params, m, v, count = state
        key = lib.random.fold_in(lib.random.key(seed), count)
        value, grads = lib.value_and_grad(loss)(params, x, labels, key)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(grads)))
        grads = lib.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        count = count + 1
        m = lib.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = lib.tree.map(lambda a, g: 0.999 * a + 0.001 * g**2, v, grads)
        rate = 1e-3 * jnp.minimum(1.0, count / 100)

        def moved(p, a, b):
            a, b = a / (1 - 0.9**count), b / (1 - 0.999**count)
            return p - rate * (a / (jnp.sqrt(b) + 1e-6) + 0.01 * p)

        return (lib.tree.map(moved, params, m, v), m, v, count), value

    rng = np.random.default_rng(0)
    sizes = [features, *[width] * layers, classes]
    params = [{"w": (rng.standard_normal((a, b)) / a**0.5).astype(np.float32),
               "b": np.zeros(b, np.float32)} for a, b in pairwise(sizes)]  # fmt: skip
    m = [{k: np.zeros_like(p) for k, p in layer.items()} for layer in params]
    v = [{k: np.full_like(p, 1e-4) for k, p in layer.items()} for layer in params]
    x = rng.standard_normal((batch, features)).astype(np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)
    return update, ((params, m, v, np.float32(10)), x, labels, np.uint32(0))
