"""Transport between two clouds by scaling rows and columns in turn, and its slope (Cuturi 2013)."""

import numpy as np

FIELD = "optimal transport"
SIZES = {
    "tiny": dict(points=20, dimensions=3, rounds=3),
    "small": dict(points=400, dimensions=3, rounds=12),
    "server": dict(points=1000, dimensions=8, rounds=20),
    "large": dict(points=4000, dimensions=16, rounds=50),
}


def make(lib, points, dimensions, rounds):
    jnp, logsumexp = lib.numpy, lib.nn.logsumexp

    def cost(x, y):
        distance = jnp.sum((x[:, None] - y[None]) ** 2, axis=-1) / 0.5

        def scaled(potentials, _):
            f, g = potentials
            f = -logsumexp(g[None] - distance, axis=1)
            g = -logsumexp(f[:, None] - distance, axis=0)
            return (f, g), jnp.max(jnp.abs(f))

        start = (jnp.zeros(points, x.dtype), jnp.zeros(points, x.dtype))
        (f, g), sizes = lib.lax.scan(scaled, start, None, length=rounds)
        plan = jnp.exp(f[:, None] + g[None] - distance)
        return jnp.sum(plan * distance), sizes

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, dimensions)).astype(np.float32)
    y = (0.5 * rng.standard_normal((points, dimensions)) + 1).astype(np.float32)
    return lib.value_and_grad(cost, has_aux=True), (x, y)
