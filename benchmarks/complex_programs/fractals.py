"""Escape times of z -> z^2 + c, and roots that Newton's method finds, with complex arrays."""

import numpy as np

FIELD = "mathematics"
SIZES = {
    "tiny": dict(side=16, steps=10),
    "small": dict(side=256, steps=100),
    "large": dict(side=2048, steps=200),
}
TOLERANCE = {"cpu": 2e-2, "gpu": 2e-2}  # a few pixels of the borders


def make(lib, side, steps):
    jnp = lib.numpy

    def picture(c):
        def step(_, state):
            z, count = state
            inside = jnp.abs(z) < 2
            return jnp.where(inside, z * z + c, z), count + inside

        start = jnp.zeros_like(c), jnp.zeros(c.shape, "int32")
        return lib.lax.fori_loop(0, steps, step, start)[1]

    def root(z):
        def step(_, z):
            return z - (z**3 - 1) / (3 * z**2)

        return lib.lax.fori_loop(0, 24, step, z)

    def both(c):
        return picture(c), jnp.round(root(c).imag)

    x = np.linspace(-2, 0.6, side, dtype=np.float32)
    y = np.linspace(-1.3, 1.3, side, dtype=np.float32)
    return both, ((x + 1j * y[:, None]).astype("c8"),)
