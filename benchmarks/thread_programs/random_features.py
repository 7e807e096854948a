"""Kernel regression by random features, its evidence and gradient (Rahimi and Recht 2007)."""

import numpy as np

FIELD = "kernel methods"
SIZES = {
    "tiny": dict(points=40, features=8, dims=3, lags=16),
    "small": dict(points=1_000, features=96, dims=6, lags=256),
    "server": dict(points=6_000, features=192, dims=12, lags=1024),
    "large": dict(points=200_000, features=1024, dims=16, lags=4096),
}


def make(lib, points, features, dims, lags):
    jnp = lib.numpy

    def evidence(scales, frequencies, x, y):
        angle = (x * jnp.exp(scales)) @ frequencies
        phi = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1) / np.sqrt(features)
        gram = phi.T @ phi + 0.3 * jnp.eye(2 * features, dtype=x.dtype)
        root = jnp.linalg.cholesky(gram)
        half = lib.scipy.linalg.solve_triangular(root, phi.T @ y, lower=True)
        return jnp.sum(jnp.log(jnp.diagonal(root))) + (y @ y - half @ half) / points

    def step(scales, frequencies, x, y):
        value, slope = lib.value_and_grad(evidence)(scales, frequencies, x, y)
        line = jnp.sort(x[:, 0])[: (points // lags) * lags if points > lags else points]
        power = jnp.abs(jnp.fft.rfft(line - jnp.mean(line))) ** 2
        return value, slope, jnp.log1p(power)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, dims))
    y = np.sin(x.sum(1)) + 0.1 * rng.standard_normal(points)
    frequencies = rng.standard_normal((dims, features))
    return step, tuple(a.astype(np.float32) for a in (np.zeros(dims) - 1, frequencies, x, y))
