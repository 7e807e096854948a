"""Entropic optimal transport of point clouds and its gradient (Cuturi 2013)."""

import numpy as np

FIELD = "optimal transport"
SIZES = {
    "tiny": dict(n=16, m=12, iterations=5),
    "small": dict(n=128, m=128, iterations=20),
    "large": dict(n=2048, m=2048, iterations=50),
}


def make(lib, n, m, iterations):
    jnp = lib.numpy
    epsilon = 0.1

    def sinkhorn(x, y, log_a, log_b):
        cost = jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)

        def iterate(potentials, _):
            f, g = potentials
            f = epsilon * (log_a - lib.nn.logsumexp((g[None, :] - cost) / epsilon, axis=1))
            g = epsilon * (log_b - lib.nn.logsumexp((f[:, None] - cost) / epsilon, axis=0))
            return (f, g), None

        start = (jnp.zeros(n), jnp.zeros(m))
        (f, g), _ = lib.lax.scan(iterate, start, None, length=iterations)
        log_plan = (f[:, None] + g[None, :] - cost) / epsilon
        return jnp.sum(jnp.exp(log_plan) * cost), (f, g)

    def step(x, y, log_a, log_b):
        (value, potentials), slope = lib.value_and_grad(sinkhorn, has_aux=True)(x, y, log_a, log_b)
        return value, potentials, slope

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (n, 2)).astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi, m)
    y = np.stack([0.5 + 0.7 * np.cos(angle), 0.3 + 0.7 * np.sin(angle)], axis=1)
    a, b = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, m)
    log_a, log_b = np.log(a / a.sum()), np.log(b / b.sum())
    return step, (x, y.astype(np.float32), log_a.astype(np.float32), log_b.astype(np.float32))
