"""Euler equations in two dimensions: MUSCL reconstruction, HLLC fluxes, two stages (Toro 2009)."""

import numpy as np

FIELD = "fluid dynamics"
SIZES = {
    "tiny": dict(n=12, steps=2),
    "small": dict(n=96, steps=4),
    "large": dict(n=1024, steps=20),
}


def make(lib, n, steps):
    jnp, lax = lib.numpy, lib.lax
    gamma = 1.4

    def primitive(u):
        rho, mx, my, energy = u
        vx, vy = mx / rho, my / rho
        return rho, vx, vy, (gamma - 1) * (energy - 0.5 * rho * (vx**2 + vy**2))

    def conserved(rho, vx, vy, p):
        return jnp.stack([rho, rho * vx, rho * vy, p / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2)])

    def flux(rho, v, w, p):
        energy = p / (gamma - 1) + 0.5 * rho * (v**2 + w**2)
        return jnp.stack([rho * v, rho * v * v + p, rho * v * w, (energy + p) * v])

    def limited(q, axis):
        back = q - jnp.roll(q, 1, axis)
        ahead = jnp.roll(q, -1, axis) - q
        small = jnp.minimum(jnp.abs(back), jnp.abs(ahead))
        return jnp.where(back * ahead > 0, jnp.sign(back) * small, 0.0)

    def hllc(left, right):
        (rl, vl, wl, pl), (rr, vr, wr, pr) = left, right
        cl, cr = jnp.sqrt(gamma * pl / rl), jnp.sqrt(gamma * pr / rr)
        sl = jnp.minimum(vl - cl, vr - cr)
        sr = jnp.maximum(vl + cl, vr + cr)
        middle = ((pr - pl + rl * vl * (sl - vl) - rr * vr * (sr - vr))
                  / (rl * (sl - vl) - rr * (sr - vr)))

        def star(r, v, w, p, s):
            energy = p / (gamma - 1) + 0.5 * r * (v**2 + w**2)
            factor = r * (s - v) / (s - middle)
            inner = energy / r + (middle - v) * (middle + p / (r * (s - v)))
            states = jnp.stack([jnp.ones_like(r), middle, w, inner])
            return factor * states - jnp.stack([r, r * v, r * w, energy])

        fl, fr = flux(*left), flux(*right)
        inside = jnp.where(middle > 0, fl + sl * star(rl, vl, wl, pl, sl),
                           fr + sr * star(rr, vr, wr, pr, sr))
        return jnp.where(sl > 0, fl, jnp.where(sr < 0, fr, inside))

    def divergence(u, axis):
        rho, vx, vy, p = primitive(u)
        state = (rho, vx, vy, p) if axis == 0 else (rho, vy, vx, p)
        slopes = [0.5 * limited(q, axis) for q in state]
        left = [q + s for q, s in zip(state, slopes)]
        right = [jnp.roll(q - s, -1, axis) for q, s in zip(state, slopes)]
        f = hllc(left, right)
        f = f if axis == 0 else f[jnp.array([0, 2, 1, 3])]
        return f - jnp.roll(f, 1, axis + 1)

    def rate(u, ratio):
        return -ratio * (divergence(u, 0) + divergence(u, 1))

    def advance(u, _):
        rho, vx, vy, p = primitive(u)
        fastest = jnp.max(jnp.sqrt(gamma * p / rho) + jnp.maximum(jnp.abs(vx), jnp.abs(vy)))
        ratio = 0.3 / fastest
        half = u + rate(u, ratio)
        new = 0.5 * (u + half + rate(half, ratio))
        return new, ratio / n

    def step(rho, vx, vy, p):
        u, dts = lax.scan(advance, conserved(rho, vx, vy, p), None, length=steps)
        return primitive(u), dts

    x, y = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
    band = 0.5 * (np.tanh((y - 0.25) / 0.05) - np.tanh((y - 0.75) / 0.05))
    fields = (1 + band, 0.1 * np.sin(4 * np.pi * y), band - 0.5 + 0.05 * np.sin(2 * np.pi * x),
              2.5 + 0.2 * np.cos(2 * np.pi * x))
    return step, tuple(f.astype(np.float32) for f in fields)
