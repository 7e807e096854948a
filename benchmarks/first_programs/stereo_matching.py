"""Depth from two cameras: costs of census windows, aggregated along paths (Hirschmueller 2008)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(height=8, width=12, shifts=4),
    "small": dict(height=48, width=64, shifts=16),
    "large": dict(height=480, width=640, shifts=96),
}


def make(lib, height, width, shifts):
    jnp = lib.numpy
    window = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if (y, x) != (0, 0)]
    gentle, sharp = 0.6, 2.4

    def census(image):
        padded = jnp.pad(image, 2, mode="edge")
        return jnp.stack([lib.lax.dynamic_slice(padded, (2 + y, 2 + x), image.shape) > image
                          for y, x in window], axis=-1)

    def costs(left, right):
        a, b = census(left), census(right)

        def shifted(d):
            moved = jnp.roll(b, d, axis=1)
            cost = jnp.mean((a != moved).astype(jnp.float32), axis=-1) * 4
            return jnp.where(jnp.arange(width) >= d, cost, 4.0)

        return jnp.stack([shifted(d) for d in range(shifts)], axis=-1)

    def path(cost, backwards):
        """Along the first axis: small changes of depth are cheap, jumps cost more."""
        def step(last, cost):
            least = jnp.min(last, axis=-1, keepdims=True)
            up = jnp.pad(last[:, 1:], ((0, 0), (0, 1)), constant_values=1e6) + gentle
            down = jnp.pad(last[:, :-1], ((0, 0), (1, 0)), constant_values=1e6) + gentle
            best = jnp.minimum(jnp.minimum(last, up), jnp.minimum(down, least + sharp))
            now = cost + best - least
            return now, now

        return lib.lax.scan(step, jnp.zeros_like(cost[0]), cost, reverse=backwards)[1]

    def match(left, right):
        cost = costs(left, right)
        total = sum(path(cost, b) for b in (False, True))
        across = jnp.swapaxes(cost, 0, 1)
        total = total + sum(jnp.swapaxes(path(across, b), 0, 1) for b in (False, True))
        best = jnp.argmin(total, axis=-1)
        near = jnp.clip(best, 1, shifts - 2)

        def at(d):
            return jnp.take_along_axis(total, d[..., None], axis=-1)[..., 0]

        low, mid, high = at(near - 1), at(near), at(near + 1)
        bend = jnp.maximum(low - 2 * mid + high, 1e-3)
        fine = jnp.where(best == near, near + jnp.clip((low - high) / (2 * bend), -0.5, 0.5), best)
        padded = jnp.pad(fine, 1, mode="edge")
        windows = jnp.stack([padded[y:y + height, x:x + width]
                             for y in range(3) for x in range(3)], axis=-1)
        smooth = jnp.median(windows, axis=-1)
        soft = jnp.sum(lib.nn.softmax(-total, axis=-1) * jnp.arange(shifts), axis=-1)
        return smooth, soft, jnp.mean(jnp.abs(smooth - soft))

    rng = np.random.default_rng(0)
    texture = rng.uniform(size=(height, width + shifts))
    texture = (texture + np.roll(texture, 1, 1) + np.roll(texture, 1, 0)) / 3
    depth = 2 + (shifts - 4) * (np.arange(height)[:, None] / height) ** 2 * np.ones(width)
    cols = np.arange(width) + depth.astype(int)
    left = texture[:, :width]
    right = np.take_along_axis(texture, np.minimum(cols, width + shifts - 1), axis=1)
    return match, (left.astype(np.float32), right.astype(np.float32))
