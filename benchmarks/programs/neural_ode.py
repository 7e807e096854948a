"""Gradient of a neural ordinary differential equation, by Runge-Kutta steps (Chen et al. 2018)."""

import numpy as np

FIELD = "neural differential equations"
SIZES = {
    "tiny": dict(batch=4, state=2, units=8, steps=5, observed=5),
    "small": dict(batch=32, state=8, units=32, steps=40, observed=10),
    "large": dict(batch=512, state=32, units=128, steps=100, observed=20),
}


def make(lib, batch, state, units, steps, observed):
    jnp = lib.numpy
    dt = 1.0 / steps

    def field(params, y, t):
        h = jnp.tanh(y @ params["w1"] + params["b1"] + t * params["time"])
        h = jnp.tanh(h @ params["w2"] + params["b2"])
        return h @ params["w3"] - 0.5 * y

    def rk4(params, y, t):
        k1 = field(params, y, t)
        k2 = field(params, y + 0.5 * dt * k1, t + 0.5 * dt)
        k3 = field(params, y + 0.5 * dt * k2, t + 0.5 * dt)
        k4 = field(params, y + dt * k3, t + dt)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def solve(params, y0):
        def body(y, i):
            y = rk4(params, y, i * dt)
            return y, y

        _, path = lib.lax.scan(body, y0, jnp.arange(steps))
        return path[steps // observed - 1 :: steps // observed]

    def loss(params, y0, target):
        return jnp.mean((solve(params, y0) - target) ** 2)

    rng = np.random.default_rng(0)

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "w1": weight(state, units),
        "b1": np.zeros(units, np.float32),
        "time": (0.1 * rng.standard_normal(units)).astype(np.float32),
        "w2": weight(units, units),
        "b2": np.zeros(units, np.float32),
        "w3": weight(units, state),
    }
    y0 = rng.standard_normal((batch, state)).astype(np.float32)
    target = rng.standard_normal((observed, batch, state)).astype(np.float32)
    return lib.value_and_grad(loss, argnums=(0, 1)), (params, y0, target)
