"""A generation of evolution strategies with antithetic noise and ranks (Salimans et al. 2017)."""

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(pairs=4, steps=5, width=4),
    "small": dict(pairs=64, steps=25, width=16),
    "large": dict(pairs=4096, steps=200, width=32),
}
TOLERANCE = {"gpu": 3e-2}  # ranks of equal returns are exchanged


def make(lib, pairs, steps, width):
    jnp = lib.numpy
    sizes = [(4, width), (width,), (width, width), (width,), (width, 1)]
    total = sum(int(np.prod(s)) for s in sizes)
    spread = 0.1

    def unpack(flat):
        parts, at = [], 0
        for size in sizes:
            count = int(np.prod(size))
            parts.append(flat[at : at + count].reshape(size))
            at += count
        return parts

    def policy(flat, state):
        w1, b1, w2, b2, w3 = unpack(flat)
        return 8 * jnp.tanh(jnp.tanh(jnp.tanh(state @ w1 + b1) @ w2 + b2) @ w3)[0]

    def cart_pole(state, force):
        x, v, angle, turn = state
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        bend = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        pull = push - 0.05 * bend * cos / 1.1
        dt = 0.02
        return jnp.stack([x + dt * v, v + dt * pull, angle + dt * turn, turn + dt * bend])

    def fitness(flat, state):
        def step(carry, _):
            state, alive = carry
            force = policy(flat, state)
            state = cart_pole(state, force)
            alive = alive * lib.nn.sigmoid(20 * (0.5 - jnp.abs(state[2])))
            reward = jnp.cos(state[2]) - 0.1 * jnp.tanh(state[0]) ** 2 - 1e-3 * force**2
            return (state, alive), alive * reward

        _, rewards = lib.lax.scan(step, (state, jnp.float32(1)), None, length=steps)
        return jnp.sum(rewards)

    def generation(seed, mean, velocity, start):
        noise = lib.random.normal(lib.random.key(seed), (pairs, total))
        noise = jnp.concatenate([noise, -noise])
        returns = lib.vmap(fitness, in_axes=(0, None))(mean + spread * noise, start)
        ranks = jnp.argsort(jnp.argsort(returns)).astype(jnp.float32)
        weights = ranks / (2 * pairs - 1) - 0.5
        slope = weights @ noise / (2 * pairs * spread) - 0.005 * mean
        velocity = 0.9 * velocity + 0.1 * slope
        return mean + velocity, velocity, jnp.mean(returns), jnp.sort(returns)[-5:]

    rng = np.random.default_rng(0)
    mean = (0.3 * rng.standard_normal(total)).astype(np.float32)
    start = np.array([0.1, 0.0, 0.1, 0.0], np.float32)
    return generation, (np.uint32(0), mean, np.zeros(total, np.float32), start)
