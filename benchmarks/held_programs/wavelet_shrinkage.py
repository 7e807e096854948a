"""Denoising of images by soft thresholds of Daubechies wavelets, tuned by SURE (Donoho 1995)."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(images=2, n=16, levels=2),
    "small": dict(images=8, n=128, levels=4),
    "large": dict(images=256, n=512, levels=6),
}


def make(lib, images, n, levels):
    jnp = lib.numpy
    root = np.sqrt(3.0)
    low = (np.array([1 + root, 3 + root, 3 - root, 1 - root]) / (4 * np.sqrt(2))).astype("float32")
    high = (low[::-1] * np.array([1, -1, 1, -1])).astype("float32")

    def analyse(x, axis):
        parts = [jnp.roll(x, -k, axis=axis) for k in range(4)]
        even = [jnp.take(p, np.arange(0, x.shape[axis], 2), axis=axis) for p in parts]
        return sum(h * p for h, p in zip(low, even)), sum(g * p for g, p in zip(high, even))

    def synthesise(a, d, axis):
        shape = list(a.shape)
        shape[axis] *= 2

        def spread(x):
            return jnp.stack([x, jnp.zeros_like(x)], axis=axis + 1).reshape(shape)

        a, d = spread(a), spread(d)
        return sum(jnp.roll(h * a + g * d, k, axis=axis)
                   for k, (h, g) in enumerate(zip(low, high)))  # fmt: skip

    def forward(image):
        bands, a = [], image
        for _ in range(levels):
            lo, hi = analyse(a, 0)
            (a, b), (c, d) = analyse(lo, 1), analyse(hi, 1)
            bands.append((b, c, d))
        return a, bands

    def backward(a, bands):
        for b, c, d in reversed(bands):
            a = synthesise(synthesise(a, b, 1), synthesise(c, d, 1), 0)
        return a

    def shrink(x, t):
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - t, 0.0)

    def risk(log_t, bands, sigma):
        total = 0.0
        for t, level in zip(jnp.exp(log_t) * sigma, bands):
            for x in level:
                kept = jnp.abs(x) > t
                total += jnp.sum(jnp.minimum(x**2, t**2) / sigma**2 + 2 * kept - 1)
        return total / n**2

    def denoise(image, log_t):
        a, bands = forward(image)
        sigma = jnp.median(jnp.abs(bands[0][2])) / 0.6745
        value, grad = lib.value_and_grad(risk)(log_t, bands, sigma)
        log_t = log_t - 0.5 * grad
        thresholds = jnp.exp(log_t) * sigma
        clean = [tuple(shrink(x, t) for x in level) for t, level in zip(thresholds, bands)]
        return backward(a, clean), log_t, value

    def step(noisy, log_t):
        return lib.vmap(denoise, (0, None))(noisy, log_t)

    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, n)
    clean = np.sin(x)[:, None] * np.sign(np.cos(2 * x))[None]
    noisy = clean + 0.3 * rng.standard_normal((images, n, n))
    return step, (noisy.astype(np.float32), np.full(levels, 0.3, np.float32))
