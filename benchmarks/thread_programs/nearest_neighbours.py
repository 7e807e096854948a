"""Labels by the nearest of many examples, with weights by distance (Cover and Hart 1967)."""

import numpy as np

FIELD = "classification"
SIZES = {
    "tiny": dict(queries=5, examples=50, width=8, nearest=3),
    "small": dict(queries=256, examples=4_000, width=32, nearest=8),
    "server": dict(queries=512, examples=20_000, width=64, nearest=16),
    "large": dict(queries=4096, examples=100_000, width=128, nearest=32),
}


def make(lib, queries, examples, width, nearest):
    jnp = lib.numpy

    def labelled(query, example, label):
        inner = query @ example.T
        distance = jnp.sum(query**2, axis=1)[:, None] - 2 * inner + jnp.sum(example**2, axis=1)
        closest, index = lib.lax.top_k(-distance, nearest)
        weight = lib.nn.softmax(closest / width, axis=1)
        votes = jnp.sum(weight[..., None] * (label[index][..., None] == jnp.arange(10)), axis=1)
        centre = jnp.sum(weight[..., None] * example[index], axis=1)
        return jnp.argmax(votes, axis=1), votes, centre

    rng = np.random.default_rng(0)
    label = rng.integers(0, 10, examples).astype(np.int32)
    centres = 2 * rng.standard_normal((10, width))
    example = (centres[label] + rng.standard_normal((examples, width))).astype(np.float32)
    query = centres[rng.integers(0, 10, queries)] + rng.standard_normal((queries, width))
    return labelled, (query.astype(np.float32), example, label)
