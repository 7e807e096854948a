"""Likelihood of bit strings under a matrix product state, and its gradient (Han et al. 2018)."""

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(sites=8, bond=4, strings=6),
    "small": dict(sites=32, bond=16, strings=64),
    "large": dict(sites=128, bond=32, strings=2048),
}


def make(lib, sites, bond, strings):
    jnp = lib.numpy

    def log_norm(tensors):
        """log <psi|psi>, from left to right, with a scale taken out at every site."""

        def absorb(carry, a):
            left, log_scale = carry
            left = jnp.einsum("ij,sik,sjl->kl", left, a, a)
            scale = jnp.trace(left)
            return (left / scale, log_scale + jnp.log(scale)), None

        start = jnp.zeros((bond, bond)).at[0, 0].set(1.0)
        (_, log_scale), _ = lib.lax.scan(absorb, (start, 0.0), tensors)
        return log_scale

    def log_amplitude(tensors, bits):
        def absorb(carry, site):
            left, log_scale = carry
            a, bit = site
            left = left @ a[bit]
            scale = jnp.max(jnp.abs(left))
            return (left / scale, log_scale + jnp.log(scale)), None

        start = (jnp.zeros(bond).at[0].set(1.0), 0.0)
        (left, log_scale), _ = lib.lax.scan(absorb, start, (tensors, bits))
        return log_scale + 0.5 * jnp.log(jnp.sum(left**2))  # the last bond is not observed

    def loss(tensors, data):
        amplitudes = lib.vmap(log_amplitude, in_axes=(None, 0))(tensors, data)
        return (log_norm(tensors) - 2 * jnp.mean(amplitudes)) / sites

    def step(tensors, velocity, data):
        value, slope = lib.value_and_grad(loss)(tensors, data)
        velocity = 0.9 * velocity - 0.1 * slope
        return value, tensors + velocity, velocity

    rng = np.random.default_rng(0)
    tensors = np.eye(bond) + 0.3 * rng.standard_normal((sites, 2, bond, bond)) / np.sqrt(bond)
    data = np.cumsum(rng.random((strings, sites)) < 0.3, axis=1) % 2
    velocity = np.zeros(tensors.shape, np.float32)
    return step, (tensors.astype(np.float32), velocity, data.astype(np.int32))
