"""Patterns of two reacting chemicals that diffuse: the model of Gray and Scott (Pearson 1993)."""

import numpy as np

FIELD = "partial differential equations"
SIZES = {
    "tiny": dict(side=16, steps=4),
    "small": dict(side=192, steps=50),
    "large": dict(side=2048, steps=100),
}


def make(lib, side, steps):
    jnp = lib.numpy
    diffusion_u, diffusion_v, dt = 0.16, 0.08, 1.0

    def laplacian(a):
        """The nine-point stencil on a periodic grid."""
        sides = jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1)
        up, down = jnp.roll(a, 1, 0), jnp.roll(a, -1, 0)
        corners = jnp.roll(up, 1, 1) + jnp.roll(up, -1, 1)
        corners = corners + jnp.roll(down, 1, 1) + jnp.roll(down, -1, 1)
        return 0.2 * sides + 0.05 * corners - a

    def react(_, state, feed, kill):
        u, v = state
        reaction = u * v * v
        u = u + dt * (diffusion_u * laplacian(u) - reaction + feed * (1 - u))
        v = v + dt * (diffusion_v * laplacian(v) + reaction - (feed + kill) * v)
        return u, v

    def simulate(u, v, feed, kill):
        return lib.lax.fori_loop(0, steps, lambda i, s: react(i, s, feed, kill), (u, v))

    rng = np.random.default_rng(0)
    u = np.ones((side, side)) + 0.02 * rng.standard_normal((side, side))
    v = 0.02 * rng.random((side, side))
    for _ in range(max(4, side // 16)):
        i, j = rng.integers(0, side - 4, 2)
        u[i : i + 8, j : j + 8], v[i : i + 8, j : j + 8] = 0.5, 0.25
    feed = np.linspace(0.02, 0.06, side, dtype=np.float32)[:, None]
    kill = np.linspace(0.05, 0.07, side, dtype=np.float32)[None, :]
    return simulate, (u.astype(np.float32), v.astype(np.float32), feed, kill)
