"""Lanes: random forests as tables of nodes, walked from root to leaf (Breiman 2001)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(rows=16, features=4, trees=3, depth=3, classes=3),
    "small": dict(rows=512, features=12, trees=8, depth=6, classes=4),
    "large": dict(rows=2**15, features=64, trees=64, depth=12, classes=8),
}


def make(lib, rows, features, trees, depth, classes):
    jnp = lib.numpy

    def walk(row, tree):
        """The leaf of a row: nodes are numbered in the order in which they were made."""
        feature, threshold, left, right = tree

        def inside(state):
            node, _ = state
            return left[node] >= 0

        def down(state):
            node, depth = state
            lower = row[feature[node]] < threshold[node]
            return jnp.where(lower, left[node], right[node]), depth + 1

        return lib.lax.while_loop(inside, down, (jnp.int32(0), jnp.int32(0)))

    def predict(x, forest, values):
        def one(row):
            leaves, depths = lib.vmap(walk, in_axes=(None, 0))(row, forest)
            votes = values[jnp.arange(trees), leaves]
            mean = jnp.mean(votes, axis=0)
            return mean, jnp.var(votes, axis=0), jnp.mean(depths.astype(jnp.float32))

        mean, variance, depths = lib.vmap(one)(x)
        entropy = -jnp.sum(mean * jnp.log(mean + 1e-9), axis=1)
        return mean, jnp.mean(variance, axis=0), depths, entropy

    rng = np.random.default_rng(0)
    size = 2 ** (depth + 1) - 1
    feature = rng.integers(0, features, (trees, size)).astype(np.int32)
    threshold = rng.normal(0, 0.7, (trees, size)).astype(np.float32)
    left = np.full((trees, size), -1, np.int32)
    right = np.full((trees, size), -1, np.int32)
    for tree in range(trees):
        made, level = 1, [0]
        for at in range(depth):
            grown = [n for n in level if at < 2 or rng.random() < 0.8]
            level = []
            for node in grown:
                left[tree, node], right[tree, node] = made, made + 1
                level += [made, made + 1]
                made += 2
    values = rng.dirichlet(np.ones(classes), (trees, size)).astype(np.float32)
    x = rng.standard_normal((rows, features)).astype(np.float32)
    return predict, (x, (feature, threshold, left, right), values)
