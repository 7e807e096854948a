"""One iteration of proximal policy optimisation: rollouts, advantages, epochs (Schulman 2017)."""

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(environments=8, steps=6, units=8, epochs=1, minibatches=2),
    "small": dict(environments=64, steps=32, units=32, epochs=2, minibatches=4),
    "large": dict(environments=2048, steps=128, units=64, epochs=4, minibatches=8),
}
# at the default precision each library is 2e-2 to 7e-2 off the other's float32 in gradients near 0
TOLERANCE = {"gpu": 8e-2}


def make(lib, environments, steps, units, epochs, minibatches):
    jnp, random, scan, tree = lib.numpy, lib.random, lib.lax.scan, lib.tree

    def environment(state, action):
        """A point with drag that steers to the origin through a swirling wind."""
        position, velocity, clock = state[:2], state[2:4], state[4:]
        wind = 0.3 * jnp.array([-position[1], position[0]])
        velocity = 0.9 * velocity + 0.1 * (jnp.clip(action, -1.0, 1.0) + wind)
        position = position + 0.1 * velocity
        reward = -0.1 * jnp.sum(position**2) - 0.01 * jnp.sum(action**2)
        done = clock[0] >= 20.0
        state = jnp.concatenate([position, velocity, clock + 1.0])
        return jnp.where(done, jnp.array([1.0, -0.5, 0.0, 0.0, 0.0]), state), reward, done

    def network(params, state):
        h = jnp.tanh(jnp.tanh(state @ params["w1"]) @ params["w2"] + params["b2"])
        return h @ params["policy"], (h @ params["value"])[..., 0]

    def log_probability(mean, action):
        return -0.5 * jnp.sum(((action - mean) / 0.6) ** 2, axis=-1)

    def accumulate(carry, inputs):
        (following, advantage), (value, reward, done) = carry, inputs
        delta = reward + 0.99 * (1.0 - done) * following - value
        advantage = delta + 0.99 * 0.95 * (1.0 - done) * advantage
        return (value, advantage), advantage

    def loss(params, state, action, old, advantage, target):
        mean, value = network(params, state)
        ratio = jnp.exp(log_probability(mean, action) - old)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        return 0.5 * jnp.mean((value - target) ** 2) - surrogate.mean()

    def iteration(seed, params, momentum, states):
        def act(states, key):
            mean, value = network(params, states)
            action = mean + 0.6 * random.normal(key, mean.shape)
            after, reward, done = lib.vmap(environment)(states, action)
            return after, (states, action, log_probability(mean, action), value, reward, done)

        def update(carry, rows):
            params, momentum = carry
            value, gradient = lib.value_and_grad(loss)(params, *[a[rows] for a in data])
            norm = jnp.sqrt(sum(jnp.sum(g**2) for g in tree.leaves(gradient)))
            scale = jnp.minimum(1.0, 0.5 / norm)
            momentum = tree.map(lambda m, g: 0.9 * m + scale * g, momentum, gradient)
            return (tree.map(lambda p, m: p - 0.02 * m, params, momentum), momentum), (value, norm)

        keys = random.split(random.key(seed), steps + epochs)
        states, (*seen, value, reward, done) = scan(act, states, keys[:steps])
        last = network(params, states)[1]
        _, advantage = scan(accumulate, (last, 0 * last), (value, reward, done), reverse=True)
        data = [a.reshape(-1, *a.shape[2:]) for a in (*seen, advantage, advantage + value)]
        order = lib.vmap(lambda key: random.permutation(key, steps * environments))(keys[steps:])
        order = order.reshape(epochs * minibatches, -1)
        (params, momentum), logs = scan(update, (params, momentum), order)
        return params, momentum, states, reward.mean(), logs

    rng = np.random.default_rng(0)
    shapes = {"w1": (5, units), "w2": (units, units), "policy": (units, 2), "value": (units, 1)}
    params = {k: rng.standard_normal(s) / s[0] ** 0.5 for k, s in shapes.items()}
    params = {k: p.astype(np.float32) for k, p in params.items()} | {"b2": np.zeros(units, "f4")}
    momentum = {k: np.zeros_like(p) for k, p in params.items()}
    states = rng.standard_normal((environments, 5)).astype(np.float32)
    states[:, 4] = rng.integers(0, 20, environments)
    return iteration, (np.uint32(0), params, momentum, states)
