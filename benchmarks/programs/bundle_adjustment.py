"""Cameras and points from images, by Levenberg-Marquardt with Schur complements (Triggs 2000)."""

import numpy as np

FIELD = "computer vision"
SIZES = {
    "tiny": dict(cameras=4, points=16, views=3, iterations=2),
    "small": dict(cameras=8, points=200, views=4, iterations=4),
    "large": dict(cameras=64, points=16384, views=6, iterations=6),
}


def make(lib, cameras, points, views, iterations):
    jnp = lib.numpy

    def rotate(axis, x):
        """Rodrigues' formula."""
        angle = jnp.sqrt(jnp.sum(axis**2) + 1e-12)
        k = axis / angle
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        return x * cos + jnp.cross(k, x) * sin + k * jnp.dot(k, x) * (1 - cos)

    def residual(camera, point, pixel):
        moved = rotate(camera[:3], point) + camera[3:6]
        projected = moved[:2] / moved[2]
        r2 = jnp.sum(projected**2)
        error = camera[6] * (1 + camera[7] * r2) * projected - pixel
        return error / (1 + jnp.sum(error**2)) ** 0.25  # few outliers weigh little

    def every(f):
        return lib.vmap(lib.vmap(f, in_axes=(0, None, 0)))

    def cost(cams, xs, seen, pixels):
        return 0.5 * jnp.sum(every(residual)(cams[seen], xs, pixels) ** 2)

    def propose(cams, xs, damping, seen, pixels):
        r = every(residual)(cams[seen], xs, pixels)  # points, views, 2
        a, b = every(lib.jacfwd(residual, argnums=(0, 1)))(cams[seen], xs, pixels)
        u = jnp.zeros((cameras, 8, 8)).at[seen].add(jnp.einsum("pvri,pvrj->pvij", a, a))
        g_cam = jnp.zeros((cameras, 8)).at[seen].add(jnp.einsum("pvri,pvr->pvi", a, r))
        v = jnp.einsum("pvri,pvrj->pij", b, b)
        g_point = jnp.einsum("pvri,pvr->pi", b, r)
        damp = lambda m: m + damping * m * jnp.eye(m.shape[-1]) + 1e-6 * jnp.eye(m.shape[-1])
        u, v_inverse = damp(u), jnp.linalg.inv(damp(v))
        w = jnp.einsum("pvri,pvrj->pvij", a, b)  # points, views, 8, 3
        w_v = jnp.einsum("pvij,pjk->pvik", w, v_inverse)
        blocks = jnp.einsum("pvik,pujk->pvuij", w_v, w)
        reduced = jnp.zeros((cameras, cameras, 8, 8))
        reduced = reduced.at[seen[:, :, None], seen[:, None, :]].add(-blocks)
        reduced = reduced.at[jnp.arange(cameras), jnp.arange(cameras)].add(u)
        right = g_cam.at[seen].add(-jnp.einsum("pvik,pk->pvi", w_v, g_point))
        dense = reduced.transpose(0, 2, 1, 3).reshape(8 * cameras, 8 * cameras)
        factor = lib.scipy.linalg.cho_factor(dense)
        move = lib.scipy.linalg.cho_solve(factor, right.reshape(-1)).reshape(cameras, 8)
        back = g_point - jnp.einsum("pvij,pvi->pj", w, move[seen])
        return cams - move, xs - jnp.einsum("pij,pj->pi", v_inverse, back)

    def solve(cams, xs, seen, pixels):
        def iterate(state, _):
            cams, xs, damping, before = state
            new_cams, new_xs = propose(cams, xs, damping, seen, pixels)
            after = cost(new_cams, new_xs, seen, pixels)
            better = after < before
            cams, xs = jnp.where(better, new_cams, cams), jnp.where(better, new_xs, xs)
            damping = jnp.where(better, damping / 3, damping * 4)
            before = jnp.where(better, after, before)
            return (cams, xs, damping, before), before

        start = (cams, xs, jnp.float32(1e-2), cost(cams, xs, seen, pixels))
        with lib.default_matmul_precision("highest"):
            (cams, xs, _, _), costs = lib.lax.scan(iterate, start, length=iterations)
        return cams, xs, costs

    rng = np.random.default_rng(0)
    xs = rng.uniform(-1, 1, (points, 3))
    cams = np.zeros((cameras, 8))
    cams[:, :3] = 0.3 * rng.standard_normal((cameras, 3))
    cams[:, 3:6] = rng.uniform(-0.3, 0.3, (cameras, 3))
    cams[:, 5] += 5
    cams[:, 6:] = [1.0, 0.02]
    seen = np.argsort(rng.random((points, cameras)), axis=1)[:, :views]
    axis, x = cams[seen][..., :3], xs[:, None]
    angle = np.linalg.norm(axis, axis=-1, keepdims=True)
    k, cos, sin = axis / angle, np.cos(angle), np.sin(angle)
    x = x * cos + np.cross(k, x) * sin + k * (k * x).sum(-1, keepdims=True) * (1 - cos)
    x = x + cams[seen][..., 3:6]
    flat = x[..., :2] / x[..., 2:]
    pixels = flat * (1 + 0.02 * (flat**2).sum(-1, keepdims=True))
    pixels += 2e-3 * rng.standard_normal(pixels.shape)
    cams += 0.02 * rng.standard_normal(cams.shape)
    xs += 0.05 * rng.standard_normal(xs.shape)
    floats = (z.astype(np.float32) for z in (cams, xs, pixels))
    cams, xs, pixels = floats
    return solve, (cams, xs, seen.astype(np.int32), pixels)
