"""Waves in a rotating basin by the shallow-water equations on a staggered grid (Arakawa 1977)."""

import numpy as np

FIELD = "geophysics"
SIZES = {
    "tiny": dict(size=12, steps=4),
    "small": dict(size=96, steps=60),
    "large": dict(size=1536, steps=200),
}


def make(lib, size, steps):
    jnp = lib.numpy
    dx, dt, gravity, friction = 1.0, 0.05, 9.8, 0.02

    def west(a):
        return jnp.roll(a, 1, axis=1)

    def east(a):
        return jnp.roll(a, -1, axis=1)

    def south(a):
        return jnp.concatenate([a[:1], a[:-1]], axis=0)

    def north(a):
        return jnp.concatenate([a[1:], a[-1:]], axis=0)

    def step(state, _):
        u, v, h, depth, rotation = state
        total = depth + h
        flow_x = u * (total + east(total)) / 2
        flow_y = v * (total + north(total)) / 2
        flow_y = flow_y.at[-1].set(0.0)
        below = jnp.pad(flow_y, ((1, 0), (0, 0)))[:-1]
        h = h - dt / dx * (flow_x - west(flow_x) + flow_y - below)
        v_at_u = (v + east(v) + south(v) + east(south(v))) / 4
        u_at_v = (u + west(u) + north(u) + north(west(u))) / 4
        slow = 1 / (1 + dt * friction)
        drift = (u * (east(u) - west(u)) + v_at_u * (north(u) - south(u))) / (2 * dx)
        u_new = slow * (u + dt * (rotation * v_at_u - gravity * (east(h) - h) / dx - drift))
        drift = (u_at_v * (east(v) - west(v)) + v * (north(v) - south(v))) / (2 * dx)
        v_new = slow * (v + dt * (-rotation * u_at_v - gravity * (north(h) - h) / dx - drift))
        v_new = v_new.at[-1].set(0.0)
        energy = jnp.mean(gravity * h**2 + depth * (u_new**2 + v_new**2)) / 2
        return (u_new, v_new, h, depth, rotation), energy

    def simulate(h, depth, rotation):
        zeros = jnp.zeros_like(h)
        (u, v, h, _, _), energies = lib.lax.scan(
            step, (zeros, zeros, h, depth, rotation), None, length=steps)  # fmt: skip
        spin = (east(v) - v) / dx - (north(u) - u) / dx
        return h, u, v, spin, energies

    y, x = np.mgrid[:size, :size] / size
    h = 0.1 * np.exp(-((x - 0.3) ** 2 + (y - 0.5) ** 2) / 0.01)
    depth = 1.0 - 0.4 * np.exp(-((x - 0.7) ** 2 + (y - 0.4) ** 2) / 0.02)
    rotation = 0.05 + 0.05 * y
    return simulate, tuple(a.astype(np.float32) for a in (h, depth, rotation))
