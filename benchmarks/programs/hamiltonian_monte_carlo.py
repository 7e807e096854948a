"""Posterior of a logistic regression by many chains of Hamiltonian Monte Carlo (Neal 2011)."""

import numpy as np

FIELD = "Bayesian inference"
SIZES = {
    "tiny": dict(chains=8, draws=3, leapfrogs=3, points=32, features=4),
    "small": dict(chains=32, draws=6, leapfrogs=5, points=256, features=16),
    "large": dict(chains=512, draws=20, leapfrogs=8, points=1024, features=32),
}


def make(lib, chains, draws, leapfrogs, points, features):
    jnp = lib.numpy
    step_size = 0.25 / points**0.5

    def log_density(q, x, y):
        logits = x @ q
        likelihood = jnp.sum(y * logits - jnp.logaddexp(0.0, logits))
        return likelihood - 0.5 * jnp.sum(q**2)

    def transition(q, key, x, y):
        gradient = lib.grad(log_density)
        key_momentum, key_accept = lib.random.split(key)
        p = lib.random.normal(key_momentum, q.shape)

        def leapfrog(_, state):
            q, p = state
            p = p + 0.5 * step_size * gradient(q, x, y)
            q = q + step_size * p
            p = p + 0.5 * step_size * gradient(q, x, y)
            return q, p

        q_new, p_new = lib.lax.fori_loop(0, leapfrogs, leapfrog, (q, p))
        energy = 0.5 * jnp.sum(p**2) - log_density(q, x, y)
        energy_new = 0.5 * jnp.sum(p_new**2) - log_density(q_new, x, y)
        probability = jnp.exp(jnp.minimum(energy - energy_new, 0.0))
        accept = lib.random.uniform(key_accept) < probability
        return jnp.where(accept, q_new, q), probability

    def sample(seed, q, x, y):
        def draw(q, key):
            keys = lib.random.split(key, chains)
            q, probability = lib.vmap(transition, in_axes=(0, 0, None, None))(q, keys, x, y)
            moments = q.mean(0), (q[:, :, None] * q[:, None, :]).mean(0), probability.mean()
            return q, moments

        _, (mean, second, probability) = lib.lax.scan(
            draw, q, lib.random.split(lib.random.key(seed), draws)
        )
        return {"mean": mean, "second": second, "acceptance": probability}

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, features)).astype(np.float32)
    truth = rng.standard_normal(features)
    y = (rng.random(points) < 1 / (1 + np.exp(-x @ truth))).astype(np.float32)
    q = (truth + 0.3 * rng.standard_normal((chains, features))).astype(np.float32)
    return sample, (np.uint32(0), q, x, y)
