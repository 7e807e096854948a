"""Barycentre of series under soft dynamic time warping, by antidiagonals (Cuturi, Blondel)."""

import numpy as np

FIELD = "time series"
SIZES = {
    "tiny": dict(series=3, length=8, features=2, steps=1),
    "small": dict(series=10, length=64, features=3, steps=2),
    "large": dict(series=256, length=512, features=8, steps=4),
}


def make(lib, series, length, features, steps):
    jnp, lax = lib.numpy, lib.lax
    gamma, big = 0.5, 1e8
    logsumexp = lib.scipy.special.logsumexp

    def soft_min(a, b, c):
        return -gamma * logsumexp(jnp.stack([a, b, c]) / -gamma, axis=0)

    def warped(x, y):
        costs = jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)
        rows = jnp.arange(length)
        columns = jnp.arange(2 * length - 1)[:, None] - rows[None]
        inside = (columns >= 0) & (columns < length)
        diagonals = jnp.where(inside, costs[rows, jnp.clip(columns, 0, length - 1)], big)

        def advance(carry, cost):
            before, last = carry
            up = jnp.concatenate([jnp.full(1, big), last[:-1]])
            corner = jnp.concatenate([jnp.full(1, big), before[:-1]])
            new = jnp.minimum(cost + soft_min(last, up, corner), big)
            return (last, new), new[-1]

        first = jnp.full(length, big).at[0].set(diagonals[0, 0])
        (_, last), _ = lax.scan(advance, (jnp.full(length, big), first), diagonals[1:])
        return last[-1]

    def loss(centre, xs, weights):
        return jnp.sum(weights * lib.vmap(warped, (None, 0))(centre, xs)) / length

    def step(centre, xs, weights):
        def descend(carry, _):
            centre, speed = carry
            value, grad = lib.value_and_grad(loss)(centre, xs, weights)
            speed = 0.8 * speed - 0.1 * grad
            return (centre + speed, speed), value

        return lax.scan(descend, (centre, jnp.zeros_like(centre)), None, length=steps)

    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, length)[None, :, None] + 0.1 * rng.standard_normal((series, 1, features))
    xs = (np.sin(8 * t) + 0.1 * rng.standard_normal(t.shape)).astype(np.float32)
    return step, (xs.mean(0), xs, np.full(series, 1 / series, np.float32))
