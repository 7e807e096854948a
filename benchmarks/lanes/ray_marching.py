"""An image of spheres, a ring and a floor with shadows, by sphere tracing (Hart 1996)."""

import numpy as np

FIELD = "ray tracing"
SIZES = {
    "tiny": dict(pixels=32, spheres=2),
    "small": dict(pixels=512, spheres=4),
    "large": dict(pixels=2048, spheres=6),
}
TOLERANCE = 2e-2  # a pixel at an edge may be on either side
AXES, UNROLL = 2, 2


def make(lib, pixels, spheres):
    jnp = lib.numpy
    far, near, most = 12.0, 1e-3, 96
    eye = np.array([0.0, 0.6, -4.0], np.float32)
    light = np.array([0.48, 0.8, -0.36], np.float32)

    def distance(p, centers, radii):
        balls = jnp.min(jnp.sqrt(jnp.sum((p - centers) ** 2, axis=1)) - radii)
        around = jnp.sqrt(p[0] ** 2 + p[2] ** 2) - 1.6
        ring = jnp.sqrt(around**2 + p[1] ** 2) - 0.2
        return jnp.minimum(jnp.minimum(balls, ring), p[1] + 1.0)

    def march(origin, direction, scene):
        def going(state):
            t, d, count = state
            return (d > near) & (t < far) & (count < most)

        def advance(state):
            t, _, count = state
            d = distance(origin + t * direction, *scene)
            return t + d, d, count + 1

        return lib.lax.while_loop(going, advance, (0.05, 1.0, 0))

    def pixel(y, x, scene):
        direction = jnp.array([x, y, 1.5]) / jnp.sqrt(x**2 + y**2 + 1.5**2)
        t, _, count = march(eye, direction, scene)
        p = eye + t * direction
        normal = lib.grad(distance)(p, *scene)
        away, _, _ = march(p + 0.02 * normal, light, scene)
        lit = jnp.where(away < far, 0.0, jnp.maximum(jnp.sum(normal * light), 0.0))
        return jnp.where(t < far, 0.1 + 0.9 * lit, 0.0), count

    def image(y, x, centers, radii):
        row = lib.vmap(pixel, in_axes=(None, 0, None))
        return lib.vmap(row, in_axes=(0, None, None))(y, x, (centers, radii))

    rng = np.random.default_rng(0)
    y = np.linspace(0.9, -0.9, pixels, dtype=np.float32)
    x = np.linspace(-0.9, 0.9, pixels, dtype=np.float32)
    centers = rng.uniform([-1.5, -0.6, -1.0], [1.5, 1.0, 1.5], (spheres, 3)).astype(np.float32)
    radii = rng.uniform(0.2, 0.5, spheres).astype(np.float32)
    return image, (y, x, centers, radii)


def outputs(pixels, spheres):
    """Brightness, and the steps of the ray from the eye."""
    return [((pixels, pixels), np.float32), ((pixels, pixels), np.int32)]


BY_HAND = r"""
struct vector3 { real x, y, z; };

// Distance of a point to the scene; with `normal`, its gradient too.
LANE real distance_to(vector3 p, const float *centers, const float *radii, vector3 *normal) {
    real best = p.y + 1.0f;
    if (normal) *normal = {0.0f, 1.0f, 0.0f};
    real flat = square_root(p.x * p.x + p.z * p.z), around = flat - 1.6f;
    real tube = square_root(around * around + p.y * p.y), ring = tube - 0.2f;
    if (normal) {
        mask closer = ring < best;
        real scale = around / (tube * flat);
        normal->x = select(closer, scale * p.x, normal->x);
        normal->y = select(closer, p.y / tube, normal->y);
        normal->z = select(closer, scale * p.z, normal->z);
    }
    best = smallest(ring, best);
    UNROLLED
    for (int s = 0; s < SPHERES; s++) {
        real x = p.x - centers[3 * s], y = p.y - centers[3 * s + 1], z = p.z - centers[3 * s + 2];
        real length = square_root(x * x + y * y + z * z), ball = length - radii[s];
        if (normal) {
            mask closer = ball < best;
            real scale = 1.0f / length;
            normal->x = select(closer, scale * x, normal->x);
            normal->y = select(closer, scale * y, normal->y);
            normal->z = select(closer, scale * z, normal->z);
        }
        best = smallest(ball, best);
    }
    return best;
}

LANE vector3 along(vector3 p, real t, vector3 d) {
    return {p.x + t * d.x, p.y + t * d.y, p.z + t * d.z};
}

LANE real march(vector3 origin, vector3 direction, mask going, const float *centers,
                const float *radii, whole *count) {
    real t = 0.05f;
    for (int step = 0; step < 96 && any_lane(going); step++) {
        real d = distance_to(along(origin, t, direction), centers, radii, 0);
        t = select(going, t + d, t);
        *count = select(going, *count + 1, *count);
        going &= (d > 1e-3f) & (t < 12.0f);
    }
    return t;
}

LANE void lane(int i, const float *y_of, const float *x_of, const float *centers,
               const float *radii, float *image, int *counts) {
#ifdef __CUDACC__
    // a warp has 8 x 4 pixels, whose rays go alike
    int tile = i / 32, within = i % 32;
    int column = tile % (PIXELS / 8) * 8 + within % 8, row = tile / (PIXELS / 8) * 4 + within / 8;
#else
    int column = i % PIXELS, row = i / PIXELS;
#endif
    real x = load(x_of, column), y = y_of[row];
    real scale = 1.0f / square_root(x * x + y * y + 2.25f);
    vector3 eye = {0.0f, 0.6f, -4.0f}, light = {0.48f, 0.8f, -0.36f}, normal;
    vector3 direction = {x * scale, y * scale, 1.5f * scale};
    whole count = 0, unused = 0;
    real t = march(eye, direction, x == x, centers, radii, &count);
    vector3 p = along(eye, t, direction);
    mask hit = t < 12.0f;
    real brightness = 0.0f;
    if (any_lane(hit)) {
        distance_to(p, centers, radii, &normal);
        real facing = normal.x * light.x + normal.y * light.y + normal.z * light.z;
        // what faces away from the light is dark without a look
        real away = march(along(p, 0.02f, normal), light, hit & (facing > 0.0f), centers, radii,
                          &unused);
        real lit = select(away < 12.0f, 0.0f, largest(facing, 0.0f));
        brightness = select(hit, 0.1f + 0.9f * lit, 0.0f);
    }
    store(image, row * PIXELS + column, brightness);
    store(counts, row * PIXELS + column, count);
}
"""
