"""Trajectories of the Lorenz system, each with its own parameter (Lorenz 1963)."""

import numpy as np

FIELD = "dynamical systems"
SIZES = {
    "tiny": dict(lanes=64, steps=10),
    "small": dict(lanes=2**14, steps=1000),
    "large": dict(lanes=2**18, steps=1000),
}
UNROLL = 4


def make(lib, lanes, steps):
    jnp = lib.numpy
    sigma, beta, dt = 10.0, 8 / 3, 0.002

    def slope(state, rho):
        x, y, z = state
        return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    def trajectory(start, rho):
        def step(state, _):
            k1 = slope(state, rho)
            k2 = slope(state + dt / 2 * k1, rho)
            k3 = slope(state + dt / 2 * k2, rho)
            k4 = slope(state + dt * k3, rho)
            return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return lib.lax.scan(step, start, None, length=steps)[0]

    rng = np.random.default_rng(0)
    start = rng.normal([1, 1, 20], 0.5, (lanes, 3)).astype(np.float32)
    rho = rng.uniform(20, 35, lanes).astype(np.float32)
    return lib.vmap(trajectory), (start, rho)


def outputs(lanes, steps):
    """The last states."""
    return [((lanes, 3), np.float32)]


BY_HAND = r"""
struct state { real x, y, z; };

LANE state slope(state s, real rho) {
    return {10.0f * (s.y - s.x), s.x * (rho - s.z) - s.y, s.x * s.y - (8.0f / 3.0f) * s.z};
}
LANE state moved(state s, float h, state k) {
    return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

LANE void lane(int i, const float *start, const float *rho_of, float *last) {
    const float dt = 0.002f;
    state s = {load(start, i, 3, 0), load(start, i, 3, 1), load(start, i, 3, 2)};
    real rho = load(rho_of, i);
    for (int step = 0; step < STEPS; step++) {
        state k1 = slope(s, rho), sum = k1;
        state k2 = slope(moved(s, dt / 2, k1), rho);
        sum = moved(sum, 2.0f, k2);
        state k3 = slope(moved(s, dt / 2, k2), rho);
        sum = moved(sum, 2.0f, k3);
        state k4 = slope(moved(s, dt, k3), rho);
        s = moved(s, dt / 6, moved(sum, 1.0f, k4));
    }
    store(last, i, s.x, 3, 0);
    store(last, i, s.y, 3, 1);
    store(last, i, s.z, 3, 2);
}
"""
