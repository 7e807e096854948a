"""Vorticity of a fluid by a pseudo-spectral method, and the gradient to its start (Orszag 1971)."""

import numpy as np

FIELD = "fluids"
SIZES = {
    "tiny": dict(side=16, steps=2),
    "small": dict(side=64, steps=4),
    "large": dict(side=512, steps=20),
}


def make(lib, side, steps):
    jnp = lib.numpy
    dt, viscosity, drag = 0.01, 2e-3, 0.1
    kx = np.fft.fftfreq(side, 1 / side)[:, None].astype(np.float32)
    ky = np.fft.rfftfreq(side, 1 / side)[None, :].astype(np.float32)
    k2 = kx**2 + ky**2
    inverse = 1 / np.where(k2 == 0, 1, k2)
    dealias = ((np.abs(kx) < side / 3) & (ky < side / 3)).astype(np.float32)
    linear = -viscosity * k2 - drag
    y = 2 * np.pi * np.arange(side, dtype=np.float32) / side

    def advection(w_hat, forcing):
        psi = w_hat * inverse
        back = lambda z: jnp.fft.irfft2(z, s=(side, side))
        u, v = back(1j * ky * psi), back(-1j * kx * psi)
        slope = u * back(1j * kx * w_hat) + v * back(1j * ky * w_hat)
        return dealias * (jnp.fft.rfft2(-slope) + forcing)

    def advance(w_hat, forcing):
        """Heun's method for the advection, Crank and Nicolson's for the diffusion."""
        first = advection(w_hat, forcing)
        explicit = (1 + 0.5 * dt * linear) * w_hat
        guess = (explicit + dt * first) / (1 - 0.5 * dt * linear)
        second = advection(guess, forcing)
        return (explicit + 0.5 * dt * (first + second)) / (1 - 0.5 * dt * linear)

    def misfit(w, amplitude, observed):
        forcing = jnp.fft.rfft2(amplitude * jnp.cos(4 * y) * jnp.ones((side, 1)))

        @lib.checkpoint
        def body(w_hat, _):
            w_hat = advance(w_hat, forcing)
            weight = np.where((ky == 0) | (ky == side // 2), 1.0, 2.0).astype(np.float32)
            energy = jnp.sum(weight * jnp.abs(w_hat) ** 2 * inverse) / side**4
            return w_hat, 0.5 * energy

        w_hat, energies = lib.lax.scan(body, jnp.fft.rfft2(w), None, length=steps)
        w = jnp.fft.irfft2(w_hat, s=(side, side))
        return jnp.mean((w - observed) ** 2), (w, energies)

    rng = np.random.default_rng(0)
    smooth = np.exp(-((np.sqrt(k2) - 6) ** 2) / 8)

    def field():
        noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((side, side))) * smooth)
        return (noise / noise.std()).astype(np.float32)

    step = lib.value_and_grad(misfit, argnums=(0, 1), has_aux=True)
    return step, (field(), np.float32(2.0), field())
