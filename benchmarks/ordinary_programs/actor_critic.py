"""A step of a soft actor and its twin critics on replayed states (Haarnoja et al. 2018: SAC)."""

from itertools import pairwise

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(batch=8, states=5, actions=2, width=16),
    "small": dict(batch=64, states=17, actions=6, width=64),
    "large": dict(batch=4096, states=376, actions=17, width=512),
}
TOLERANCE = {"cpu": 2e-3, "gpu": 3e-2}


def make(lib, batch, states, actions, width):
    jnp, nn = lib.numpy, lib.nn

    def mlp(layers, x):
        for p in layers[:-1]:
            x = nn.silu(x @ p["w"] + p["b"])
        return x @ layers[-1]["w"] + layers[-1]["b"]

    def act(actor, state, noise):
        """An action, and the logarithm of its density after tanh."""
        mean, log_std = jnp.split(mlp(actor, state), 2, axis=-1)
        log_std = -2 + 2 * jnp.tanh(log_std)
        raw = mean + jnp.exp(log_std) * noise
        log_prob = jnp.sum(-0.5 * noise**2 - log_std - 0.9189385, axis=-1)
        return jnp.tanh(raw), log_prob - jnp.sum(
            2 * (0.6931472 - raw - nn.softplus(-2 * raw)), axis=-1)

    def judge(critics, state, action):
        x = jnp.concatenate([state, action], axis=-1)
        return lib.vmap(lambda layers: mlp(layers, x)[:, 0])(critics)

    def adam(params, moments, slope):
        first, second = moments
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = lib.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, second, slope)
        return lib.tree.map(lambda p, m, s: p - 3e-4 * m / (jnp.sqrt(s) + 1e-3), params, first,
                            second), (first, second)

    def step(params, moments, targets, state, action, reward, after, ended, noise):
        alpha = jnp.exp(params["alpha"])
        next_action, next_log_prob = act(params["actor"], after, noise[0])
        best = jnp.min(judge(targets, after, next_action), axis=0) - alpha * next_log_prob
        wanted = reward + 0.99 * (1 - ended) * best

        def critic_loss(critics):
            return jnp.mean((judge(critics, state, action) - wanted) ** 2)

        def actor_loss(actor):
            new, log_prob = act(actor, state, noise[1])
            value = jnp.mean(judge(params["critics"], state, new), axis=0)
            return jnp.mean(alpha * log_prob - value), jnp.mean(log_prob)

        critic_value, critic_slope = lib.value_and_grad(critic_loss)(params["critics"])
        (actor_value, density), actor_slope = lib.value_and_grad(
            actor_loss, has_aux=True)(params["actor"])
        slope = {"critics": critic_slope, "actor": actor_slope,
                 "alpha": -alpha * (density - actions)}
        params, moments = adam(params, moments, slope)
        targets = lib.tree.map(lambda t, p: 0.995 * t + 0.005 * p, targets, params["critics"])
        return params, moments, targets, critic_value, actor_value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    def draw_mlp(sizes, *stack):
        return [{"w": draw(*stack, a, b), "b": np.zeros((*stack, b), np.float32)}
                for a, b in pairwise(sizes)]

    critics = draw_mlp((states + actions, width, width, 1), 2)
    for p in critics:
        p["b"] = p["b"].copy()
    params = {"actor": draw_mlp((states, width, width, 2 * actions)), "critics": critics,
              "alpha": np.float32(-1.0)}
    zeros = lib.tree.map(np.zeros_like, params)
    state, after = rng.standard_normal((2, batch, states)).astype(np.float32)
    return step, (params, (zeros, zeros), lib.tree.map(np.copy, critics), state,
                  np.tanh(rng.standard_normal((batch, actions))).astype(np.float32),
                  rng.standard_normal(batch).astype(np.float32), after,
                  (rng.random(batch) < 0.1).astype(np.float32),
                  rng.standard_normal((2, batch, actions)).astype(np.float32))
