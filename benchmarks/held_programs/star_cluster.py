"""A softened cluster of stars by leapfrog, and the gradient to masses and velocities through it."""

import numpy as np

FIELD = "astronomy"
SIZES = {
    "tiny": dict(stars=8, steps=3),
    "small": dict(stars=128, steps=20),
    "large": dict(stars=4096, steps=50),
}


def make(lib, stars, steps):
    jnp, lax = lib.numpy, lib.lax

    def potential(positions, masses):
        apart = positions[:, None] - positions[None]
        inverse = 1 / jnp.sqrt(jnp.sum(apart**2, axis=-1) + 0.05)
        pairs = masses[:, None] * masses[None] * inverse
        return -0.5 * jnp.sum(jnp.where(jnp.eye(stars, dtype=bool), 0.0, pairs))

    def evolve(positions, velocities, masses):
        def acceleration(x):
            return -lib.grad(potential)(x, masses) / masses[:, None]

        def leap(carry, _):
            x, v, a = carry
            v = v + 0.005 * a
            x = x + 0.01 * v
            a = acceleration(x)
            v = v + 0.005 * a
            energy = 0.5 * jnp.sum(masses[:, None] * v**2) + potential(x, masses)
            return (x, v, a), energy

        start = (positions, velocities, acceleration(positions))
        (x, v, _), energies = lax.scan(leap, start, None, length=steps)
        return x, v, energies

    def loss(velocities, masses, positions, target):
        x, _, energies = evolve(positions, velocities, masses)
        return jnp.mean((x - target) ** 2), energies

    def step(velocities, masses, positions, target):
        return lib.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
            velocities, masses, positions, target)  # fmt: skip

    rng = np.random.default_rng(0)
    positions, velocities, target = rng.standard_normal((3, stars, 3)).astype(np.float32)
    masses = rng.uniform(0.5, 1.5, stars).astype(np.float32) / stars
    return step, (0.3 * velocities, masses, positions, positions + 0.1 * target)
