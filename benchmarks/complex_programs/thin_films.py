"""Reflection of stacks of thin films by transfer matrices, and its gradient to thicknesses."""

import numpy as np

FIELD = "optics"
SIZES = {
    "tiny": dict(waves=16, layers=3),
    "small": dict(waves=4096, layers=20),
    "large": dict(waves=2**18, layers=40),
}


def make(lib, waves, layers):
    jnp = lib.numpy

    def reflection(thickness, index, wave):
        def layer(matrix, film):
            d, n = film
            phase = 2 * np.pi * n * d / wave
            c, s = jnp.cos(phase), jnp.sin(phase)
            own = jnp.array([[c, 1j * s / n], [1j * s * n, c]])
            return matrix @ own, None

        matrix, _ = lib.lax.scan(layer, jnp.eye(2, dtype="complex64"), (thickness, index))
        b, c = matrix @ jnp.array([1.0, 1.5], "complex64")
        return jnp.abs((b - c) / (b + c)) ** 2

    def loss(thickness, index, wave):
        return lib.vmap(reflection, (None, None, 0))(thickness, index, wave).mean()

    rng = np.random.default_rng(0)
    index = (rng.uniform(1.4, 2.4, layers) - 0.01j * rng.uniform(0, 1, layers)).astype("c8")
    thickness = rng.uniform(40, 150, layers).astype(np.float32)
    return lib.value_and_grad(loss), (thickness, index, np.linspace(400, 800, waves, dtype="f4"))
