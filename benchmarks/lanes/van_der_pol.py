"""Van der Pol oscillators to ends of their own, in adaptive steps (Bogacki and Shampine 1989)."""

import numpy as np

FIELD = "dynamical systems"
SIZES = {
    "tiny": dict(lanes=64),
    "small": dict(lanes=2**14),
    "large": dict(lanes=2**16),
}
TOLERANCE = 1e-2  # of how many steps, too: some are taken or refused by the last digit
UNROLL = 4


def make(lib, lanes):
    jnp = lib.numpy
    tolerance = 1e-4

    def solve(start, mu, end):
        def slope(y):
            return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

        def going(state):
            return state[0] < end

        def advance(state):
            t, h, y, k1, steps = state
            h = jnp.minimum(h, end - t)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + 3 * h / 4 * k2)
            new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = slope(new)
            error = h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)
            scale = tolerance * (1 + jnp.maximum(jnp.abs(y), jnp.abs(new)))
            size = jnp.sqrt(jnp.mean((error / scale) ** 2))
            taken = size <= 1
            t = jnp.where(taken, t + h, t)
            y, k1 = jnp.where(taken, new, y), jnp.where(taken, k4, k1)
            factor = jnp.clip(0.9 * jnp.maximum(size, 1e-8) ** (-1 / 3), 0.2, 5.0)
            return t, h * factor, y, k1, steps + 1

        _, _, y, _, steps = lib.lax.while_loop(going, advance, (0.0, 0.01, start, slope(start), 0))
        return y, steps

    rng = np.random.default_rng(0)
    start = rng.uniform(-2, 2, (lanes, 2)).astype(np.float32)
    mu = rng.uniform(0.5, 5, lanes).astype(np.float32)
    end = rng.uniform(1, 20, lanes).astype(np.float32)
    return lib.vmap(solve), (start, mu, end)


def outputs(lanes):
    """The last states, and how many steps were tried."""
    return [((lanes, 2), np.float32), ((lanes,), np.int32)]


BY_HAND = r"""
LANE real acceleration(real mu, real x, real v) { return mu * (1.0f - x * x) * v - x; }

LANE void lane(int i, const float *start, const float *mu_of, const float *end_of, float *last,
               int *steps_of) {
    real x = load(start, i, 2, 0), v = load(start, i, 2, 1);
    real mu = load(mu_of, i), end = load(end_of, i);
    real t = 0.0f, h = 0.01f, a = acceleration(mu, x, v);
    whole steps = 0;
    mask going = t < end;
    while (any_lane(going)) {
        h = smallest(h, end - t);
        real x2 = x + 0.5f * h * v, v2 = v + 0.5f * h * a, a2 = acceleration(mu, x2, v2);
        real x3 = x + 0.75f * h * v2, v3 = v + 0.75f * h * a2, a3 = acceleration(mu, x3, v3);
        real xn = x + h * ((2.0f / 9) * v + (1.0f / 3) * v2 + (4.0f / 9) * v3);
        real vn = v + h * ((2.0f / 9) * a + (1.0f / 3) * a2 + (4.0f / 9) * a3);
        real an = acceleration(mu, xn, vn);
        real ex = (-5.0f / 72) * v + (1.0f / 12) * v2 + (1.0f / 9) * v3 - (1.0f / 8) * vn;
        real ev = (-5.0f / 72) * a + (1.0f / 12) * a2 + (1.0f / 9) * a3 - (1.0f / 8) * an;
        ex = h * ex / (1e-4f * (1.0f + largest(magnitude(x), magnitude(xn))));
        ev = h * ev / (1e-4f * (1.0f + largest(magnitude(v), magnitude(vn))));
        real square = 0.5f * (ex * ex + ev * ev);
        mask taken = going & (square <= 1.0f);
        t = select(taken, t + h, t);
        x = select(taken, xn, x);
        v = select(taken, vn, v);
        a = select(taken, an, a);
        steps = select(going, steps + 1, steps);
        // the size of the error to the power of -1/3, the size being a root
        real factor = 0.9f * exponential((-1.0f / 6) * logarithm(largest(square, 1e-16f)));
        h = select(going, h * smallest(largest(factor, 0.2f), 5.0f), h);
        going = t < end;
    }
    store(last, i, x, 2, 0);
    store(last, i, v, 2, 1);
    store(steps_of, i, steps);
}
"""
