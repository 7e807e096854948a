"""A dynamic graph network on point clouds, with nearest neighbours (Wang et al. 2019)."""

import itertools

import numpy as np

FIELD = "computer vision"
SIZES = {
    "tiny": dict(batch=2, points=12, neighbours=3, widths=(4, 6), classes=3),
    "small": dict(batch=2, points=64, neighbours=6, widths=(16, 16), classes=10),
    "large": dict(batch=8, points=1024, neighbours=20, widths=(64, 64, 128), classes=40),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 1.5e-1}  # at "highest" both agree, 1e-6


def make(lib, batch, points, neighbours, widths, classes):
    jnp = lib.numpy

    def nearest(x):
        square = jnp.sum(x**2, axis=-1)
        with lib.default_matmul_precision("highest"):
            distance = square[:, None] + square[None] - 2 * x @ x.T
        _, index = lib.lax.top_k(-distance, neighbours)
        return index

    def edge_convolution(layer, x):
        near = x[nearest(lib.lax.stop_gradient(x))]
        centre = jnp.broadcast_to(x[:, None], near.shape)
        edges = jnp.concatenate([centre, near - centre], axis=-1) @ layer["w"] + layer["b"]
        return jnp.max(lib.nn.leaky_relu(edges, 0.2), axis=1)

    def network(params, x):
        features = []
        for layer in params["edges"]:
            x = edge_convolution(layer, x)
            features.append(x)
        h = jnp.concatenate(features, axis=-1) @ params["mix"]
        pooled = jnp.concatenate([jnp.max(h, axis=0), jnp.mean(h, axis=0)])
        return jnp.tanh(pooled @ params["hidden"]) @ params["out"]

    def loss(params, clouds, labels):
        logits = lib.vmap(network, in_axes=(None, 0))(params, clouds)
        smooth = 0.8 * lib.nn.one_hot(labels, classes) + 0.2 / classes
        return -jnp.mean(jnp.sum(smooth * lib.nn.log_softmax(logits), axis=-1)), logits

    rng = np.random.default_rng(0)

    def draw(rows, columns):
        return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    sizes = (3, *widths)
    params = {
        "edges": [{"w": draw(2 * m, n), "b": np.zeros(n, np.float32)}
                  for m, n in itertools.pairwise(sizes)],
        "mix": draw(sum(widths), 8 * widths[0]),
        "hidden": draw(16 * widths[0], 4 * widths[0]),
        "out": draw(4 * widths[0], classes),
    }
    clouds = rng.standard_normal((batch, points, 3)).astype(np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)
    return lib.value_and_grad(loss, has_aux=True), (params, clouds, labels)
