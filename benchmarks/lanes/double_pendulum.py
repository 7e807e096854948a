"""Double pendulums, whose accelerations solve a system of two equations, in steps of RK4."""

import numpy as np

FIELD = "mechanics"
SIZES = {
    "tiny": dict(lanes=64, steps=5),
    "small": dict(lanes=2**14, steps=200),
    "large": dict(lanes=2**18, steps=200),
}
UNROLL = 2


def make(lib, lanes, steps):
    jnp = lib.numpy
    gravity, dt = 9.81, 0.005

    def slope(state):
        angle, speed = state[:2], state[2:]
        sine, cosine = jnp.sin(angle[0] - angle[1]), jnp.cos(angle[0] - angle[1])
        inertia = jnp.array([[2.0, cosine], [cosine, 1.0]])
        torque = jnp.array([-sine * speed[1] ** 2 - 2 * gravity * jnp.sin(angle[0]),
                            sine * speed[0] ** 2 - gravity * jnp.sin(angle[1])])  # fmt: skip
        return jnp.concatenate([speed, jnp.linalg.solve(inertia, torque)])

    def swing(start):
        def step(_, state):
            k1 = slope(state)
            k2 = slope(state + dt / 2 * k1)
            k3 = slope(state + dt / 2 * k2)
            k4 = slope(state + dt * k3)
            return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return lib.lax.fori_loop(0, steps, step, start)

    rng = np.random.default_rng(0)
    start = rng.uniform([-2, -2, -1, -1], [2, 2, 1, 1], (lanes, 4)).astype(np.float32)
    return lib.vmap(swing), (start,)


def outputs(lanes, steps):
    """The last angles and their speeds."""
    return [((lanes, 4), np.float32)]


BY_HAND = r"""
struct state { real a, b, p, q; };

LANE state slope(state s) {
    const float gravity = 9.81f;
    real sa, ca, sb, cb;
    sine_cosine(s.a, &sa, &ca);
    sine_cosine(s.b, &sb, &cb);
    real sd = sa * cb - ca * sb, cd = ca * cb + sa * sb;
    real f = -sd * s.q * s.q - 2 * gravity * sa, g = sd * s.p * s.p - gravity * sb;
    real scale = 1.0f / (2.0f - cd * cd);
    return {s.p, s.q, (f - cd * g) * scale, (2.0f * g - cd * f) * scale};
}
LANE state moved(state s, float h, state k) {
    return {s.a + h * k.a, s.b + h * k.b, s.p + h * k.p, s.q + h * k.q};
}

LANE void lane(int i, const float *start, float *last) {
    const float dt = 0.005f;
    state s = {load(start, i, 4, 0), load(start, i, 4, 1), load(start, i, 4, 2),
               load(start, i, 4, 3)};
    for (int step = 0; step < STEPS; step++) {
        state k1 = slope(s), sum = k1;
        state k2 = slope(moved(s, dt / 2, k1));
        sum = moved(sum, 2.0f, k2);
        state k3 = slope(moved(s, dt / 2, k2));
        sum = moved(sum, 2.0f, k3);
        state k4 = slope(moved(s, dt, k3));
        s = moved(s, dt / 6, moved(sum, 1.0f, k4));
    }
    store(last, i, s.a, 4, 0);
    store(last, i, s.b, 4, 1);
    store(last, i, s.p, 4, 2);
    store(last, i, s.q, 4, 3);
}
"""
