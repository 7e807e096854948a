"""An Adam step of a Fourier neural operator on Darcy flow (Li et al. 2021)."""

import numpy as np

FIELD = "operator learning"
SIZES = {
    "tiny": dict(batch=2, side=12, width=4, modes=3, layers=2),
    "small": dict(batch=4, side=32, width=8, modes=6, layers=3),
    "large": dict(batch=16, side=128, width=32, modes=16, layers=4),
}


def make(lib, batch, side, width, modes, layers):
    jnp = lib.numpy

    def spectral(weights, x):
        """Low frequencies multiplied by complex matrices of channels."""
        spectrum = jnp.fft.rfft2(x, axes=(1, 2))
        low = jnp.einsum("bxyi,xyio->bxyo", spectrum[:, :modes, :modes], weights[0])
        high = jnp.einsum("bxyi,xyio->bxyo", spectrum[:, -modes:, :modes], weights[1])
        out = jnp.zeros((*spectrum.shape[:3], width), spectrum.dtype)
        out = out.at[:, :modes, :modes].set(low).at[:, -modes:, :modes].set(high)
        return jnp.fft.irfft2(out, s=(side, side), axes=(1, 2))

    def network(params, a):
        y, x = jnp.meshgrid(jnp.linspace(0, 1, side), jnp.linspace(0, 1, side), indexing="ij")
        grid = jnp.broadcast_to(jnp.stack([y, x], axis=-1), (batch, side, side, 2))
        h = jnp.concatenate([a[..., None], grid], axis=-1) @ params["lift"]
        for k, block in enumerate(params["blocks"]):
            weights = block["real"] + 1j * block["imag"]
            h = spectral(weights, h) + h @ block["skip"] + block["bias"]
            if k < layers - 1:
                h = lib.nn.gelu(h)
        return (lib.nn.gelu(h @ params["hidden"]) @ params["out"])[..., 0]

    def loss(params, a, u):
        difference = (network(params, a) - u).reshape(batch, -1)
        size = jnp.linalg.norm(u.reshape(batch, -1), axis=1)
        return jnp.mean(jnp.linalg.norm(difference, axis=1) / size)

    def step(params, moments, a, u):
        value, slope = lib.value_and_grad(loss)(params, a, u)
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
        second = lib.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, moments[1], slope)
        params = lib.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-3), params, first,
                              second)  # fmt: skip
        return params, (first, second), value

    rng = np.random.default_rng(0)

    def draw(*shape, scale=None):
        scale = 1 / np.sqrt(shape[-2]) if scale is None else scale
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    params = {
        "lift": draw(3, width),
        "blocks": [{"real": draw(2, modes, modes, width, width, scale=1 / width),
                    "imag": draw(2, modes, modes, width, width, scale=1 / width),
                    "skip": draw(width, width), "bias": draw(1, width)[0]}
                   for _ in range(layers)],
        "hidden": draw(width, 4 * width),
        "out": draw(4 * width, 1),
    }
    moments = tuple(lib.tree.map(np.zeros_like, params) for _ in range(2))
    a = draw(batch, side, side, scale=1) > 0
    u = draw(batch, side, side, scale=1)
    return step, (params, moments, (3 + 9 * a).astype(np.float32), u)
