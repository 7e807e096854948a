"""Elementwise work on large complex arrays, of both precisions, in one pass over memory each."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(count=64),
    "small": dict(count=2**20),
    "large": dict(count=2**24),
}


def make(lib, count):
    jnp = lib.numpy

    def chain(z, w, double):
        mixed = z * jnp.conj(w) + 0.5j * z
        phase = jnp.exp(1j * jnp.angle(w)) * jnp.sqrt(z)
        return mixed / (1 + jnp.abs(w)), phase, double * double - 1j * double

    rng = np.random.default_rng(0)
    z, w = (rng.normal(size=(2, count)) + 1j * rng.normal(size=(2, count))).astype("c8")
    return chain, (z, w, (rng.normal(size=count) + 1j * rng.normal(size=count)).astype("c8"))
