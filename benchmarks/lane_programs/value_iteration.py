"""Inventories under random demand: value iteration until it is done, per product (Bellman 1957)."""

import numpy as np

FIELD = "operations research"
SIZES = {
    "tiny": dict(lanes=32, stock=6, orders=3, demands=3),
    "small": dict(lanes=2**10, stock=16, orders=5, demands=4),
    "large": dict(lanes=2**15, stock=24, orders=6, demands=5),
}
TOLERANCE = 1e-2  # orders of equal value


def make(lib, lanes, stock, orders, demands):
    jnp = lib.numpy

    def solve(prices, demand, discount):
        margin, holding, fixed, lost = prices
        levels = jnp.arange(stock)

        def worth(value, order):
            """The value of ordering so much at each level, over all demands."""
            have = jnp.minimum(levels + order, stock - 1)
            total = jnp.zeros(stock) - jnp.where(order > 0, fixed, 0.0)
            for k in range(demands):
                sold = jnp.minimum(have, 2 * k)
                left = have - sold
                gain = margin * sold - holding * left - lost * (2 * k - sold)
                total = total + demand[k] * (gain + discount * value[left])
            return total

        def going(state):
            _, change, count = state
            return (change > 1e-3) & (count < 200)

        def sweep(state):
            value, _, count = state
            new = jnp.max(jnp.stack([worth(value, a) for a in range(orders)]), axis=0)
            return new, jnp.max(jnp.abs(new - value)), count + 1

        value, _, count = lib.lax.while_loop(going, sweep, (jnp.zeros(stock), 1e3, 0))
        policy = jnp.argmax(jnp.stack([worth(value, a) for a in range(orders)]), axis=0)
        return value, policy, count

    def shop(prices, demand, discount):
        value, policy, count = lib.vmap(solve)(prices, demand, discount)
        return value, jnp.mean(policy.astype(jnp.float32), 0), jnp.mean(count.astype(jnp.float32))

    rng = np.random.default_rng(0)
    prices = rng.uniform([1, 0.05, 0.5, 0.2], [3, 0.2, 1.5, 1.0], (lanes, 4))
    demand = rng.dirichlet(np.ones(demands), lanes)
    discount = rng.uniform(0.8, 0.95, lanes)
    return shop, tuple(x.astype(np.float32) for x in (prices, demand, discount))
