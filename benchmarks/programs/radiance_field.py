"""A step of training a neural radiance field, coarse and fine (Mildenhall et al. 2020: NeRF)."""

import numpy as np

FIELD = "rendering"
SIZES = {
    "tiny": dict(rays=6, coarse=6, fine=6, width=16, bands=2),
    "small": dict(rays=64, coarse=16, fine=16, width=32, bands=4),
    "large": dict(rays=2048, coarse=64, fine=64, width=256, bands=10),
}


def make(lib, rays, coarse, fine, width, bands):
    jnp, nn = lib.numpy, lib.nn
    near, far = 2.0, 6.0

    def encode(x):
        scaled = x[..., None, :] * 2.0 ** jnp.arange(bands)[:, None] * (jnp.pi / 4)
        waves = jnp.concatenate([jnp.sin(scaled), jnp.cos(scaled)], axis=-1)
        return jnp.concatenate([x, waves.reshape(*x.shape[:-1], -1)], axis=-1)

    def field(params, points, directions):
        x = encode(points)
        h = x
        for index, (weight, bias) in enumerate(params["trunk"]):
            h = jnp.concatenate([h, x], axis=-1) if index == 2 else h
            h = nn.softplus(h @ weight + bias)
        density = nn.softplus((h @ params["density"])[..., 0] - 1.0)
        view = jnp.broadcast_to(encode(directions)[:, None], (*h.shape[:-1], 3 + 6 * bands))
        h = nn.silu(jnp.concatenate([h @ params["feature"], view], axis=-1) @ params["view"])
        return nn.sigmoid(h @ params["colour"]), density

    def render(params, origins, directions, depths):
        points = origins[:, None] + depths[..., None] * directions[:, None]
        colours, density = field(params, points, directions)
        gaps = jnp.diff(depths, axis=-1, append=depths[:, -1:] + 0.1)
        alpha = 1.0 - jnp.exp(-density * gaps)
        passed = jnp.cumprod(1.0 - alpha + 1e-10, axis=-1)
        before = jnp.concatenate([jnp.ones((rays, 1)), passed[:, :-1]], axis=-1)
        weights = alpha * before
        return jnp.sum(weights[..., None] * colours, axis=1), weights

    def resample(key, depths, weights):
        """More depths where the coarse weights are, by the inverse of their distribution."""
        weights = lib.lax.stop_gradient(weights[:, 1:-1]) + 1e-3
        edges = 0.5 * (depths[:, 1:] + depths[:, :-1])
        cdf = jnp.cumsum(weights / weights.sum(-1, keepdims=True), axis=-1)
        cdf = jnp.pad(cdf, ((0, 0), (1, 0)))
        u = lib.random.uniform(key, (rays, fine), maxval=0.999)
        new = lib.vmap(jnp.interp)(u, cdf, edges)
        return jnp.sort(jnp.concatenate([depths, new], axis=-1), axis=-1)

    def loss(params, key, origins, directions, target):
        key_coarse, key_fine = lib.random.split(key)
        bins = jnp.linspace(near, far, coarse + 1)
        jitter = lib.random.uniform(key_coarse, (rays, coarse))
        depths = bins[:-1] + jitter * jnp.diff(bins)
        rough, weights = render(params["coarse"], origins, directions, depths)
        depths = resample(key_fine, depths, weights)
        image, _ = render(params["fine"], origins, directions, depths)
        return jnp.mean((rough - target) ** 2) + jnp.mean((image - target) ** 2), image

    def step(seed, params, origins, directions, target):
        slope = lib.value_and_grad(loss, has_aux=True)
        (value, image), grads = slope(params, lib.random.key(seed), origins, directions, target)
        return value, image, grads, lib.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    rng = np.random.default_rng(0)

    def normal(a, b):
        return (1.4 * rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)

    def network():
        size = 3 + 6 * bands
        inputs = (size, width, width + size, width)
        return {
            "trunk": [(normal(n, width), np.zeros(width, np.float32)) for n in inputs],
            "density": normal(width, 1), "feature": normal(width, width),
            "view": normal(width + size, width // 2), "colour": normal(width // 2, 3),
        }  # fmt: skip

    directions = rng.standard_normal((rays, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    origins = -4 * directions + 0.3 * rng.standard_normal((rays, 3))
    target = rng.uniform(0, 1, (rays, 3)).astype(np.float32)
    params = {"coarse": network(), "fine": network()}
    floats = (origins.astype(np.float32), directions.astype(np.float32), target)
    return step, (np.uint32(0), params, *floats)
