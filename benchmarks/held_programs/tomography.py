"""A picture from its projections: rotated sums, total variation, Nesterov's descent (Radon)."""

import numpy as np

FIELD = "imaging"
SIZES = {
    "tiny": dict(n=12, angles=4, iterations=2),
    "small": dict(n=64, angles=24, iterations=3),
    "large": dict(n=512, angles=180, iterations=10),
}


def make(lib, n, angles, iterations):
    jnp, lax = lib.numpy, lib.lax

    def bilinear(image, y, x):
        y0, x0 = jnp.floor(y), jnp.floor(x)
        wy, wx = y - y0, x - x0

        def at(i, j):
            inside = (i >= 0) & (i < n) & (j >= 0) & (j < n)
            i = jnp.clip(i, 0, n - 1).astype(jnp.int32)
            j = jnp.clip(j, 0, n - 1).astype(jnp.int32)
            return jnp.where(inside, image[i, j], 0.0)

        return ((1 - wy) * (1 - wx) * at(y0, x0) + (1 - wy) * wx * at(y0, x0 + 1)
                + wy * (1 - wx) * at(y0 + 1, x0) + wy * wx * at(y0 + 1, x0 + 1))  # fmt: skip

    def project(image, theta):
        axis = jnp.arange(n) - (n - 1) / 2
        u, v = jnp.meshgrid(axis, axis, indexing="ij")
        y = jnp.cos(theta) * u - jnp.sin(theta) * v + (n - 1) / 2
        x = jnp.sin(theta) * u + jnp.cos(theta) * v + (n - 1) / 2
        return jnp.sum(bilinear(image, y, x), axis=0) / n

    def radon(image, thetas):
        return lib.vmap(project, (None, 0))(image, thetas)

    def loss(image, thetas, sinogram):
        misfit = jnp.sum((radon(image, thetas) - sinogram) ** 2)
        dy, dx = jnp.diff(image, axis=0), jnp.diff(image, axis=1)
        variation = jnp.sum(jnp.sqrt(dy[:, :-1] ** 2 + dx[:-1] ** 2 + 1e-4))
        return misfit + 1e-3 * variation

    def step(image, truth, thetas):
        sinogram = radon(truth, thetas)

        def descend(carry, _):
            x, y, t = carry
            value, grad = lib.value_and_grad(loss)(y, thetas, sinogram)
            new = jnp.maximum(y - 0.1 * grad, 0.0)
            later = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
            return (new, new + (t - 1) / later * (new - x), later), value

        (x, _, _), values = lax.scan(descend, (image, image, 1.0), None, length=iterations)
        return x, values

    y, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    truth = ((x / 0.7) ** 2 + (y / 0.9) ** 2 < 1) - 0.5 * ((x - 0.2) ** 2 + y**2 < 0.1)
    rng = np.random.default_rng(0)
    return step, (rng.uniform(0, 1, (n, n)).astype(np.float32), truth.astype(np.float32),
                  np.linspace(0, np.pi, angles, endpoint=False).astype(np.float32))
