"""A step of maximum likelihood for a neural spline flow (Durkan et al. 2019)."""

import numpy as np

FIELD = "flows"
SIZES = {
    "tiny": dict(batch=16, dims=4, width=16, bins=4, layers=2),
    "small": dict(batch=256, dims=6, width=64, bins=8, layers=3),
    "large": dict(batch=8192, dims=32, width=256, bins=8, layers=6),
}
TOLERANCE = {"gpu": 3e-2}  # where rounding moves a point to another bin, its gradient jumps


def make(lib, batch, dims, width, bins, layers):
    jnp, nn = lib.numpy, lib.nn
    half, bound, least = dims // 2, 4.0, 1e-3

    def knots(logits):
        sizes = least + (1 - least * bins) * nn.softmax(logits, axis=-1)
        edges = jnp.pad(jnp.cumsum(sizes, axis=-1), [(0, 0)] * (sizes.ndim - 1) + [(1, 0)])
        edges = bound * (2 * edges - 1)
        return edges, jnp.diff(edges, axis=-1)

    def spline(x, theta):
        """Monotonic rational-quadratic splines, linear outside of [-bound, bound]."""
        logits_x, logits_y, slopes = jnp.split(theta, [bins, 2 * bins], axis=-1)
        edges_x, widths = knots(logits_x)
        edges_y, heights = knots(logits_y)
        slopes = jnp.pad(least + nn.softplus(slopes), ((0, 0), (0, 0), (1, 1)), constant_values=1.0)
        inside = jnp.abs(x) < bound
        z = jnp.clip(x, -bound, bound)
        where = jnp.sum(z[..., None] >= edges_x[..., 1:-1], axis=-1, keepdims=True)

        def pick(table, offset=0):
            return jnp.take_along_axis(table, where + offset, axis=-1)[..., 0]

        w, h, left, right = pick(widths), pick(heights), pick(slopes), pick(slopes, 1)
        slope = h / w
        t = (z - pick(edges_x)) / w
        s = t * (1 - t)
        below = slope + (left + right - 2 * slope) * s
        y = pick(edges_y) + h * (slope * t**2 + left * s) / below
        above = slope**2 * (right * t**2 + 2 * slope * s + left * (1 - t) ** 2)
        log_det = jnp.log(above) - 2 * jnp.log(below)
        return jnp.where(inside, y, x), jnp.where(inside, log_det, 0.0)

    def log_density(params, x):
        log_det = 0.0
        for p in params:
            x = x[:, p["order"]]
            fixed, moved = x[:, :half], x[:, half:]
            h = nn.silu(fixed @ p["w1"] + p["b1"])
            h = h + nn.silu(h @ p["w2"] + p["b2"])
            theta = (h @ p["w3"] + p["b3"]).reshape(-1, dims - half, 3 * bins - 1)
            moved, each = spline(moved, theta)
            x = jnp.concatenate([fixed, moved], axis=1)
            log_det = log_det + jnp.sum(each, axis=1)
        return jnp.sum(lib.scipy.stats.norm.logpdf(x), axis=1) + log_det

    def step(weights, orders, x):
        def loss(weights):
            params = [w | {"order": order} for w, order in zip(weights, orders)]
            return -jnp.mean(log_density(params, x))

        value, grads = lib.value_and_grad(loss)(weights)
        return value, grads, lib.tree.map(lambda w, g: w - 1e-2 * g, weights, grads)

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    out = (dims - half) * (3 * bins - 1)
    weights = [
        {
            "w1": normal(half, width), "b1": 0.1 * normal(width),
            "w2": normal(width, width), "b2": np.zeros(width, np.float32),
            "w3": 0.2 * normal(width, out), "b3": np.zeros(out, np.float32),
        }
        for _ in range(layers)
    ]  # fmt: skip
    orders = [rng.permutation(dims).astype(np.int32) for _ in range(layers)]
    angle = rng.uniform(0, 2 * np.pi, (batch, 1))
    x = 2 * np.sin(angle * np.arange(1, dims + 1)) + 0.3 * rng.standard_normal((batch, dims))
    return step, (weights, orders, x.astype(np.float32))
