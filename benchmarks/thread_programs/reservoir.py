"""A leaky reservoir driven through a scan of small steps, with a ridge readout (Jaeger 2001)."""

import numpy as np

FIELD = "reservoir computing"
SIZES = {
    "tiny": dict(units=32, times=16, series=2),
    "small": dict(units=200, times=300, series=8),
    "server": dict(units=512, times=400, series=32),
    "large": dict(units=1024, times=1000, series=64),
}


def make(lib, units, times, series):
    jnp = lib.numpy

    def train(inner, outer, drive, target):
        def step(state, u):
            new = jnp.tanh(state @ inner + u[:, None] * outer)
            state = 0.7 * state + 0.3 * new
            return state, jnp.mean(state, axis=0)

        last, seen = lib.lax.scan(step, jnp.zeros((series, units), drive.dtype), drive)
        gram = seen.T @ seen + 1e-1 * jnp.eye(units, dtype=drive.dtype)
        readout = jnp.linalg.solve(gram, seen.T @ target)
        return last, seen @ readout

    rng = np.random.default_rng(0)
    inner = rng.standard_normal((units, units)) * 0.6 / np.sqrt(units)
    outer = rng.standard_normal(units)
    drive = np.sin(np.linspace(0, 12, times))[:, None] + 0.1 * rng.standard_normal((times, series))
    target = np.roll(drive.mean(1), -1)
    return train, tuple(x.astype(np.float32) for x in (inner, outer, drive, target))
