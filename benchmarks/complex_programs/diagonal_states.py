"""A layer of diagonal complex state spaces (S4D: Gu et al. 2022), its kernel and its gradient."""

import numpy as np

FIELD = "sequence models"
SIZES = {
    "tiny": dict(batch=2, length=16, width=4, states=4),
    "small": dict(batch=4, length=512, width=32, states=32),
    "large": dict(batch=16, length=4096, width=256, states=32),
}


def make(lib, batch, length, width, states):
    jnp = lib.numpy

    def kernel(params):
        a = -jnp.exp(params["decay"]) + 1j * params["frequency"]
        dt = jnp.exp(params["step"])[:, None]
        weights = (params["c_re"] + 1j * params["c_im"]) * (jnp.exp(a * dt) - 1) / a
        powers = jnp.exp((a * dt)[..., None] * jnp.arange(length))
        return 2 * jnp.einsum("hn,hnl->hl", weights, powers).real

    def loss(params, u, y):
        k = kernel(params)
        spectrum = jnp.fft.rfft(u, 2 * length, axis=-1) * jnp.fft.rfft(k, 2 * length, axis=-1)
        out = jnp.fft.irfft(spectrum, 2 * length, axis=-1)[..., :length]
        out = jnp.tanh(out + params["skip"][:, None] * u)
        return jnp.mean((out - y) ** 2)

    rng = np.random.default_rng(0)
    shape = (width, states)
    params = dict(decay=np.full(shape, np.log(0.5)),
                  frequency=np.broadcast_to(np.pi * np.arange(states), shape),
                  step=rng.uniform(np.log(0.001), np.log(0.1), width), skip=rng.normal(size=width),
                  c_re=rng.normal(size=shape), c_im=rng.normal(size=shape))
    params = {k: v.astype(np.float32) for k, v in params.items()}
    u, y = rng.normal(size=(2, batch, width, length)).astype(np.float32)
    return lib.value_and_grad(loss), (params, u, y)
