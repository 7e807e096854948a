"""Roots of many polynomials at once by Durand's and Kerner's iteration, under `vmap`."""

import numpy as np

FIELD = "mathematics"
SIZES = {
    "tiny": dict(polynomials=8, degree=4, steps=10),
    "small": dict(polynomials=2048, degree=8, steps=40),
    "large": dict(polynomials=2**17, degree=8, steps=40),
}


def make(lib, polynomials, degree, steps):
    jnp = lib.numpy

    def roots(coefficients):
        start = (0.4 + 0.9j) ** jnp.arange(degree)

        def step(_, z):
            value = jnp.ones_like(z)
            for k in range(degree):
                value = value * z + coefficients[k]
            apart = z[:, None] - z[None, :] + jnp.eye(degree)
            return z - value / jnp.prod(apart, axis=1)

        z = lib.lax.fori_loop(0, steps, step, start.astype("complex64"))
        return jnp.sum(jnp.abs(z)), jnp.prod(z)

    rng = np.random.default_rng(0)
    coefficients = rng.normal(size=(polynomials, degree, 2)).astype(np.float32)
    return lib.vmap(roots), (coefficients[..., 0] + 1j * coefficients[..., 1],)
