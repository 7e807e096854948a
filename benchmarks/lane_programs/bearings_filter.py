"""Targets tracked from bearings of two stations by an unscented Kalman filter (Julier 1997)."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(lanes=32, steps=5),
    "small": dict(lanes=2**9, steps=40),
    "large": dict(lanes=2**14, steps=200),
}


def make(lib, lanes, steps):
    jnp = lib.numpy
    dt, spread = 0.1, 3.0
    motion = np.eye(4, dtype=np.float32) + dt * np.eye(4, k=2, dtype=np.float32)
    stations = np.array([[-2.0, 0.0], [2.0, 0.0]], np.float32)
    weights = np.full(9, 1 / (2 * spread + 8), np.float32)
    weights[0] = spread / (spread + 4) if spread else 0
    weights[1:] = (1 - weights[0]) / 8

    def points(mean, cov):
        root = jnp.linalg.cholesky((4 + spread) * cov)
        return jnp.concatenate([mean[None], mean + root.T, mean - root.T])

    def seen(point):
        gap = point[:2] - stations
        return jnp.arctan2(gap[:, 1], gap[:, 0])

    def step(state, bearing):
        mean, cov, noise, loss = state
        moved = points(mean, cov) @ motion.T
        mean = weights @ moved
        away = moved - mean
        cov = away.T @ (weights[:, None] * away) + noise[0] * jnp.eye(4)
        spots = points(mean, cov)
        bearings = lib.vmap(seen)(spots)
        expected = weights @ bearings
        off = bearings - expected
        inner = off.T @ (weights[:, None] * off) + noise[1] * jnp.eye(2)
        cross = (spots - mean).T @ (weights[:, None] * off)
        gain = jnp.linalg.solve(inner, cross.T).T
        surprise = bearing - expected
        mean = mean + gain @ surprise
        cov = cov - gain @ inner @ gain.T
        cov = (cov + cov.T) / 2
        quadratic = surprise @ jnp.linalg.solve(inner, surprise)
        loss = loss + 0.5 * (quadratic + jnp.log(jnp.linalg.det(inner)))
        return (mean, cov, noise, loss), mean[:2]

    def track(start, bearings, noise):
        state = (start, 0.1 * jnp.eye(4), noise, 0.0)
        (mean, cov, _, loss), path = lib.lax.scan(step, state, bearings)
        return mean, jnp.trace(cov), loss, path[-1]

    def fleet(start, bearings, noise):
        return lib.vmap(track)(start, bearings, noise)

    rng = np.random.default_rng(0)
    start = rng.uniform([-1, 2, -0.3, -0.3], [1, 4, 0.3, 0.3], (lanes, 4))
    times = dt * np.arange(1, steps + 1)[None, :, None]
    path = start[:, None, :2] + start[:, None, 2:] * np.minimum(times, 3)
    gap = path[:, :, None] - stations
    bearings = np.arctan2(gap[..., 1], gap[..., 0]) + 0.02 * rng.standard_normal((lanes, steps, 2))
    noise = rng.uniform([1e-3, 1e-3], [1e-2, 5e-3], (lanes, 2))
    start = start + 0.1 * rng.standard_normal(start.shape)
    return fleet, tuple(x.astype(np.float32) for x in (start, bearings, noise))
