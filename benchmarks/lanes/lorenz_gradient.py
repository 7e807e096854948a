"""Derivative of a Lorenz trajectory's end to its parameter, for many trajectories.

By hand the derivative is carried along (forward mode), which is the least work for one parameter.
"""

import numpy as np

FIELD = "dynamical systems"
SIZES = {
    "tiny": dict(lanes=64, steps=10),
    "small": dict(lanes=2**11, steps=1000),
    "large": dict(lanes=2**14, steps=1000),
}
TOLERANCE = 3e-2  # float32 of NumPy, JAX and functrans are 0.9, 0.9 and 0.8 % from float64
UNROLL = 2


def make(lib, lanes, steps):
    jnp = lib.numpy
    sigma, beta, dt = 10.0, 8 / 3, 0.002

    def slope(state, rho):
        x, y, z = state
        return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    def loss(rho, start):
        def step(state, _):
            k1 = slope(state, rho)
            k2 = slope(state + dt / 2 * k1, rho)
            k3 = slope(state + dt / 2 * k2, rho)
            k4 = slope(state + dt * k3, rho)
            return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        end, _ = lib.lax.scan(step, start, None, length=steps)
        return 0.5 * jnp.sum(end**2)

    rng = np.random.default_rng(0)
    start = rng.normal([1, 1, 20], 0.5, (lanes, 3)).astype(np.float32)
    rho = rng.uniform(20, 35, lanes).astype(np.float32)
    return lib.vmap(lib.value_and_grad(loss)), (rho, start)


def outputs(lanes, steps):
    """The losses, and their derivatives."""
    return [((lanes,), np.float32)] * 2


BY_HAND = r"""
struct state { real x, y, z, dx, dy, dz; };

LANE state slope(state s, real rho) {
    real below = rho - s.z;
    return {10.0f * (s.y - s.x), s.x * below - s.y, s.x * s.y - (8.0f / 3.0f) * s.z,
            10.0f * (s.dy - s.dx), s.dx * below + s.x * (1.0f - s.dz) - s.dy,
            s.dx * s.y + s.x * s.dy - (8.0f / 3.0f) * s.dz};
}
LANE state moved(state s, float h, state k) {
    return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z,
            s.dx + h * k.dx, s.dy + h * k.dy, s.dz + h * k.dz};
}

LANE void lane(int i, const float *rho_of, const float *start, float *losses, float *derivatives) {
    const float dt = 0.002f;
    state s = {load(start, i, 3, 0), load(start, i, 3, 1), load(start, i, 3, 2), 0.0f, 0.0f, 0.0f};
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
    store(losses, i, 0.5f * (s.x * s.x + s.y * s.y + s.z * s.z));
    store(derivatives, i, s.x * s.dx + s.y * s.dy + s.z * s.dz);
}
"""
