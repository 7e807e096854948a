"""Rates of Adam by the gradient through its unrolled steps, task by task (Andrychowicz 2016)."""

import numpy as np

FIELD = "meta-learning"
SIZES = {
    "tiny": dict(tasks=32, points=4, steps=2),
    "small": dict(tasks=2**10, points=8, steps=6),
    "large": dict(tasks=2**15, points=16, steps=10),
}


def make(lib, tasks, points, steps):
    jnp = lib.numpy

    def model(weights, x):
        """A damped oscillation."""
        scale, decay, frequency, phase = weights
        return scale * jnp.exp(-jnp.exp(decay) * x) * jnp.sin(frequency * x + phase)

    def loss(weights, x, y):
        return jnp.mean((model(weights, x) - y) ** 2)

    def trained(hyper, weights, x, y):
        """The weights after some steps of Adam, whose rates and decays are sigmoids."""
        rate, first, second = jnp.exp(hyper[0]), lib.nn.sigmoid(hyper[1]), lib.nn.sigmoid(hyper[2])
        m, v = jnp.zeros(4), jnp.zeros(4)
        for k in range(1, steps + 1):
            g = lib.grad(loss)(weights, x, y)
            m = first * m + (1 - first) * g
            v = second * v + (1 - second) * g**2
            m_hat, v_hat = m / (1 - first**k), v / (1 - second**k)
            weights = weights - rate * m_hat / (jnp.sqrt(v_hat + 1e-8) + 1e-4)
        return weights

    def outer(hyper, weights, x, y):
        half = points // 2
        weights = trained(hyper, weights, x[:half], y[:half])
        return loss(weights, x[half:], y[half:]), weights

    def meta_step(hyper, weights, x, y):
        each = lib.vmap(lib.value_and_grad(outer, has_aux=True), in_axes=(None, 0, 0, 0))
        (losses, after), gradients = each(hyper, weights, x, y)
        gradient = jnp.mean(jnp.clip(gradients, -1.0, 1.0), axis=0)
        return hyper - 0.05 * gradient, jnp.mean(losses), gradient, jnp.mean(after, 0)

    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (tasks, points))
    true = rng.uniform([0.5, -1.5, 2, 0], [1.5, -0.5, 4, 1], (tasks, 4))
    y = true[:, :1] * np.exp(-np.exp(true[:, 1:2]) * x) * np.sin(true[:, 2:3] * x + true[:, 3:])
    weights = true + 0.2 * rng.standard_normal((tasks, 4))
    hyper = np.array([-3.0, 2.0, 4.0], np.float32)
    return meta_step, (hyper, *(a.astype(np.float32) for a in (weights, x, y)))
