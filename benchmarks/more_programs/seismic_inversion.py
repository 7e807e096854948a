"""Gradient of full-waveform inversion: elastic waves, sponge layers, checkpoints (Virieux 1986)."""

import numpy as np

FIELD = "geophysics"
SIZES = {
    "tiny": dict(shots=2, depth=16, width=20, segments=2, steps=3),
    "small": dict(shots=2, depth=48, width=64, segments=4, steps=8),
    "large": dict(shots=4, depth=256, width=384, segments=8, steps=12),
}


def make(lib, shots, depth, width, segments, steps):
    jnp = lib.numpy
    dt, dx, edge = 0.35, 1.0, max(3, min(20, depth // 6))
    near, far = 9 / 8, -1 / 24

    def forward(a, axis):
        """The derivative of the fourth order half a cell ahead."""
        return (near * (jnp.roll(a, -1, axis) - a)
                + far * (jnp.roll(a, -2, axis) - jnp.roll(a, 1, axis))) / dx  # fmt: skip

    def backward(a, axis):
        return (near * (a - jnp.roll(a, 1, axis))
                + far * (jnp.roll(a, -1, axis) - jnp.roll(a, 2, axis))) / dx  # fmt: skip

    distance = [np.minimum(np.arange(k), np.arange(k)[::-1]) for k in (depth, width)]
    gap = np.minimum(*np.meshgrid(*distance, indexing="ij"))
    sponge = np.exp(-((0.3 * np.maximum(edge - gap, 0) / edge) ** 2)).astype(np.float32)
    columns = np.linspace(edge, width - edge - 1, shots).astype(np.int32)
    receivers = np.arange(edge, width - edge)

    def propagate(params, wavelet, column):
        density, lam, mu = params["density"], params["lam"], params["mu"]

        def step(state, amplitude):
            vx, vz, xx, zz, xz = state
            vx = sponge * (vx + dt / density * (forward(xx, 1) + backward(xz, 0)))
            vz = sponge * (vz + dt / density * (backward(xz, 1) + forward(zz, 0)))
            sx, sz = backward(vx, 1), backward(vz, 0)
            xx = sponge * (xx + dt * ((lam + 2 * mu) * sx + lam * sz))
            zz = sponge * (zz + dt * ((lam + 2 * mu) * sz + lam * sx))
            xz = sponge * (xz + dt * mu * (forward(vx, 0) + forward(vz, 1)))
            xx = xx.at[edge, column].add(amplitude)
            zz = zz.at[edge, column].add(amplitude)
            return (vx, vz, xx, zz, xz), jnp.stack([vx[edge, receivers], vz[edge, receivers]])

        @lib.checkpoint
        def segment(state, amplitudes):
            return lib.lax.scan(step, state, amplitudes)

        state = tuple(jnp.zeros((depth, width)) for _ in range(5))
        _, seen = lib.lax.scan(segment, state, wavelet.reshape(segments, steps))
        return seen.reshape(segments * steps, 2, len(receivers))

    def loss(params, wavelet, recorded):
        seen = lib.vmap(propagate, in_axes=(None, None, 0))(params, wavelet, columns)
        return 0.5 * jnp.sum((seen - recorded) ** 2) / shots

    rng = np.random.default_rng(0)
    z = np.linspace(0, 1, depth)[:, None] + 0.02 * rng.standard_normal((depth, width))
    params = {
        "density": (1 + 0.2 * z).astype(np.float32),
        "lam": (1 + 0.5 * z).astype(np.float32),
        "mu": (0.6 + 0.3 * z).astype(np.float32),
    }
    t = (np.arange(segments * steps) - 6) / 4
    wavelet = ((1 - 2 * t**2) * np.exp(-(t**2))).astype(np.float32)
    recorded = 0.01 * rng.standard_normal((shots, segments * steps, 2, len(receivers)))
    return lib.value_and_grad(loss), (params, wavelet, recorded.astype(np.float32))
