"""Ising magnets on a checkerboard, exchanging temperatures (Swendsen and Wang 1986)."""

import numpy as np

FIELD = "statistical physics"
SIZES = {
    "tiny": dict(replicas=4, side=8, sweeps=3),
    "small": dict(replicas=8, side=32, sweeps=10),
    "large": dict(replicas=64, side=256, sweeps=20),
}
TOLERANCE = {"gpu": 2e-2}  # a spin flips in one library alone, once in some ten million


def make(lib, replicas, side, sweeps):
    jnp = lib.numpy
    i, j = np.mgrid[:side, :side]
    board = (i + j) % 2 == 0

    def neighbours(spins):
        return sum(jnp.roll(spins, shift, axis) for shift in (1, -1) for axis in (1, 2))

    def energy(spins):
        right, down = jnp.roll(spins, -1, 1), jnp.roll(spins, -1, 2)
        return -jnp.sum(spins * (right + down), axis=(1, 2), dtype=jnp.int32)

    def metropolis(key, spins, beta, colour):
        change = (2 * spins * neighbours(spins)).astype(jnp.float32)
        chance = jnp.exp(-beta[:, None, None] * change)
        flip = (lib.random.uniform(key, spins.shape) < chance) & colour
        return jnp.where(flip, -spins, spins)

    def exchange(key, spins, beta, parity):
        """Swap neighbouring temperatures where detailed balance allows it."""
        e = energy(spins)
        index = jnp.arange(replicas)
        partner = jnp.where((index + parity) % 2 == 0, index + 1, index - 1)
        partner = jnp.where((partner >= 0) & (partner < replicas), partner, index)
        gain = (beta - beta[partner]) * (e - e[partner]) / side**2
        lower = jnp.minimum(index, partner)
        u = lib.random.uniform(key, (replicas,))[lower]
        swap = jnp.log(u) < side**2 * gain
        return spins[jnp.where(swap, partner, index)]

    def simulate(seed, spins, beta):
        key = lib.random.key(seed)

        def sweep(spins, count):
            even, odd, swap = lib.random.split(lib.random.fold_in(key, count), 3)
            spins = metropolis(even, spins, beta, board)
            spins = metropolis(odd, spins, beta, ~board)
            spins = exchange(swap, spins, beta, count % 2)
            magnetisation = jnp.mean(spins, axis=(1, 2), dtype=jnp.float32)
            return spins, (energy(spins) / side**2, jnp.abs(magnetisation))

        spins, traces = lib.lax.scan(sweep, spins, jnp.arange(sweeps))
        correlation = jnp.stack([
            jnp.mean(spins * jnp.roll(spins, distance, 1), axis=(1, 2), dtype=jnp.float32)
            for distance in (1, 2, 4)
        ])  # fmt: skip
        return traces, correlation

    rng = np.random.default_rng(0)
    spins = rng.choice(np.array([-1, 1], np.int8), (replicas, side, side), p=(0.3, 0.7))
    beta = 1 / np.linspace(1.5, 3.5, replicas)
    return simulate, (np.uint32(0), spins, beta.astype(np.float32))
