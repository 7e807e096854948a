"""A collapsing column of water by smoothed particles with lists of neighbours (Monaghan 1994)."""

import numpy as np

FIELD = "fluid dynamics"
SIZES = {
    "tiny": dict(side=6, slots=4, steps=2),
    "small": dict(side=32, slots=5, steps=4),
    "large": dict(side=256, slots=6, steps=8),
}


def make(lib, side, slots, steps):
    jnp = lib.numpy
    n, gap = side * side, 1.0 / side
    reach = 2 * gap
    cells = int(np.ceil(2.2 / reach))
    sound, gravity, dt = 8.0, -1.0, 0.1 * gap / 8.0
    mass = gap**2

    def cell_list(x):
        """Which particles are in each cell: an array of slots a cell, n where a slot is free."""
        where = jnp.clip((x / reach).astype(jnp.int32) + 1, 0, cells + 1)
        flat = where[:, 0] * (cells + 2) + where[:, 1]
        order = jnp.argsort(flat)
        of_sorted = flat[order]
        first = jnp.searchsorted(of_sorted, jnp.arange((cells + 2) ** 2))
        rank = jnp.arange(n) - first[of_sorted]
        table = jnp.full(((cells + 2) ** 2, slots), n, dtype=jnp.int32)
        return table.at[of_sorted, rank].set(order.astype(jnp.int32), mode="drop"), where

    def neighbours(x):
        table, where = cell_list(x)
        around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        found = [table[jnp.clip((where[:, 0] + i) * (cells + 2) + where[:, 1] + j, 0,
                                (cells + 2) ** 2 - 1)] for i, j in around]  # fmt: skip
        return jnp.concatenate(found, axis=1)

    def kernel(distance):
        """Wendland's quintic and its slope over the distance."""
        q = distance / gap
        rest = jnp.maximum(1 - q / 2, 0)
        scale = 7 / (4 * np.pi * gap**2)
        return scale * rest**4 * (2 * q + 1), -5 * scale * rest**3 / gap**2

    def step(state, _):
        x, v = state
        near = neighbours(x)
        there = near < n
        other = jnp.minimum(near, n - 1)
        apart = x[:, None] - x[other]
        square = jnp.sum(apart**2, axis=-1)
        value, slope = kernel(jnp.sqrt(square + 1e-12))
        density = jnp.sum(jnp.where(there, mass * value, 0), axis=1)
        pressure = sound**2 * (density - 1)
        push = (pressure / density**2)[:, None] + (pressure / density**2)[other]
        speed = jnp.sum((v[:, None] - v[other]) * apart, axis=-1)
        drag = jnp.where(speed < 0, -0.3 * gap * sound * speed / (square + 0.01 * gap**2), 0)
        strength = jnp.where(there & (near != jnp.arange(n)[:, None]), mass * (push + drag), 0)
        force = -jnp.sum((strength * slope)[..., None] * apart, axis=1)
        force = force + jnp.array([0.0, gravity])
        v = v + dt * force
        x = x + dt * v
        v = jnp.where((x < 0) | (x > 2), -0.5 * v, v)
        return (jnp.clip(x, 0, 2), v), (jnp.max(density), jnp.sum(v**2))

    def simulate(x, v):
        return lib.lax.scan(step, (x, v), None, length=steps)

    rng = np.random.default_rng(0)
    grid = np.stack(np.mgrid[:side, :side], axis=-1).reshape(n, 2)
    x = (grid + 0.5 + 0.1 * rng.uniform(-1, 1, (n, 2))) * gap
    v = 0.1 * rng.standard_normal((n, 2))
    return simulate, (x.astype(np.float32), v.astype(np.float32))
