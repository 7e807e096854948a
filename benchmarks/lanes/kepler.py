"""Kepler's equation by Newton's method within a bracket, each lane to its own tolerance."""

import numpy as np

FIELD = "celestial mechanics"
SIZES = {
    "tiny": dict(lanes=64),
    "small": dict(lanes=2**20),
    "large": dict(lanes=2**22),
}
TOLERANCE = 1e-2  # of how many steps, too
UNROLL = 4


def make(lib, lanes):
    jnp = lib.numpy

    def solve(mean, eccentricity, tolerance):
        def going(state):
            _, _, _, change, count = state
            return (jnp.abs(change) > tolerance) & (count < 40)

        def advance(state):
            x, low, high, _, count = state
            value = x - eccentricity * jnp.sin(x) - mean
            low, high = jnp.where(value < 0, x, low), jnp.where(value < 0, high, x)
            new = x - value / (1 - eccentricity * jnp.cos(x))
            new = jnp.where((new >= low) & (new <= high), new, 0.5 * (low + high))
            return new, low, high, new - x, count + 1

        x, _, _, _, count = lib.lax.while_loop(going, advance, (mean, 0.0, np.pi, 1.0, 0))
        return x, count

    rng = np.random.default_rng(0)
    mean = rng.uniform(0, np.pi, lanes).astype(np.float32)
    eccentricity = rng.uniform(0, 0.99, lanes).astype(np.float32)
    tolerance = (10 ** rng.uniform(-5.5, -1, lanes)).astype(np.float32)
    return lib.vmap(solve), (mean, eccentricity, tolerance)


def outputs(lanes):
    """The eccentric anomalies, and the number of steps."""
    return [((lanes,), np.float32), ((lanes,), np.int32)]


BY_HAND = r"""
LANE void lane(int i, const float *means, const float *eccentricities, const float *tolerances,
               float *roots, int *counts) {
    real mean = load(means, i), e = load(eccentricities, i), tolerance = load(tolerances, i);
    real x = mean, low = 0.0f, high = 3.14159265f;
    whole count = 0;
    mask going = tolerance < 1.0f;
    for (int step = 0; step < 40 && any_lane(going); step++) {
        real sine, cosine;
        sine_cosine(x, &sine, &cosine);
        real value = x - e * sine - mean;
        mask below = value < 0.0f;
        low = select(below, x, low);
        high = select(below, high, x);
        real next = x - value / (1.0f - e * cosine);
        next = select((next >= low) & (next <= high), next, 0.5f * (low + high));
        real change = magnitude(next - x);
        x = select(going, next, x);
        count = select(going, count + 1, count);
        going &= change > tolerance;
    }
    store(roots, i, x);
    store(counts, i, count);
}
"""
