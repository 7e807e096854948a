"""Lanes: chemical oscillators by adaptive Dormand-Prince with an error controller (Hairer 1993)."""

import numpy as np

FIELD = "dynamical systems"
SIZES = {
    "tiny": dict(lanes=64, end=0.2),
    "small": dict(lanes=2**11, end=1.0),
    "large": dict(lanes=2**16, end=2.0),
}
TOLERANCE = 1e-2  # some steps are taken or refused by the last digit


def make(lib, lanes, end):
    jnp = lib.numpy
    tolerance = 1e-4
    nodes = [
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
    defect = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40],
                      np.float32)  # fmt: skip

    def slope(y, rates):
        """The Oregonator with a mild stiffness."""
        a, b, c = y
        s, q, w = rates
        return jnp.stack([s * (b - a * b + a - q * a * a), (c - b - a * b) / s, w * (a - c)])

    def solve(y, rates):
        def going(state):
            t, _, _, _, _, tries = state
            return (t < end) & (tries < 2000)

        def advance(state):
            t, h, y, k1, before, tries = state
            h = jnp.minimum(h, end - t)
            ks = [k1]
            for row in nodes:
                new = y + h * sum(c * k for c, k in zip(row, ks) if c)
                ks.append(slope(new, rates))
            error = h * jnp.tensordot(defect, jnp.stack(ks), axes=1)
            size = jnp.sqrt(jnp.mean((error / (tolerance + tolerance * jnp.abs(new))) ** 2))
            size = jnp.maximum(size, 1e-6)
            taken = size <= 1
            factor = 0.9 * size**-0.14 * before**0.08
            factor = jnp.clip(factor, 0.2, jnp.where(taken, 5.0, 1.0))
            t, y, k1, before = lib.lax.cond(
                taken,
                lambda: (t + h, new, ks[-1], size),
                lambda: (t, y, k1, before),
            )
            return t, h * factor, y, k1, before, tries + 1

        start = (0.0, 1e-3, y, slope(y, rates), 1.0, 0)
        _, _h, y, _, _, tries = lib.lax.while_loop(going, advance, start)
        return y, tries

    rng = np.random.default_rng(0)
    y = rng.uniform(0.5, 2, (lanes, 3))
    rates = rng.uniform([5, 0.005, 0.1], [20, 0.02, 0.3], (lanes, 3))
    def ensemble(y, rates):
        last, tries = lib.vmap(solve)(y, rates)
        return last, jnp.mean(tries.astype(jnp.float32))

    return ensemble, (y.astype(np.float32), rates.astype(np.float32))
