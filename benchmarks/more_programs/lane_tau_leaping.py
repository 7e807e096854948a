"""Lanes: a genetic switch of molecules that are counted, by tau leaping (Gillespie 2001)."""

import numpy as np

FIELD = "systems biology"
SIZES = {
    "tiny": dict(lanes=64, leaps=4),
    "small": dict(lanes=512, leaps=20),
    "large": dict(lanes=2**15, leaps=200),
}
TOLERANCE = {"cpu": 2e-2, "gpu": 5e-2}  # a draw at the edge of an integer is another molecule


def make(lib, lanes, leaps):
    jnp = lib.numpy
    # molecules: messages A and B, proteins A and B
    change = np.array([[1, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0],
                       [0, 0, 1, 0], [0, 0, -1, 0], [0, 0, 0, 1], [0, 0, 0, -1]], np.int32)

    def propensities(x, rates):
        x = x.astype(jnp.float32)
        block = 1 / (1 + (x[2:] / 40) ** 2)
        return jnp.stack([rates[0] * block[1], x[0], rates[0] * block[0], x[1],
                          rates[1] * x[0], rates[2] * x[2], rates[1] * x[1], rates[2] * x[3]])

    def poisson(u, mean):
        """The inverse of the distribution, term by term."""
        def going(state):
            k, _, total = state
            return (total < u) & (k < 200)

        def advance(state):
            k, term, total = state
            term = term * mean / (k + 1)
            return k + 1, term, total + term

        first = jnp.exp(-mean)
        k, _, _ = lib.lax.while_loop(going, advance, (0, first, first))
        return k

    def trajectory(key, x, rates):
        def leap(x, k):
            a = propensities(x, rates)
            tau = jnp.minimum(0.05, 4.0 / jnp.max(a))
            u = lib.random.uniform(lib.random.fold_in(key, k), (8,))
            fired = lib.vmap(poisson)(u, a * tau)
            x = jnp.maximum(x + fired @ change, 0)
            return x, tau

        x, taus = lib.lax.scan(leap, x, jnp.arange(leaps))
        return x, jnp.sum(taus)

    def ensemble(seed, x, rates):
        keys = lib.random.split(lib.random.key(seed), lanes)
        last, times = lib.vmap(trajectory, in_axes=(0, 0, None))(keys, x, rates)
        switch = jnp.sign(last[:, 2] - last[:, 3])
        counts = jnp.bincount(jnp.clip(last[:, 2] // 4, 0, 63), length=64)
        return last.astype(jnp.float32), times, jnp.mean(switch), jnp.cumsum(counts)

    rng = np.random.default_rng(0)
    x = rng.integers(0, 30, (lanes, 4)).astype(np.int32)
    return ensemble, (np.uint32(0), x, np.array([20.0, 4.0, 1.0], np.float32))
