"""Gradient of a physics-informed network for the Burgers equation (Raissi et al. 2019)."""

import itertools

import numpy as np

FIELD = "physics-informed networks"
SIZES = {
    "tiny": dict(points=16, boundary=8, units=8, layers=2),
    "small": dict(points=512, boundary=64, units=32, layers=3),
    "large": dict(points=16384, boundary=512, units=64, layers=4),
}


def make(lib, points, boundary, units, layers):
    jnp = lib.numpy
    viscosity = 0.01 / np.pi

    def u(params, x, t):
        h = jnp.stack([x, t])
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = params[-1]
        return (h @ w + b)[0]

    def residual(params, x, t):
        u_x = lib.grad(u, argnums=1)
        u_t = lib.grad(u, argnums=2)
        u_xx = lib.grad(u_x, argnums=1)
        advection = u(params, x, t) * u_x(params, x, t)
        return u_t(params, x, t) + advection - viscosity * u_xx(params, x, t)

    def loss(params, x, t, x0):
        inside = lib.vmap(residual, in_axes=(None, 0, 0))(params, x, t)
        initial = lib.vmap(u, in_axes=(None, 0, None))(params, x0, 0.0) + jnp.sin(np.pi * x0)
        t_wall = t[:boundary]
        left = lib.vmap(u, in_axes=(None, None, 0))(params, -1.0, t_wall)
        right = lib.vmap(u, in_axes=(None, None, 0))(params, 1.0, t_wall)
        walls = jnp.mean(left**2) + jnp.mean(right**2)
        return jnp.mean(inside**2) + jnp.mean(initial**2) + walls

    rng = np.random.default_rng(0)
    sizes = [2] + [units] * layers + [1]
    params = [
        (
            (rng.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32),
            (0.1 * rng.standard_normal(n)).astype(np.float32),
        )
        for m, n in itertools.pairwise(sizes)
    ]
    x = rng.uniform(-1, 1, points).astype(np.float32)
    t = rng.uniform(0, 1, points).astype(np.float32)
    x0 = np.linspace(-1, 1, boundary, dtype=np.float32)
    return lib.value_and_grad(loss), (params, x, t, x0)
