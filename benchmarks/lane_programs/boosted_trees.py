"""Scores of boosted trees, and what each feature adds, by leaving it out (Friedman 2001)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(rows=32, features=4, trees=3, depth=3),
    "small": dict(rows=2**11, features=8, trees=12, depth=5),
    "large": dict(rows=2**16, features=32, trees=64, depth=8),
}


def make(lib, rows, features, trees, depth):
    jnp = lib.numpy

    def leaf(row, tree):
        """Each node asks one feature; a missing one goes both ways with the share of its branch."""
        feature, threshold, share, values = tree

        def level(k, state):
            node, weight = state
            x = row[feature[node]]
            missing, larger = jnp.isnan(x), jnp.maximum(share[node], 1 - share[node])
            right = jnp.where(missing, share[node] > 0.5, x > threshold[node])
            weight = weight * jnp.where(missing, larger, 1.0)
            return 2 * node + 1 + right.astype(jnp.int32), weight

        node, weight = lib.lax.fori_loop(0, depth, level, (jnp.int32(0), jnp.float32(1)))
        return weight * values[node - (2**depth - 1)]

    def score(row, forest):
        def add(total, tree):
            margin = leaf(row, tree)
            return total + 0.1 * margin, margin

        total, margins = lib.lax.scan(add, jnp.float32(0), forest)
        return total, jnp.max(jnp.abs(margins))

    def explain(x, forest):
        total, most = lib.vmap(score, in_axes=(0, None))(x, forest)

        def without(k):
            left = x.at[:, k].set(jnp.nan)
            other, _ = lib.vmap(score, in_axes=(0, None))(left, forest)
            return jnp.mean(jnp.abs(lib.nn.sigmoid(total) - lib.nn.sigmoid(other)))

        return lib.nn.sigmoid(total), most, jnp.stack([without(k) for k in range(features)])

    rng = np.random.default_rng(0)
    nodes = 2**depth - 1
    feature = rng.integers(0, features, (trees, nodes)).astype(np.int32)
    threshold = rng.normal(0, 0.7, (trees, nodes)).astype(np.float32)
    share = rng.uniform(0, 1, (trees, nodes)).astype(np.float32)
    values = rng.standard_normal((trees, nodes + 1)).astype(np.float32)
    x = rng.standard_normal((rows, features)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return explain, (x, (feature, threshold, share, values))
