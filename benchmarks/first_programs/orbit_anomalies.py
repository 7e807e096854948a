"""Transits of eccentric orbits: Kepler's equation by Halley's steps in a bracket (Danby 1983)."""

import numpy as np

FIELD = "astronomy"
SIZES = {
    "tiny": dict(stars=4, times=8),
    "small": dict(stars=64, times=128),
    "large": dict(stars=2**10, times=2**11),
}
TOLERANCE = 2e-2  # how many steps are made is decided by the last digit


def make(lib, stars, times):
    jnp = lib.numpy

    def anomaly(mean, e):
        """The eccentric anomaly, safe where the derivative is small."""
        mean = jnp.mod(mean, 2 * jnp.pi)

        def going(state):
            _, low, high, change, count = state
            return (jnp.abs(change) > 1e-6) & (high - low > 1e-7) & (count < 50)

        def step(state):
            x, low, high, _, count = state
            sin, cos = jnp.sin(x), jnp.cos(x)
            f, slope, bend = x - e * sin - mean, 1 - e * cos, e * sin
            low, high = jnp.where(f < 0, x, low), jnp.where(f < 0, high, x)
            newton = f / slope
            halley = f / (slope - 0.5 * newton * bend)
            new = x - halley
            new = jnp.where((new > low) & (new < high), new, (low + high) / 2)
            return new, low, high, new - x, count + 1

        start = (mean + 0.85 * e * jnp.sign(jnp.sin(mean)), 0.0, 2 * jnp.pi, 1.0, 0)
        x, _, _, _, count = lib.lax.while_loop(going, step, start)
        return x, count

    def curve(orbit, time):
        """The place of a planet before its star, and the light that it takes away."""
        period, e, omega, tilt, radius, phase = orbit
        x, count = anomaly(2 * jnp.pi * (time / period + phase), e)
        true = 2 * jnp.arctan2(jnp.sqrt(1 + e) * jnp.sin(x / 2), jnp.sqrt(1 - e) * jnp.cos(x / 2))
        r = period ** (2 / 3) * (1 - e * jnp.cos(x))
        sky_x = -r * jnp.cos(omega + true)
        sky_y = -r * jnp.sin(omega + true) * jnp.cos(tilt)
        apart = jnp.hypot(sky_x, sky_y)
        covered = radius**2 * lib.nn.sigmoid(20 * (1 + radius - apart))
        speed = jnp.cos(true + omega) + e * jnp.cos(omega)
        return 1 - covered, speed, count

    def observe(orbits, time):
        light, speed, counts = lib.vmap(lib.vmap(curve, (None, 0)), (0, None))(orbits, time)
        return light, speed, jnp.mean(counts * 1.0), jnp.min(light, axis=1)

    rng = np.random.default_rng(0)
    low, high = [2, 0.0, 0.0, 1.4, 0.05, 0], [30, 0.9, 6.2, 1.57, 0.2, 1]
    orbits = rng.uniform(low, high, (stars, 6)).astype(np.float32)
    time = np.linspace(0, 40, times).astype(np.float32)
    return observe, (orbits, time)
