"""A wave packet in a plane with a potential, and the gradient to the potential (2-D transforms)."""

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(side=16, steps=3),
    "small": dict(side=96, steps=20),
    "large": dict(side=512, steps=50),
}


def make(lib, side, steps):
    jnp = lib.numpy
    dt = 0.02

    def loss(potential, packet):
        k = jnp.fft.fftfreq(side, 0.25) * 2 * np.pi
        kinetic = jnp.exp(-0.5j * dt * (k[:, None] ** 2 + k[None, :] ** 2)).astype("complex64")
        half = jnp.exp(-0.5j * dt * potential)

        def step(psi, _):
            psi = half * psi
            psi = jnp.fft.ifft2(kinetic * jnp.fft.fft2(psi))
            return half * psi, None

        psi, _ = lib.lax.scan(step, packet, None, length=steps)
        return jnp.sum(jnp.abs(psi[: side // 2]) ** 2)

    rng = np.random.default_rng(0)
    x = (np.arange(side) - side / 2) * 0.25
    packet = np.exp(-(x[:, None] ** 2 + (x[None] - 1) ** 2) / 4 + 2j * x[:, None])
    potential = rng.normal(size=(side, side)) * 0.5 + 0.1 * x**2
    return lib.value_and_grad(loss), (potential.astype("f4"), packet.astype("c8"))
