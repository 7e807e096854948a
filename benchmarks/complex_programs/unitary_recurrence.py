"""A recurrent network of complex states with a unitary mixing (Arjovsky et al. 2016), gradient."""

import numpy as np

FIELD = "sequence models"
SIZES = {
    "tiny": dict(batch=2, length=5, units=8),
    "small": dict(batch=32, length=60, units=64),
    "large": dict(batch=256, length=100, units=512),
}


def make(lib, batch, length, units):
    jnp = lib.numpy

    def loss(params, x, y):
        d1, d2 = jnp.exp(1j * params["phases"])
        v = (params["reflect"][0] + 1j * params["reflect"][1]).astype("complex64")

        def step(h, x):
            h = jnp.fft.fft(h * d1) * units**-0.5
            h = h - 2 * (h @ v.conj())[:, None] * v / jnp.sum(jnp.abs(v) ** 2)
            h = jnp.fft.ifft(h * d2) * units**0.5 + x[:, None] * params["inner"]
            size = jnp.abs(h)
            return lib.nn.relu(size + params["bias"]) * h / (size + 1e-5), None

        h, _ = lib.lax.scan(step, jnp.ones((batch, units), "complex64") * 0.1, x.T)
        return jnp.mean((h.real @ params["outer"] - y) ** 2)

    rng = np.random.default_rng(0)
    params = dict(phases=rng.uniform(-3, 3, (2, units)), reflect=rng.normal(size=(2, units)),
                  inner=rng.normal(size=units), bias=np.full(units, 0.01),
                  outer=rng.normal(size=units) / units)
    params = {k: v.astype(np.float32) for k, v in params.items()}
    x, y = rng.normal(size=(batch, length)).astype("f4"), rng.normal(size=batch).astype("f4")
    return lib.value_and_grad(loss), (params, x, y)
