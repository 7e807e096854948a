"""Policy gradients through simulated carts with poles, with a learned baseline (Williams 1992)."""

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(carts=8, steps=6, width=8),
    "small": dict(carts=256, steps=64, width=32),
    "large": dict(carts=2**13, steps=256, width=64),
}


def make(lib, carts, steps, width):
    jnp = lib.numpy

    def network(p, x):
        h = jnp.tanh(x @ p["w1"] + p["b1"])
        return h @ p["w2"] + p["b2"]

    def physics(state, force):
        x, dx, angle, spin = state
        push = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
        swing = 9.8 * jnp.sin(angle) - jnp.cos(angle) * push
        swing = swing / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
        pull = push - 0.05 * swing * jnp.cos(angle) / 1.1
        return jnp.stack([x + 0.02 * dx, dx + 0.02 * pull, angle + 0.02 * spin,
                          spin + 0.02 * swing])  # fmt: skip

    def rollout(policy, key, state):
        def step(carry, key):
            state, alive = carry
            mean = 5 * network(policy, state)[0]
            noise = lib.random.normal(key)
            after = physics(state, jnp.clip(mean + 2 * noise, -10.0, 10.0))
            fine = (jnp.abs(after[0]) < 2.4) & (jnp.abs(after[2]) < 0.21)
            reward = alive * (1 - 0.1 * after[0] ** 2 - after[2] ** 2)
            return (after, alive * fine), (state, noise, reward, alive)

        return lib.lax.scan(step, (state, 1.0), lib.random.split(key, steps))[1]

    def returns(rewards):
        def back(total, reward):
            total = reward + 0.97 * total
            return total, total

        return lib.lax.scan(back, 0.0, rewards, reverse=True)[1]

    def loss(params, states, actions, gains, alive):
        values = network(params["value"], states)[..., 0]
        advantage = lib.lax.stop_gradient(gains - values)
        means = 5 * network(params["policy"], states)[..., 0]
        chance = -0.5 * ((actions - means) / 2) ** 2
        actor = -jnp.sum(alive * advantage * chance) / jnp.sum(alive)
        return actor + 0.5 * jnp.sum(alive * (gains - values) ** 2) / jnp.sum(alive)

    def improve(params, seed, starts):
        keys = lib.random.split(lib.random.key(seed), carts)
        states, noise, rewards, alive = lib.vmap(rollout, in_axes=(None, 0, 0))(
            params["policy"], keys, starts)  # fmt: skip
        gains = lib.vmap(returns)(rewards)
        actions = 5 * network(params["policy"], states)[..., 0] + 2 * noise
        value, grads = lib.value_and_grad(loss)(params, states, actions, gains, alive)
        params = lib.tree.map(lambda p, g: p - 0.01 * jnp.clip(g, -1.0, 1.0), params, grads)
        return params, grads, value, jnp.mean(jnp.sum(rewards, axis=1))

    rng = np.random.default_rng(0)
    params = {name: {"w1": 0.3 * rng.standard_normal((4, width)), "b1": np.zeros(width),
                     "w2": 0.1 * rng.standard_normal((width, 1)), "b2": np.zeros(1)}
              for name in ("policy", "value")}  # fmt: skip
    params = {name: {k: v.astype(np.float32) for k, v in p.items()} for name, p in params.items()}
    starts = rng.uniform(-0.05, 0.05, (carts, 4)).astype(np.float32)
    return improve, (params, np.uint32(0), starts)
