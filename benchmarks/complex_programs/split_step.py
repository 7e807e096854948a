"""A nonlinear Schroedinger equation by the split-step Fourier method (Hardin and Tappert 1973)."""

import numpy as np

FIELD = "optics"
SIZES = {
    "tiny": dict(points=64, pulses=2, steps=4),
    "small": dict(points=1024, pulses=16, steps=50),
    "large": dict(points=4096, pulses=256, steps=100),
}


def make(lib, points, pulses, steps):
    jnp = lib.numpy
    dz = 0.01

    def propagate(pulse, dispersion, gamma):
        k = jnp.fft.fftfreq(points, 0.1).astype("float32") * 2 * np.pi
        linear = jnp.exp(-0.5j * dispersion * k**2 * dz)

        def step(u, _):
            u = jnp.fft.ifft(linear * jnp.fft.fft(u))
            u = u * jnp.exp(1j * gamma * dz * jnp.abs(u) ** 2)
            return u, jnp.max(jnp.abs(u) ** 2)

        return lib.lax.scan(step, pulse, None, length=steps)

    rng = np.random.default_rng(0)
    t = (np.arange(points) - points / 2) * 0.1
    width = rng.uniform(0.5, 2, (pulses, 1))
    pulse = (1 / np.cosh(t / width) * np.exp(1j * rng.uniform(0, 6, (pulses, 1)))).astype("c8")
    ranges = rng.uniform(0.5, 1.5, (2, pulses)).astype(np.float32)
    return lib.vmap(propagate), (pulse, -ranges[0], ranges[1])
