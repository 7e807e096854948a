"""Columns of expression levels brought to one distribution, by ranks (Bolstad and others 2003)."""

import numpy as np

FIELD = "genomics"
SIZES = {
    "tiny": dict(genes=30, samples=4),
    "small": dict(genes=5_000, samples=48),
    "server": dict(genes=20_000, samples=48),
    "large": dict(genes=60_000, samples=500),
}


def make(lib, genes, samples):
    jnp = lib.numpy

    def normalised(levels):
        logs = jnp.log2(levels + 1)
        order = jnp.argsort(logs, axis=1)
        ranks = jnp.argsort(order, axis=1)
        target = jnp.mean(jnp.take_along_axis(logs, order, axis=1), axis=0)
        even = target[ranks]
        even = even - jnp.mean(even, axis=0)
        spread = jnp.sqrt(jnp.mean(even**2, axis=0) + 1e-3)
        return even / spread, jnp.sort(spread)[::-1][:10], (even @ even.T) / genes

    rng = np.random.default_rng(0)
    base = rng.lognormal(2, 1.5, genes)
    levels = base * rng.lognormal(0, 0.4, (samples, genes)) * rng.uniform(0.5, 2, (samples, 1))
    return normalised, (levels.astype(np.float32),)
