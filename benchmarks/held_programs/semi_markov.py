"""Gradient of a hidden semi-Markov model with durations of its states (Yu 2010)."""

import numpy as np

FIELD = "time series"
SIZES = {
    "tiny": dict(series=2, length=12, states=3, longest=4, features=2),
    "small": dict(series=8, length=100, states=5, longest=16, features=4),
    "large": dict(series=256, length=1000, states=16, longest=64, features=16),
}


def make(lib, series, length, states, longest, features):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    logsumexp = lib.scipy.special.logsumexp

    def log_likelihood(params, y):
        z = (y[:, None] - params["mean"]) * jnp.exp(-params["log_sd"])
        emissions = jnp.sum(-0.5 * z**2 - params["log_sd"], axis=-1)
        sums = jnp.concatenate([jnp.zeros((1, states)), jnp.cumsum(emissions, axis=0)])
        move = jnp.where(jnp.eye(states, dtype=bool), -jnp.inf, params["move"])
        move = nn.log_softmax(move, axis=1)
        counts = jnp.arange(1, longest + 1)[:, None]
        rate = jnp.exp(params["log_rate"])
        duration = nn.log_softmax(counts * jnp.log(rate) - lib.scipy.special.gammaln(counts + 1.0)
                                  - rate, axis=0)  # fmt: skip

        def advance(entries, t):
            # entries[d]: log probability that a segment of each state began d + 1 steps ago
            begin = t - jnp.arange(longest)
            segment = sums[t + 1] - sums[jnp.maximum(begin, 0)]
            ends = entries + segment + duration
            ends = jnp.where((begin >= 0)[:, None], ends, -1e30)
            alpha = logsumexp(ends, axis=0)
            fresh = logsumexp(alpha[:, None] + move, axis=0)
            return jnp.concatenate([fresh[None], entries[:-1]]), alpha

        start = jnp.full((longest, states), -1e30).at[0].set(nn.log_softmax(params["start"]))
        _, alphas = lax.scan(advance, start, jnp.arange(length))
        return logsumexp(alphas[-1])

    def loss(params, ys):
        return -jnp.mean(lib.vmap(log_likelihood, (None, 0))(params, ys)) / length

    def step(params, ys):
        value, grads = lib.value_and_grad(loss)(params, ys)
        return value, lib.tree.map(lambda p, g: p - 0.1 * g, params, grads), grads

    rng = np.random.default_rng(0)
    params = {"mean": rng.standard_normal((states, features)),
              "log_sd": np.zeros((states, features)), "move": rng.standard_normal((states, states)),
              "log_rate": np.log(rng.uniform(2, longest / 2, states)), "start": np.zeros(states)}
    ys = np.repeat(rng.standard_normal((series, length // 4, features)), 4, axis=1)
    ys = ys + 0.3 * rng.standard_normal(ys.shape)
    return step, ({k: v.astype(np.float32) for k, v in params.items()}, ys.astype(np.float32))
