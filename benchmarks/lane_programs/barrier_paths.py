"""Knock-out options under Heston's volatility by full truncation; hits are found by bisection."""

import numpy as np

FIELD = "finance"
SIZES = {
    "tiny": dict(lanes=64, steps=8),
    "small": dict(lanes=2**12, steps=64),
    "large": dict(lanes=2**18, steps=256),
}
TOLERANCE = 1e-2  # some paths touch the barrier by the last digit


def make(lib, lanes, steps):
    jnp = lib.numpy
    dt = 1.0 / steps

    def path(key, spot, barrier, model):
        speed, level, vol, corr = model

        def going(state):
            k, _, _, alive, _ = state
            return (k < steps) & alive

        def advance(state):
            k, s, v, _, _ = state
            z = lib.random.normal(lib.random.fold_in(key, k), (2,))
            w = corr * z[0] + jnp.sqrt(1 - corr**2) * z[1]
            positive = jnp.maximum(v, 0)
            root = jnp.sqrt(positive * dt)
            new_s = s * jnp.exp((0.02 - positive / 2) * dt + root * z[0])
            new_v = v + speed * (level - positive) * dt + vol * root * w
            hit = new_s > barrier

            def located():
                """The time of the hit, on a path that is exponential between two points."""

                def halve(_, ends):
                    low, high = ends
                    middle = (low + high) / 2
                    above = s * jnp.exp(jnp.log(new_s / s) * middle) > barrier
                    return jnp.where(above, low, middle), jnp.where(above, middle, high)

                low, high = lib.lax.fori_loop(0, 20, halve, (0.0, 1.0))
                return (k + (low + high) / 2) * dt

            when = lib.lax.cond(hit, located, lambda: 1.0)
            return k + 1, new_s, new_v, ~hit, when

        _, s, v, alive, when = lib.lax.while_loop(
            going, advance, (0, spot, model[1], jnp.bool_(True), 1.0))  # fmt: skip
        rebate = 0.1 * jnp.exp(-0.02 * when)
        payoff = jnp.where(alive, jnp.maximum(s - 1.0, 0) * jnp.exp(-0.02), rebate)
        return payoff, when, v

    def price(seed, spot, barrier, model):
        keys = lib.random.split(lib.random.key(seed), lanes)
        payoff, when, v = lib.vmap(path)(keys, spot, barrier, model)
        return jnp.mean(payoff), jnp.std(payoff) / lanes**0.5, jnp.mean(when), jnp.mean(v)

    rng = np.random.default_rng(0)
    spot = rng.uniform(0.9, 1.1, lanes)
    barrier = rng.uniform(1.2, 1.5, lanes)
    model = rng.uniform([1, 0.02, 0.1, -0.8], [3, 0.08, 0.5, -0.2], (lanes, 4))
    return price, (np.uint32(0), *(x.astype(np.float32) for x in (spot, barrier, model)))
