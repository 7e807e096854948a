"""A point cloud flows to another by sorted random projections (Bonneel et al. 2015)."""

import numpy as np

FIELD = "optimal transport"
SIZES = {
    "tiny": dict(points=20, dims=2, directions=4, steps=2),
    "small": dict(points=512, dims=3, directions=16, steps=5),
    "large": dict(points=16384, dims=3, directions=64, steps=10),
}


def make(lib, points, dims, directions, steps):
    jnp = lib.numpy

    def distance(x, y, theta):
        """The mean over directions of the squared 2-Wasserstein distance on a line."""
        projected_x = jnp.sort(x @ theta, axis=0)
        projected_y = jnp.sort(y @ theta, axis=0)
        return jnp.mean((projected_x - projected_y) ** 2)

    def flow(seed, x, y):
        def descend(x, key):
            theta = lib.random.normal(key, (dims, directions))
            theta = theta / jnp.linalg.norm(theta, axis=0)
            value, slope = lib.value_and_grad(distance)(x, y, theta)
            return x - 0.5 * points * dims * slope, value

        return lib.lax.scan(descend, x, lib.random.split(lib.random.key(seed), steps))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, dims)).astype(np.float32)
    y = rng.standard_normal((points, dims))
    y = 2 * y / np.linalg.norm(y, axis=1, keepdims=True) + np.arange(dims)
    return flow, (np.uint32(0), x, y.astype(np.float32))
