"""Filtering of a target that is seen by range and bearing, by particles (Gordon et al. 1993)."""

import math

import numpy as np

FIELD = "filtering"
SIZES = {
    "tiny": dict(series=2, particles=64, steps=4),
    "small": dict(series=4, particles=1024, steps=10),
    "large": dict(series=64, particles=4096, steps=100),
}
TOLERANCE = 2e-2  # rounding changes the ancestor of a particle now and then


def make(lib, series, particles, steps):
    jnp, random = lib.numpy, lib.random
    dt, drift, range_noise, bearing_noise = 0.1, 0.3, 0.3, 0.05

    def propagate(key, x):
        position, velocity = x[:, :2], x[:, 2:]
        velocity = 0.98 * velocity + drift * dt**0.5 * random.normal(key, velocity.shape)
        return jnp.concatenate([position + dt * velocity, velocity], axis=1)

    def log_likelihood(x, seen):
        distance = jnp.hypot(x[:, 0], x[:, 1])
        bearing = jnp.arctan2(x[:, 1], x[:, 0])
        turn = bearing - seen[1]
        turn = jnp.arctan2(jnp.sin(turn), jnp.cos(turn))
        z = jnp.stack([(distance - seen[0]) / range_noise, turn / bearing_noise])
        return -0.5 * jnp.sum(z**2, axis=0)

    def resample(key, weights):
        """Systematic resampling: one uniform number for all particles."""
        points = (random.uniform(key) + jnp.arange(particles)) / particles
        chosen = jnp.searchsorted(jnp.cumsum(weights), points)
        return jnp.minimum(chosen, particles - 1)

    def run(key, x, observations):
        def step(x, inputs):
            key, seen = inputs
            key_move, key_resample = random.split(key)
            x = propagate(key_move, x)
            log_w = log_likelihood(x, seen)
            total = lib.nn.logsumexp(log_w)
            weights = jnp.exp(log_w - total)
            mean = weights @ x
            spread = jnp.sqrt(weights @ (x - mean) ** 2)
            evidence = total - math.log(particles)
            return x[resample(key_resample, weights)], (mean, spread, evidence)

        _, history = lib.lax.scan(step, x, (random.split(key, steps), observations))
        return history

    def filter_all(seed, x, observations):
        keys = random.split(random.key(seed), series)
        mean, spread, evidence = lib.vmap(run)(keys, x, observations)
        return mean, spread.mean(axis=0), evidence.sum(axis=1)

    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.uniform(2, 5, (series, 2)), rng.uniform(-1, 1, (series, 2))], 1)
    x = truth[:, None] + 0.5 * rng.standard_normal((series, particles, 4))
    seen = []
    for _ in range(steps):
        truth[:, 2:] = 0.98 * truth[:, 2:] + drift * dt**0.5 * rng.standard_normal((series, 2))
        truth[:, :2] += dt * truth[:, 2:]
        distance = np.hypot(truth[:, 0], truth[:, 1])
        bearing = np.arctan2(truth[:, 1], truth[:, 0])
        clean = np.stack([distance, bearing], axis=1)
        seen.append(clean + [range_noise, bearing_noise] * rng.standard_normal((series, 2)))
    observations = np.stack(seen, axis=1).astype(np.float32)
    return filter_all, (np.uint32(0), x.astype(np.float32), observations)
