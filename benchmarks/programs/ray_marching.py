"""Image of a scene of signed distances by sphere tracing (Hart 1996), and its gradient."""

import numpy as np

FIELD = "ray tracing"
SIZES = {
    "tiny": dict(pixels=12, spheres=2),
    "small": dict(pixels=48, spheres=3),
    "large": dict(pixels=512, spheres=6),
}
TOLERANCE = 1e-2  # a pixel at an edge may be on either side


def make(lib, pixels, spheres):
    jnp = lib.numpy
    light = np.array([0.5, 0.8, -0.4], np.float32) / np.sqrt(1.05, dtype=np.float32)
    eye = np.array([0.0, 0.4, -4.0], np.float32)
    far = 12.0

    def distance(scene, p):
        to_spheres = jnp.linalg.norm(p - scene["centers"], axis=1) - scene["radii"]
        blended = -0.1 * lib.nn.logsumexp(-to_spheres / 0.1)  # a smooth union
        return jnp.minimum(blended, p[1] + 1.0)  # and a floor

    def march(scene, direction):
        def going(state):
            t, d, i = state
            return (d > 1e-3) & (t < far) & (i < 96)

        def advance(state):
            t, d, i = state
            d = distance(scene, eye + t * direction)
            return t + d, d, i + 1

        t, _, _ = lib.lax.while_loop(going, advance, (0.0, 1.0, 0))
        return t

    def pixel(scene, direction):
        frozen = lib.lax.stop_gradient(scene)
        t = march(frozen, lib.lax.stop_gradient(direction))
        # one last step of Newton, which carries the derivative of the hit point to the scene
        slope = lib.grad(distance, argnums=1)(frozen, eye + t * direction)
        closing = jnp.minimum(jnp.sum(slope * direction), -0.1)
        t = t - distance(scene, eye + t * direction) / closing
        p = eye + t * direction
        normal = lib.grad(distance, argnums=1)(scene, p)
        diffuse = jnp.maximum(jnp.sum(normal * light), 0.0)
        fog = jnp.exp(-0.15 * t)
        color = scene["color"] * (0.2 + 0.8 * diffuse)
        sky = jnp.array([0.4, 0.6, 0.9])
        return jnp.where(t < far, fog * color + (1 - fog) * sky, sky)

    def loss(scene, directions, target):
        image = lib.vmap(lib.vmap(pixel, in_axes=(None, 0)), in_axes=(None, 0))(scene, directions)
        return jnp.mean((image - target) ** 2), image

    def step(scene, directions, target):
        (value, image), gradient = lib.value_and_grad(loss, has_aux=True)(scene, directions, target)
        return value, image, gradient

    rng = np.random.default_rng(0)
    scene = {
        "centers": rng.uniform([-1.5, -0.6, -1.0], [1.5, 1.0, 1.5], (spheres, 3)),
        "radii": rng.uniform(0.3, 0.7, spheres),
        "color": np.array([0.9, 0.5, 0.3]),
    }
    scene = {name: a.astype(np.float32) for name, a in scene.items()}
    v, u = np.meshgrid(
        np.linspace(0.7, -0.7, pixels), np.linspace(-0.7, 0.7, pixels), indexing="ij"
    )
    directions = np.stack([u, v, np.ones_like(u)], axis=-1)
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    target = rng.uniform(0, 1, (pixels, pixels, 3))
    return step, (scene, directions.astype(np.float32), target.astype(np.float32))
