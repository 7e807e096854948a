"""An image from magnitudes of its transform, by error reduction (Fienup 1982)."""

import numpy as np

FIELD = "imaging"
SIZES = {
    "tiny": dict(side=16, steps=3),
    "small": dict(side=128, steps=20),
    "large": dict(side=1024, steps=50),
}


def make(lib, side, steps):
    jnp = lib.numpy

    def retrieve(magnitude, support, guess):
        def step(_, image):
            spectrum = jnp.fft.fft2(image)
            spectrum = magnitude * jnp.exp(1j * jnp.angle(spectrum))
            image = jnp.fft.ifft2(spectrum).real
            return jnp.where(support & (image > 0), image, 0.0).astype("complex64")

        return lib.lax.fori_loop(0, steps, step, guess).real

    rng = np.random.default_rng(0)
    support = np.zeros((side, side), bool)
    support[side // 4:3 * side // 4, side // 4:3 * side // 4] = True
    image = rng.uniform(0, 1, (side, side)) * support
    guess = (image + 0.05 * rng.normal(size=image.shape) * support).astype("c8")
    return retrieve, (np.abs(np.fft.fft2(image)).astype("f4"), support, guess)
