"""Variational inference of a hierarchical negative binomial regression (Kucukelbir et al. 2017)."""

import numpy as np

FIELD = "Bayesian inference"
SIZES = {
    "tiny": dict(groups=4, points=40, features=2, samples=2, steps=2),
    "small": dict(groups=50, points=1000, features=4, samples=4, steps=5),
    "large": dict(groups=2000, points=200_000, features=8, samples=8, steps=10),
}


def make(lib, groups, points, features, samples, steps):
    jnp, stats = lib.numpy, lib.scipy.stats
    gammaln = lib.scipy.special.gammaln

    def log_joint(z, x, group, counts):
        scale, dispersion = jnp.exp(z["log_scale"]), jnp.exp(z["log_dispersion"])
        slopes = z["mean"] + scale * z["offset"]  # groups, features; not centred
        log_rate = jnp.sum(slopes[group] * x, axis=-1)
        total = jnp.logaddexp(log_rate, z["log_dispersion"])
        likelihood = (
            gammaln(counts + dispersion) - gammaln(dispersion) - gammaln(counts + 1)
            + dispersion * (z["log_dispersion"] - total) + counts * (log_rate - total)
        )  # fmt: skip
        prior = jnp.sum(stats.norm.logpdf(z["mean"], 0.0, 2.0))
        prior += jnp.sum(stats.norm.logpdf(z["offset"]))
        prior += jnp.sum(stats.gamma.logpdf(scale, 2.0, scale=0.5) + z["log_scale"])
        prior += stats.gamma.logpdf(dispersion, 2.0) + z["log_dispersion"]
        return jnp.sum(likelihood) + prior

    def negative_elbo(q, key, x, group, counts):
        def draw(key):
            leaves, tree = lib.tree.flatten(q["mean"])
            keys = lib.tree.unflatten(tree, list(lib.random.split(key, len(leaves))))
            noise = lib.tree.map(lambda m, k: lib.random.normal(k, m.shape), q["mean"], keys)
            z = lib.tree.map(lambda m, s, e: m + jnp.exp(s) * e, q["mean"], q["log_std"], noise)
            return log_joint(z, x, group, counts)

        entropy = sum(jnp.sum(s) for s in lib.tree.leaves(q["log_std"]))
        return -jnp.mean(lib.vmap(draw)(lib.random.split(key, samples))) - entropy

    def fit(seed, q, x, group, counts):
        def adam(state, inputs):
            q, m, v = state
            count, key = inputs
            value, g = lib.value_and_grad(negative_elbo)(q, key, x, group, counts)
            m = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v = lib.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, g)

            def update(p, m, v):
                m, v = m / (1 - 0.9**count), v / (1 - 0.999**count)
                return p - 0.05 * m / (jnp.sqrt(v) + 1e-3)

            return (lib.tree.map(update, q, m, v), m, v), value / points

        keys = lib.random.split(lib.random.key(seed), steps)
        zeros = lib.tree.map(jnp.zeros_like, q)
        counting = jnp.arange(1, steps + 1, dtype=jnp.float32)
        return lib.lax.scan(adam, (q, zeros, zeros), (counting, keys))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, features)).astype(np.float32) / np.float32(features**0.5)
    x[:, 0] = 1.0
    group = np.sort(rng.integers(groups, size=points)).astype(np.int32)
    slopes = rng.standard_normal(features) + 0.5 * rng.standard_normal((groups, features))
    rate = np.exp((slopes[group] * x).sum(1)) * rng.gamma(3.0, 1 / 3.0, points)
    counts = rng.poisson(np.minimum(rate, 100.0)).astype(np.float32)
    mean = {
        "mean": np.zeros(features, np.float32),
        "log_scale": np.full(features, -1, np.float32),
        "offset": np.zeros((groups, features), np.float32),
        "log_dispersion": np.float32(0.5),
    }
    q = {"mean": mean, "log_std": lib.tree.map(lambda p: np.full_like(p, -3.0), mean)}
    return fit, (np.uint32(0), q, x, group, counts)
