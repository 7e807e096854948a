"""Bands of a regression's coefficients by drawing rows again (Efron 1979): draws, small systems."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(rows=30, columns=3, draws=4),
    "small": dict(rows=2_000, columns=6, draws=400),
    "server": dict(rows=4_000, columns=12, draws=1000),
    "large": dict(rows=10_000, columns=20, draws=2000),
}


def make(lib, rows, columns, draws):
    jnp, random = lib.numpy, lib.random

    def bands(x, y):
        def drawn(key):
            weight = -jnp.log(random.uniform(key, (rows,), minval=1e-6))  # Rubin's, 1981
            weighted = x * weight[:, None]
            gram = weighted.T @ x + 1e-3 * jnp.eye(columns, dtype=x.dtype)
            return jnp.linalg.solve(gram, weighted.T @ y)

        keys = random.split(random.key(0), draws)
        found = lib.vmap(drawn)(keys)
        return jnp.mean(found, axis=0), jnp.quantile(found, jnp.asarray([0.05, 0.95]), axis=0)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    y = x @ rng.standard_normal(columns) + 0.3 * rng.standard_normal(rows)
    return bands, (x, y.astype(np.float32))
