"""Marginal likelihood of a Gaussian process and its gradient (Rasmussen and Williams 2006)."""

import math

import numpy as np

FIELD = "Gaussian processes"
SIZES = {
    "tiny": dict(points=24, features=2),
    "small": dict(points=256, features=6),
    "large": dict(points=2048, features=8),
}


def make(lib, points, features):
    jnp = lib.numpy

    def kernel(params, a, b):
        scaled = (a[:, None, :] - b[None, :, :]) / jnp.exp(params["log_lengthscales"])
        return jnp.exp(params["log_amplitude"] - 0.5 * jnp.sum(scaled**2, axis=-1))

    def negative_log_likelihood(params, x, y):
        noise = jnp.exp(params["log_noise"])
        covariance = kernel(params, x, x) + noise * jnp.eye(points)
        factor = jnp.linalg.cholesky(covariance)
        residual = y - params["mean"]
        alpha = lib.scipy.linalg.cho_solve((factor, True), residual)
        log_det = 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))
        return 0.5 * (residual @ alpha + log_det + points * math.log(2 * math.pi))

    def step(params, x, y):
        value, gradient = lib.value_and_grad(negative_log_likelihood)(params, x, y)
        updated = lib.tree.map(lambda p, g: p - 1e-3 / points * g, params, gradient)
        return value, gradient, updated

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (points, features)).astype(np.float32)
    y = np.sin(x.sum(1)) + 0.5 * x[:, 0] + 0.3 * rng.standard_normal(points)
    params = {
        "log_lengthscales": np.linspace(0.0, 0.5, features).astype(np.float32),
        "log_amplitude": np.float32(0.2),
        "log_noise": np.float32(-1.5),
        "mean": np.float32(-0.5),
    }
    return step, (params, x, y.astype(np.float32))
