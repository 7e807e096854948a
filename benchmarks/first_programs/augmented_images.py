"""Random crops, turns, colours, blurs and erased parts of images, image by image (Cubuk 2020)."""

import numpy as np

FIELD = "vision"
SIZES = {
    "tiny": dict(images=2, size=12),
    "small": dict(images=16, size=48),
    "large": dict(images=512, size=224),
}


def make(lib, images, size):
    jnp = lib.numpy
    grid = (np.stack(np.mgrid[:size, :size]) - (size - 1) / 2).astype(np.float32)
    mix = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]],
                   np.float32)  # fmt: skip

    def sampled(image, y, x):
        """Bilinear, with zeros outside."""
        y0, x0 = jnp.floor(y), jnp.floor(x)

        def at(j, i):
            inside = (j >= 0) & (j < size) & (i >= 0) & (i < size)
            j = jnp.clip(j, 0, size - 1).astype(jnp.int32)
            i = jnp.clip(i, 0, size - 1).astype(jnp.int32)
            return jnp.where(inside[..., None], image[j, i], 0.0)

        a, b = (y - y0)[..., None], (x - x0)[..., None]
        top = (1 - b) * at(y0, x0) + b * at(y0, x0 + 1)
        return (1 - a) * top + a * ((1 - b) * at(y0 + 1, x0) + b * at(y0 + 1, x0 + 1))

    def warped(key, image):
        turn, zoom, shift, flip = lib.random.split(key, 4)
        angle = lib.random.uniform(turn, minval=-0.5, maxval=0.5)
        scale = jnp.exp(lib.random.uniform(zoom, minval=-0.3, maxval=0.3))
        move = lib.random.uniform(shift, (2,), minval=-4.0, maxval=4.0)
        sign = jnp.where(lib.random.bernoulli(flip), -1.0, 1.0)
        y, x = grid[0], sign * grid[1]
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        middle = (size - 1) / 2
        return sampled(image, scale * (cos * y - sin * x) + move[0] + middle,
                       scale * (sin * y + cos * x) + move[1] + middle)  # fmt: skip

    def coloured(key, image):
        light, contrast, hue = lib.random.uniform(key, (3,), minval=-1.0, maxval=1.0)
        image = image * (1 + 0.3 * light)
        image = (image - image.mean()) * (1 + 0.3 * contrast) + image.mean()
        sin, cos = jnp.sin(0.5 * hue), jnp.cos(0.5 * hue)
        one, zero = jnp.ones(()), jnp.zeros(())
        spin = jnp.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos]).reshape(3, 3)
        return image @ (jnp.linalg.inv(mix) @ spin @ mix).T

    def blurred(key, image):
        width = lib.random.uniform(key, minval=0.3, maxval=1.5)
        weights = jnp.exp(-0.5 * (jnp.arange(-2.0, 3.0) / width) ** 2)
        weights = weights / weights.sum()
        wide = jnp.pad(image, ((2, 2), (2, 2), (0, 0)), mode="reflect")
        rows = sum(weights[k] * wide[k : k + size] for k in range(5))
        return sum(weights[k] * rows[:, k : k + size] for k in range(5))

    def erased(key, image):
        centre, extent = lib.random.uniform(key, (2, 2), minval=0.1, maxval=0.5)
        away = jnp.abs(grid - size * (centre - 0.3)[:, None, None])
        hidden = jnp.all(away < size * extent[:, None, None] / 2, axis=0)
        return jnp.where(hidden[..., None], 0.5, image)

    def augment(seed, pictures):
        def each(key, image):
            first, second, third, fourth = lib.random.split(key, 4)
            image = blurred(third, coloured(second, warped(first, image)))
            return jnp.clip(erased(fourth, image), 0.0, 1.0)

        keys = lib.random.split(lib.random.key(seed), images)
        made = lib.vmap(each)(keys, pictures)
        mean, spread = made.mean(axis=(0, 1, 2)), made.std(axis=(0, 1, 2))
        return (made - mean) / (spread + 1e-3), mean, spread

    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 1, (images, size // 4, size // 4, 3))
    pictures = np.kron(coarse, np.ones((1, 4, 4, 1))).astype(np.float32)
    return augment, (np.uint32(0), pictures)
