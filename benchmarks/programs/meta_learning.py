"""Meta-gradient through inner steps on many sine regressions: MAML (Finn et al. 2017)."""

import numpy as np

FIELD = "meta-learning"
SIZES = {
    "tiny": dict(tasks=4, shots=5, units=8, inner_steps=2),
    "small": dict(tasks=32, shots=10, units=40, inner_steps=3),
    "large": dict(tasks=256, shots=10, units=40, inner_steps=3),
}


def make(lib, tasks, shots, units, inner_steps):
    jnp = lib.numpy

    def predict(params, x):
        h = lib.nn.relu(x @ params["w1"] + params["b1"])
        h = lib.nn.relu(h @ params["w2"] + params["b2"])
        return h @ params["w3"] + params["b3"]

    def loss(params, x, y):
        return jnp.mean((predict(params, x) - y) ** 2)

    def adapted_loss(params, rates, x, y, x_query, y_query):
        for _ in range(inner_steps):
            gradient = lib.grad(loss)(params, x, y)
            params = lib.tree.map(lambda p, r, g: p - r * g, params, rates, gradient)
        return loss(params, x_query, y_query)

    def meta_loss(params, rates, batch):
        losses = lib.vmap(lambda task: adapted_loss(params, rates, *task))(batch)
        return jnp.mean(losses)

    def step(params, rates, batch):
        value, (slope, slope_rates) = lib.value_and_grad(meta_loss, argnums=(0, 1))(
            params, rates, batch
        )
        params = lib.tree.map(lambda p, g: p - 0.01 * g, params, slope)
        rates = lib.tree.map(lambda r, g: r - 1e-4 * g, rates, slope_rates)
        return value, params, rates, slope, slope_rates

    rng = np.random.default_rng(0)

    def weight(m, n):
        return (rng.standard_normal((m, n)) * np.sqrt(2 / m)).astype(np.float32)

    params = {
        "w1": weight(1, units),
        "b1": rng.standard_normal(units).astype(np.float32),
        "w2": weight(units, units),
        "b2": np.zeros(units, np.float32),
        "w3": weight(units, 1) / 2,
        "b3": np.zeros(1, np.float32),
    }
    rates = {name: np.float32(0.01) for name in params}  # Meta-SGD: a learned rate a parameter
    amplitude = rng.uniform(0.1, 5.0, (tasks, 1, 1))
    phase = rng.uniform(0, np.pi, (tasks, 1, 1))
    x, x_query = rng.uniform(-1, 1, (2, tasks, shots, 1))
    batch = (x, amplitude * np.sin(5 * x + phase), x_query, amplitude * np.sin(5 * x_query + phase))
    return step, (params, rates, tuple(a.astype(np.float32) for a in batch))
