"""Gradient of a picture to the triangles that it shows, softly rasterised (Liu et al. 2019)."""

import numpy as np

FIELD = "computer graphics"
SIZES = {
    "tiny": dict(height=8, width=8, vertices=6, triangles=4),
    "small": dict(height=32, width=32, vertices=20, triangles=16),
    "large": dict(height=256, width=256, vertices=160, triangles=256),
}
TOLERANCE = {"gpu": 5e-2}  # at "highest" both agree in 3e-5; JAX is 2.6e-2 off by default


def make(lib, height, width, vertices, triangles):
    jnp = lib.numpy
    sharpness, depth_scale = 200.0, 0.05

    def project(points, camera):
        """Pinhole projection; the depth is kept."""
        angle, distance = camera
        c, s = jnp.cos(angle), jnp.sin(angle)
        turn = jnp.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
        seen = points @ turn.T + jnp.stack([jnp.zeros(()), jnp.zeros(()), distance])
        return seen[:, :2] / seen[:, 2:], seen[:, 2]

    def distance_to_edge(p, a, b):
        along = jnp.clip(jnp.dot(p - a, b - a) / (jnp.dot(b - a, b - a) + 1e-6), 0, 1)
        gap = p - a - along * (b - a)
        return jnp.dot(gap, gap)

    def cross(a, b):
        return a[0] * b[1] - a[1] * b[0]

    def coverage(p, corners):
        """Signed squared distance, and barycentric coordinates, clipped."""
        a, b, c = corners
        area = cross(b - a, c - a)
        area = jnp.where(jnp.abs(area) < 1e-4, 1e-4, area)
        weights = jnp.stack([cross(b - p, c - p), cross(c - p, a - p), cross(a - p, b - p)]) / area
        nearest = jnp.minimum(jnp.minimum(distance_to_edge(p, a, b), distance_to_edge(p, b, c)),
                              distance_to_edge(p, c, a))  # fmt: skip
        inside = jnp.all(weights > 0)
        clipped = jnp.clip(weights, 1e-3, 1)
        return jnp.where(inside, nearest, -nearest), clipped / jnp.sum(clipped)

    def pixel(p, corners, depths, colours):
        signed, weights = lib.vmap(coverage, in_axes=(None, 0))(p, corners)
        opacity = lib.nn.sigmoid(sharpness * signed)
        inverse = 1 / jnp.sum(weights / depths, axis=1)
        shade = jnp.einsum("tk,tkc->tc", weights / depths, colours) * inverse[:, None]
        scores = (1 - inverse / 4) / depth_scale + jnp.log(opacity + 1e-6)
        full = jnp.concatenate([scores, jnp.zeros(1)])
        blend = lib.nn.softmax(full)
        return blend[:-1] @ shade + blend[-1] * jnp.ones(3), 1 - jnp.prod(1 - 0.99 * opacity)

    def render(params, faces):
        flat, depth = project(params["points"], params["camera"])
        corners, depths, colours = flat[faces], depth[faces], params["colours"][faces]
        y, x = jnp.meshgrid(jnp.linspace(-1, 1, height), jnp.linspace(-1, 1, width), indexing="ij")
        pixels = jnp.stack([x, y], axis=-1)
        each = lib.vmap(lib.vmap(pixel, in_axes=(0, None, None, None)),
                        in_axes=(0, None, None, None))  # fmt: skip
        return each(pixels, corners, depths, colours)

    def loss(params, faces, target):
        picture, mask = render(params, faces)
        return jnp.mean((picture - target) ** 2) + 0.1 * jnp.mean((mask - 0.5) ** 2), picture

    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (vertices, 3)).astype(np.float32)
    faces = np.stack([rng.choice(vertices, 3, replace=False) for _ in range(triangles)])
    params = {
        "points": points,
        "colours": rng.random((vertices, 3)).astype(np.float32),
        "camera": np.array([0.3, 3.0], np.float32),
    }
    target = rng.random((height, width, 3)).astype(np.float32)
    arguments = (params, faces.astype(np.int32), target)
    return lib.value_and_grad(loss, has_aux=True), arguments
