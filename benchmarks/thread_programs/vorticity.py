"""A plane flow in Fourier space, two stages a step, and its energy by wave number (Orszag 1971)."""

import numpy as np

FIELD = "fluids"
SIZES = {
    "tiny": dict(points=16, steps=2),
    "small": dict(points=256, steps=3),
    "server": dict(points=512, steps=4),
    "large": dict(points=2048, steps=10),
}


def make(lib, points, steps):
    jnp, fft = lib.numpy, lib.numpy.fft
    k = np.fft.fftfreq(points, 1 / points).astype(np.float32)[:, None]
    l = np.fft.rfftfreq(points, 1 / points).astype(np.float32)[None]
    square = k * k + l * l
    inverse = np.where(square > 0, 1 / np.maximum(square, 1), 0).astype(np.float32)
    keep = ((np.abs(k) < points / 3) & (l < points / 3)).astype(np.float32)

    def flow(vorticity):
        def rate(w):
            stream = w * inverse
            u, v = fft.irfft2(1j * l * stream), fft.irfft2(-1j * k * stream)
            wx, wy = fft.irfft2(1j * k * w), fft.irfft2(1j * l * w)
            return -keep * fft.rfft2(u * wx + v * wy) - 1e-3 * square * w

        w = fft.rfft2(vorticity)
        for _ in range(steps):
            middle = w + 0.5e-2 * rate(w)
            w = w + 1e-2 * rate(middle)
        return fft.irfft2(w), jnp.sum(jnp.abs(w) ** 2 * inverse, axis=0) / points**4

    rng = np.random.default_rng(0)
    phase = rng.standard_normal((points, points))
    smooth = np.fft.irfft2(np.fft.rfft2(phase) * np.exp(-square / 50))
    return flow, ((smooth / smooth.std()).astype(np.float32),)
