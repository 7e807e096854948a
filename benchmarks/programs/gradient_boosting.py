"""Boosted trees for classification, grown by histograms of gradients (Chen and Guestrin 2016)."""

import numpy as np

FIELD = "trees"
SIZES = {
    "tiny": dict(points=80, features=3, bins=8, depth=2, rounds=2),
    "small": dict(points=2000, features=8, bins=32, depth=3, rounds=3),
    "large": dict(points=200_000, features=28, bins=256, depth=6, rounds=4),
}
TOLERANCE = 1e-2  # where two splits gain the same, rounding chooses


def make(lib, points, features, bins, depth, rounds):
    jnp = lib.numpy
    rate, ridge, least = 0.3, 1.0, 1.0

    def histograms(binned, node, nodes, values):
        place = (node[:, None] * features + jnp.arange(features)) * bins + binned
        values = jnp.broadcast_to(values[:, None], binned.shape)
        flat = lib.ops.segment_sum(values.ravel(), place.ravel(), nodes * features * bins)
        return flat.reshape(nodes, features, bins)

    def grow(binned, g, h):
        node = jnp.zeros(points, jnp.int32)
        splits = []
        for level in range(depth):
            nodes = 2**level
            left_g = jnp.cumsum(histograms(binned, node, nodes, g), axis=-1)
            left_h = jnp.cumsum(histograms(binned, node, nodes, h), axis=-1)
            all_g, all_h = left_g[:, :, -1:], left_h[:, :, -1:]
            right_g, right_h = all_g - left_g, all_h - left_h
            gain = left_g**2 / (left_h + ridge) + right_g**2 / (right_h + ridge)
            gain = jnp.where((left_h > least) & (right_h > least), gain, -jnp.inf)
            best = jnp.argmax(gain.reshape(nodes, -1), axis=1)
            feature, threshold = jnp.unravel_index(best, (features, bins))
            splits.append((feature, threshold))
            value = jnp.take_along_axis(binned, feature[node][:, None], axis=1)[:, 0]
            node = 2 * node + (value > threshold[node])
        leaf_g = lib.ops.segment_sum(g, node, 2**depth)
        leaf_h = lib.ops.segment_sum(h, node, 2**depth)
        leaves = -rate * leaf_g / (leaf_h + ridge)
        return splits, leaves, leaves[node]

    def fit(x, y):
        quantiles = jnp.quantile(x, jnp.linspace(0, 1, bins + 1)[1:-1], axis=0)
        binned = lib.vmap(jnp.searchsorted, in_axes=1, out_axes=1)(quantiles, x)

        def boost(logits, _):
            p = lib.nn.sigmoid(logits)
            _, leaves, change = grow(binned, p - y, p * (1 - p))
            logits = logits + change
            loss = jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)
            return logits, (loss, jnp.sort(leaves))

        start = jnp.full(points, jnp.log(jnp.mean(y) / (1 - jnp.mean(y))))
        logits, (losses, leaves) = lib.lax.scan(boost, start, None, length=rounds)
        order = jnp.argsort(logits)  # the area under the curve, by ranks
        ranks = jnp.zeros(points).at[order].set(jnp.arange(1.0, points + 1))
        ones = jnp.sum(y)
        area = (jnp.sum(ranks * y) / ones - 0.5 * (ones + 1)) / (points - ones)
        return logits, losses, leaves, area

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, features)).astype(np.float32)
    score = 2 * x[:, 0] * (x[:, 1] > 0.3) + np.sin(3 * x[:, 2]) - 0.4 * x[:, 1] ** 2
    y = (score + rng.logistic(size=points) > 0).astype(np.float32)
    return fit, (x, y)
