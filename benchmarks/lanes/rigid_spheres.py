"""Rigid spheres in a box, from collision to collision (Alder and Wainwright 1959)."""

import numpy as np

FIELD = "statistical mechanics"
SIZES = {
    "tiny": dict(lanes=64, time=1),
    "small": dict(lanes=2**15, time=2),
    "large": dict(lanes=2**18, time=2),
}
TOLERANCE = 3e-2  # errors grow tenfold at a collision
UNROLL = 2


def make(lib, lanes, time):
    jnp = lib.numpy
    radius, end = 0.1, float(time)
    first, second = np.triu_indices(4, 1)

    def next_event(q, v):
        """Which of the 6 pairs and 12 walls collides first, and when."""
        apart, speed = q[first] - q[second], v[first] - v[second]
        along, square = jnp.sum(apart * speed, axis=1), jnp.sum(speed**2, axis=1)
        inner = along**2 - square * (jnp.sum(apart**2, axis=1) - 4 * radius**2)
        meets = (along < 0) & (inner > 0)
        pairs = (-along - jnp.sqrt(jnp.where(meets, inner, 1.0))) / jnp.where(meets, square, 1.0)
        way = jnp.where(v > 0, 1 - radius - q, radius - q)
        walls = jnp.where(v == 0, jnp.inf, way / jnp.where(v == 0, 1.0, v))
        times = jnp.concatenate([jnp.where(meets, pairs, jnp.inf), walls.ravel()])
        which = jnp.argmin(times)
        return which, times[which]

    def meet(which, q, v):
        i, j = jnp.asarray(first)[which], jnp.asarray(second)[which]
        normal = (q[i] - q[j]) / (2 * radius)
        impulse = jnp.sum((v[i] - v[j]) * normal) * normal
        return v.at[i].add(-impulse).at[j].add(impulse)

    def bounce(which, q, v):
        return jnp.where(jnp.arange(12).reshape(4, 3) == which - 6, -v, v)

    def run(q, v):
        def going(state):
            return state[0] < end

        def advance(state):
            t, q, v, count = state
            which, wait = next_event(q, v)
            over = t + wait >= end
            q = q + jnp.where(over, end - t, wait) * v
            turned = lib.lax.cond(which < 6, meet, bounce, which, q, v)
            v = jnp.where(over, v, turned)
            return jnp.where(over, end, t + wait), q, v, count + 1

        _, q, v, count = lib.lax.while_loop(going, advance, (0.0, q, v, 0))
        return q, v, count

    rng = np.random.default_rng(0)
    corners = np.array([[1, 1, 1], [1, 3, 3], [3, 1, 3], [3, 3, 1]]) / 4
    q = (corners + rng.uniform(-0.1, 0.1, (lanes, 4, 3))).astype(np.float32)
    v = rng.normal(0, 0.6, (lanes, 4, 3)).astype(np.float32)
    return lib.vmap(run), (q, v)


def outputs(lanes, time):
    """Places and velocities at the end, and the number of events."""
    return [((lanes, 4, 3), np.float32)] * 2 + [((lanes,), np.int32)]


BY_HAND = r"""
LANE real dot(const real *a, const real *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

LANE void lane(int i, const float *places, const float *velocities, float *last_places,
               float *last_velocities, int *counts) {
    const float radius = 0.1f, end = TIME;
    real q[4][3], v[4][3];
    UNROLLED
    for (int s = 0; s < 4; s++) {
        UNROLLED
        for (int k = 0; k < 3; k++) {
            q[s][k] = load(places, i, 12, 3 * s + k);
            v[s][k] = load(velocities, i, 12, 3 * s + k);
        }
    }
    real t = 0.0f;
    whole count = 0;
    mask going = t < end;
    while (any_lane(going)) {
        real wait = 1e30f;
        whole which = 0;
        int pair = 0;
        UNROLLED
        for (int a = 0; a < 4; a++) {
            UNROLLED
            for (int b = a + 1; b < 4; b++) {
                real apart[3], speed[3];
                UNROLLED
                for (int k = 0; k < 3; k++) {
                    apart[k] = q[a][k] - q[b][k];
                    speed[k] = v[a][k] - v[b][k];
                }
                real along = dot(apart, speed), square = dot(speed, speed);
                real inner = along * along - square * (dot(apart, apart) - 4 * radius * radius);
                mask meets = (along < 0.0f) & (inner > 0.0f);
                real when = (-along - square_root(largest(inner, 0.0f))) / square;
                mask sooner = meets & (when < wait);
                wait = select(sooner, when, wait);
                which = select(sooner, whole(pair), which);
                pair++;
            }
        }
        UNROLLED
        for (int s = 0; s < 4; s++) {
            UNROLLED
            for (int k = 0; k < 3; k++) {
                real way = select(v[s][k] > 0.0f, (1 - radius) - q[s][k], radius - q[s][k]);
                real when = way / v[s][k];
                mask sooner = (when < wait) & (v[s][k] != 0.0f);
                wait = select(sooner, when, wait);
                which = select(sooner, whole(6 + 3 * s + k), which);
            }
        }
        mask over = t + wait >= end, meets = going & !over & (which < 6);
        real move = select(going, select(over, end - t, wait), 0.0f);
        UNROLLED
        for (int s = 0; s < 4; s++) {
            UNROLLED
            for (int k = 0; k < 3; k++) q[s][k] = q[s][k] + move * v[s][k];
        }
        if (any_lane(meets)) {
            real apart[3] = {0.0f, 0.0f, 0.0f}, speed[3] = {0.0f, 0.0f, 0.0f};
            pair = 0;
            UNROLLED
            for (int a = 0; a < 4; a++) {
                UNROLLED
                for (int b = a + 1; b < 4; b++) {
                    mask here = which == whole(pair);
                    UNROLLED
                    for (int k = 0; k < 3; k++) {
                        apart[k] = select(here, q[a][k] - q[b][k], apart[k]);
                        speed[k] = select(here, v[a][k] - v[b][k], speed[k]);
                    }
                    pair++;
                }
            }
            real strength = select(meets, dot(apart, speed) * (1 / (4 * radius * radius)), 0.0f);
            pair = 0;
            UNROLLED
            for (int a = 0; a < 4; a++) {
                UNROLLED
                for (int b = a + 1; b < 4; b++) {
                    real here = select(which == whole(pair), strength, 0.0f);
                    UNROLLED
                    for (int k = 0; k < 3; k++) {
                        v[a][k] = v[a][k] - here * apart[k];
                        v[b][k] = v[b][k] + here * apart[k];
                    }
                    pair++;
                }
            }
        }
        mask bounces = going & !over;
        UNROLLED
        for (int s = 0; s < 4; s++) {
            UNROLLED
            for (int k = 0; k < 3; k++)
                v[s][k] = select(bounces & (which == whole(6 + 3 * s + k)), -v[s][k], v[s][k]);
        }
        t = select(going, select(over, end, t + wait), t);
        count = select(going, count + 1, count);
        going = t < end;
    }
    UNROLLED
    for (int s = 0; s < 4; s++) {
        UNROLLED
        for (int k = 0; k < 3; k++) {
            store(last_places, i, q[s][k], 12, 3 * s + k);
            store(last_velocities, i, v[s][k], 12, 3 * s + k);
        }
    }
    store(counts, i, count);
}
"""
