"""Adam steps of many regressors that say how unsure they are (Lakshminarayanan et al. 2017)."""

import numpy as np

FIELD = "uncertainty"
SIZES = {
    "tiny": dict(members=3, rows=16, features=5, width=8, layers=2, steps=2),
    "small": dict(members=8, rows=64, features=13, width=32, layers=2, steps=3),
    "large": dict(members=128, rows=512, features=90, width=128, layers=3, steps=8),
}


def make(lib, members, rows, features, width, layers, steps):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def network(params, x):
        for p in params["layers"]:
            x = nn.silu(x @ p["w"] + p["b"])
        out = x @ params["out"]
        return out[..., 0], nn.softplus(out[..., 1]) + 1e-2

    def likelihood(params, x, y):
        mean, var = network(params, x)
        return jnp.mean(0.5 * jnp.log(var) + 0.5 * (y - mean) ** 2 / var)

    def loss(params, x, y):
        """With inputs moved to where the loss grows: adversarial examples."""
        value, toward = lib.value_and_grad(likelihood, 1)(params, x, y)
        return value + likelihood(params, x + 0.01 * jnp.tanh(1e3 * toward), y)

    def train(params, x, y):
        zeros = lib.tree.map(jnp.zeros_like, params)

        def update(state, k):
            params, first, second = state
            value, slope = lib.value_and_grad(loss)(params, x, y)
            first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
            second = lib.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, second, slope)
            up, down = 1 - 0.9 ** (k + 1.0), 1 - 0.999 ** (k + 1.0)
            params = lib.tree.map(
                lambda p, m, s: p - 1e-3 * (m / up) / (jnp.sqrt(s / down) + 1e-3),
                params, first, second)
            return (params, first, second), value

        (params, first, _), values = lax.scan(update, (params, zeros, zeros), jnp.arange(steps))
        return params, first, values

    def step(params, x, y):
        params, first, values = lib.vmap(train)(params, x, y)
        mean, var = lib.vmap(network, (0, None))(params, x[0])
        spread = jnp.mean(var + mean**2, axis=0) - jnp.mean(mean, axis=0) ** 2
        return first, values, jnp.mean(mean, axis=0), spread

    rng = np.random.default_rng(0)

    def draw(a, b):
        return (rng.standard_normal((members, a, b)) / np.sqrt(a)).astype(np.float32)

    params = {"layers": [{"w": draw(a, width), "b": np.zeros((members, width), np.float32)}
                         for a in (features, *[width] * (layers - 1))], "out": draw(width, 2)}
    x = rng.standard_normal((members, rows, features)).astype(np.float32)
    y = np.sin(x.sum(axis=-1)) + 0.1 * rng.standard_normal((members, rows))
    return step, (params, x, y.astype(np.float32))
