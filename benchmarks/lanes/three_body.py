"""Three bodies near the figure of eight (Chenciner and Montgomery 2000), by leapfrog."""

import numpy as np

FIELD = "celestial mechanics"
SIZES = {
    "tiny": dict(lanes=64, frames=2, steps=4),
    "small": dict(lanes=2**14, frames=8, steps=64),
    "large": dict(lanes=2**17, frames=8, steps=64),
}
UNROLL = 2


def make(lib, lanes, frames, steps):
    jnp = lib.numpy
    dt, softening = 0.004, 1e-2
    mass = np.array([1.0, 1.0, 1.0], np.float32)

    def acceleration(q):
        apart = q[None, :, :] - q[:, None, :]
        square = jnp.sum(apart**2, axis=-1) + softening**2
        return jnp.sum(mass[:, None] * apart * (square**-1.5)[..., None], axis=1)

    def orbit(q, v):
        def step(_, state):
            q, v, a = state
            v = v + dt / 2 * a
            q = q + dt * v
            a = acceleration(q)
            return q, v + dt / 2 * a, a

        def frame(state, _):
            state = lib.lax.fori_loop(0, steps, step, state)
            return state, state[0]

        state, film = lib.lax.scan(frame, (q, v, acceleration(q)), None, length=frames)
        return film, state[1]

    rng = np.random.default_rng(0)
    q = np.array([[0.97000436, -0.24308753], [-0.97000436, 0.24308753], [0, 0]])
    v = np.array([[0.46620369, 0.43236573], [0.46620369, 0.43236573], [-0.93240737, -0.86473146]])
    q = (q + rng.normal(0, 0.02, (lanes, 3, 2))).astype(np.float32)
    v = (v + rng.normal(0, 0.02, (lanes, 3, 2))).astype(np.float32)
    return lib.vmap(orbit), (q, v)


def outputs(lanes, frames, steps):
    """The places of each frame, and the last velocities."""
    return [((lanes, frames, 3, 2), np.float32), ((lanes, 3, 2), np.float32)]


BY_HAND = r"""
LANE void attract(const real *q, real *a) {
    UNROLLED
    for (int k = 0; k < 6; k++) a[k] = 0.0f;
    UNROLLED
    for (int body = 0; body < 3; body++) {
        int other = (body + 1) % 3;
        real x = q[2 * other] - q[2 * body], y = q[2 * other + 1] - q[2 * body + 1];
        real inverse = inverse_root(x * x + y * y + 1e-4f);
        real pull = inverse * inverse * inverse;
        a[2 * body] = a[2 * body] + pull * x;
        a[2 * body + 1] = a[2 * body + 1] + pull * y;
        a[2 * other] = a[2 * other] - pull * x;
        a[2 * other + 1] = a[2 * other + 1] - pull * y;
    }
}

LANE void lane(int i, const float *places, const float *velocities, float *film, float *last) {
    const float dt = 0.004f;
    real q[6], v[6], a[6];
    UNROLLED
    for (int k = 0; k < 6; k++) {
        q[k] = load(places, i, 6, k);
        v[k] = load(velocities, i, 6, k);
    }
    attract(q, a);
    for (int frame = 0; frame < FRAMES; frame++) {
        for (int step = 0; step < STEPS; step++) {
            UNROLLED
            for (int k = 0; k < 6; k++) {
                v[k] = v[k] + (dt / 2) * a[k];
                q[k] = q[k] + dt * v[k];
            }
            attract(q, a);
            UNROLLED
            for (int k = 0; k < 6; k++) v[k] = v[k] + (dt / 2) * a[k];
        }
        UNROLLED
        for (int k = 0; k < 6; k++) store(film, i, q[k], 6 * FRAMES, 6 * frame + k);
    }
    UNROLLED
    for (int k = 0; k < 6; k++) store(last, i, v[k], 6, k);
}
"""
