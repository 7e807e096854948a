"""Hamiltonian Monte Carlo on a curved density, each chain with a step of its own (Neal 2011)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(lanes=32, draws=3, steps=3),
    "small": dict(lanes=2**10, draws=20, steps=8),
    "large": dict(lanes=2**15, draws=100, steps=16),
}
TOLERANCE = 3e-2  # a proposal is refused by the last digit in a few chains


def make(lib, lanes, draws, steps):
    jnp = lib.numpy

    def energy(q, data):
        """A banana in two parameters, and a scale that is common to all observations."""
        center, bend, log_scale, offset = q
        curved = bend - 0.5 * center**2
        prior = 0.5 * (center**2 + 4 * curved**2 + log_scale**2 + offset**2 / 4)
        misfit = (data - (center + 0.5 * offset)) * jnp.exp(-log_scale)
        return prior + jnp.sum(jnp.logaddexp(0.0, misfit**2 - 1) + log_scale)

    def chain(key, q, data, rate):
        def draw(carry, k):
            q, rate, accepted = carry
            here = lib.random.fold_in(key, k)
            momentum = lib.random.normal(lib.random.fold_in(here, 0), (4,))
            gradient = lib.grad(energy)

            def leap(_, state):
                q, p = state
                p = p - 0.5 * rate * gradient(q, data)
                q = q + rate * p
                return q, p - 0.5 * rate * gradient(q, data)

            new, p = lib.lax.fori_loop(0, steps, leap, (q, momentum))
            change = energy(q, data) - energy(new, data) + 0.5 * (momentum @ momentum - p @ p)
            change = jnp.where(jnp.isnan(change), -jnp.inf, change)
            taken = jnp.log(lib.random.uniform(lib.random.fold_in(here, 1))) < change
            rate = rate * jnp.exp(0.1 * (jnp.exp(jnp.minimum(change, 0.0)) - 0.8))
            q = jnp.where(taken, new, q)
            return (q, rate, accepted + taken), q

        (q, rate, accepted), path = lib.lax.scan(draw, (q, rate, 0), jnp.arange(draws))
        return jnp.mean(path, 0), accepted / draws, rate

    def sample(seed, q, data, rate):
        keys = lib.random.split(lib.random.key(seed), lanes)
        means, accepted, rate = lib.vmap(chain, in_axes=(0, 0, None, 0))(keys, q, data, rate)
        return jnp.mean(means, 0), jnp.mean(accepted), jnp.mean(rate)

    rng = np.random.default_rng(0)
    q = 0.5 * rng.standard_normal((lanes, 4))
    data = 0.7 + 0.5 * rng.standard_normal(6)
    rate = rng.uniform(0.05, 0.2, lanes)
    return sample, (np.uint32(0), *(x.astype(np.float32) for x in (q, data, rate)))
