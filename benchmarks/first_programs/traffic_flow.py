"""Cars on a ring road by the second-order model of Aw, Rascle and Zhang (2000), finite volumes."""

import numpy as np

FIELD = "transport"
SIZES = {
    "tiny": dict(roads=2, cells=16, steps=4),
    "small": dict(roads=8, cells=256, steps=80),
    "large": dict(roads=256, cells=2**12, steps=400),
}


def make(lib, roads, cells, steps):
    jnp = lib.numpy
    dx, dt, relax = 1.0, 0.4, 5.0

    def pressure(density):
        return density**1.5 / 1.5

    def speed_wanted(density):
        return 1 - jnp.exp(1 - jnp.exp(0.6 * (1 / jnp.maximum(density, 0.05) - 1)))

    def limited(q):
        """Slopes of van Leer, without new extrema."""
        left, right = q - jnp.roll(q, 1), jnp.roll(q, -1) - q
        both = left * right
        return jnp.where(both > 0, 2 * both / jnp.where(both > 0, left + right, 1.0), 0.0)

    def fluxes(density, momentum):
        speed = momentum / density - pressure(density)
        return jnp.stack([density * speed, momentum * speed]), speed

    def road(density, speed, ramp):
        momentum = density * (speed + pressure(density))

        def step(state, n):
            q = jnp.stack([jnp.maximum(state[0], 1e-3), state[1]])
            slopes = lib.vmap(limited)(q)
            below, above = q + slopes / 2, jnp.roll(q - slopes / 2, -1, axis=1)
            f_below, v_below = fluxes(below[0], below[1])
            f_above, v_above = fluxes(above[0], above[1])
            fast = jnp.maximum(jnp.abs(v_below) + below[0]**0.5, jnp.abs(v_above) + above[0]**0.5)
            flux = (f_below + f_above) / 2 - fast * (above - below) / 2
            q = q - dt / dx * (flux - jnp.roll(flux, 1, axis=1))
            density, v = q[0], q[1] / q[0] - pressure(q[0])
            density = density + dt * ramp * jnp.where(n % 20 < 10, 0.004, -0.004)
            v = v + dt / relax * (speed_wanted(density) - v)
            q = jnp.stack([density, density * (v + pressure(density))])
            return q, (jnp.mean(density * v), jnp.min(v))

        q, (flow, slowest) = lib.lax.scan(step, jnp.stack([density, momentum]), jnp.arange(steps))
        v = q[1] / q[0] - pressure(q[0])
        return q[0], v, flow, slowest

    def simulate(density, speed, ramp):
        return lib.vmap(road)(density, speed, ramp)

    x = np.arange(cells) / cells
    rng = np.random.default_rng(0)
    phase = rng.uniform(0, 1, (roads, 1))
    density = 0.4 + 0.15 * np.sin(2 * np.pi * (x + phase)) + 0.05 * np.sin(14 * np.pi * x)
    speed = 0.5 + 0.1 * np.cos(2 * np.pi * (x - phase))
    ramp = np.exp(-((x - phase) ** 2) / 0.002)
    return simulate, tuple(a.astype(np.float32) for a in (density, speed, ramp))
