"""Seasons of a food chain by Bogacki and Shampine's adaptive pair, lane by lane (1989)."""

import numpy as np

FIELD = "ecology"
SIZES = {
    "tiny": dict(lanes=32, years=1.0, points=3),
    "small": dict(lanes=2**10, years=8.0, points=9),
    "large": dict(lanes=2**16, years=30.0, points=31),
}
TOLERANCE = 1e-2  # some steps are taken or refused by the last digit


def make(lib, lanes, years, points):
    jnp = lib.numpy
    times = np.linspace(0, years, points).astype(np.float32)

    def slope(t, y, p):
        """Grass, hares and foxes; growth has a season."""
        grass, hares, foxes = y
        season = 1 + p["season"] * jnp.sin(2 * jnp.pi * t)
        eaten = p["bite"] * grass / (1 + p["bite"] * p["handling"] * grass)
        hunted = p["hunt"] * hares / (1 + 0.4 * hares)
        return jnp.stack([
            grass * (season * 2 - grass) - eaten * hares,
            hares * (0.8 * eaten - 0.3) - hunted * foxes,
            foxes * (0.6 * hunted - 0.15),
        ])  # fmt: skip

    def advance(state, end, p):
        def going(s):
            return (s[0] < end) & (s[4] < 500)

        def step(s):
            t, y, k1, h, count = s
            h = jnp.minimum(h, end - t)
            k2 = slope(t + h / 2, y + h / 2 * k1, p)
            k3 = slope(t + 3 * h / 4, y + 3 * h / 4 * k2, p)
            new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = slope(t + h, new, p)
            error = h * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8)
            size = jnp.sqrt(jnp.mean((error / (1e-5 + 1e-4 * jnp.abs(new))) ** 2))
            good = size <= 1
            factor = jnp.clip(0.9 * jnp.maximum(size, 1e-8) ** (-1 / 3), 0.2, 5.0)
            return (jnp.where(good, t + h, t), jnp.where(good, new, y),
                    jnp.where(good, k4, k1), h * factor, count + 1)  # fmt: skip

        _, y, k, h, count = lib.lax.while_loop(going, step, (*state, 0))
        return (end, y, k, jnp.maximum(h, 1e-3)), (y, count)

    def solve(y, p):
        start = (times[0], y, slope(times[0], y, p), 0.05)
        _, (path, counts) = lib.lax.scan(lambda s, t: advance(s, t, p), start, times[1:])
        return path, jnp.sum(counts)

    def ensemble(y, p):
        paths, counts = lib.vmap(solve)(y, p)
        return jnp.mean(paths, axis=0), jnp.std(paths, axis=0), jnp.mean(counts * 1.0)

    rng = np.random.default_rng(0)
    y = rng.uniform(0.4, 1.2, (lanes, 3)).astype(np.float32)
    p = {name: rng.uniform(*bounds, lanes).astype(np.float32) for name, bounds in {
        "season": (0.0, 0.4), "bite": (1.5, 2.5), "handling": (0.5, 0.9), "hunt": (0.5, 0.9),
    }.items()}  # fmt: skip
    return ensemble, (y, p)
