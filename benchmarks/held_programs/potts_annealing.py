"""Simulated annealing of a Potts model in a checkerboard of heat baths (Geman, Geman 1984)."""

import numpy as np

FIELD = "statistical physics"
SIZES = {
    "tiny": dict(chains=2, n=8, colours=3, sweeps=3),
    "small": dict(chains=4, n=48, colours=4, sweeps=12),
    "large": dict(chains=64, n=512, colours=8, sweeps=100),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, chains, n, colours, sweeps):
    jnp, nn, lax, random = lib.numpy, lib.nn, lib.lax, lib.random

    def agreeing(spins):
        hot = nn.one_hot(spins, colours)
        return sum(jnp.roll(hot, shift, axis) for axis in (0, 1) for shift in (1, -1))

    def energy(spins, field):
        pairs = (spins == jnp.roll(spins, 1, 0)).sum() + (spins == jnp.roll(spins, 1, 1)).sum()
        own = jnp.take_along_axis(field, spins[..., None], axis=-1)[..., 0]
        return -(pairs + own.sum()) / n**2

    def half_sweep(key, spins, field, beta, odd):
        logits = beta * (agreeing(spins) + field)
        fresh = random.categorical(key, logits, axis=-1)
        parity = (jnp.arange(n)[:, None] + jnp.arange(n)[None]) % 2
        return jnp.where(parity == odd, fresh, spins)

    def chain(key, spins, field):
        def sweep(carry, beta):
            key, spins = carry
            key, one, two = random.split(key, 3)
            spins = half_sweep(one, spins, field, beta, 0)
            spins = half_sweep(two, spins, field, beta, 1)
            return (key, spins), energy(spins, field)

        betas = jnp.linspace(0.2, 2.0, sweeps)
        (_, spins), energies = lax.scan(sweep, (key, spins), betas)
        return energies, jnp.bincount(spins.ravel(), length=colours)

    def step(seed, spins, field):
        keys = random.split(random.key(seed), chains)
        return lib.vmap(chain, (0, 0, None))(keys, spins, field)

    rng = np.random.default_rng(0)
    spins = rng.integers(0, colours, (chains, n, n)).astype(np.int32)
    return step, (np.uint32(0), spins, rng.standard_normal((n, n, colours)).astype(np.float32))
