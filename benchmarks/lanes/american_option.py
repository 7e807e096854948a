"""Prices of American put options by a binomial tree each (Cox, Ross and Rubinstein 1979)."""

import numpy as np

FIELD = "finance"
SIZES = {
    "tiny": dict(lanes=64, steps=8),
    "small": dict(lanes=2**15, steps=64),
    "large": dict(lanes=2**17, steps=64),
}
UNROLL = 2


def make(lib, lanes, steps):
    jnp = lib.numpy

    def price(spot, strike, volatility, rate):
        up = jnp.exp(volatility * steps**-0.5)
        growth = jnp.exp(rate / steps)
        chance = (growth - 1 / up) / (up - 1 / up)

        def back(_, state):
            values, prices = state
            prices = prices * up
            held = (chance * jnp.roll(values, -1) + (1 - chance) * values) / growth
            return jnp.maximum(held, strike - prices), prices

        prices = spot * up ** (2.0 * jnp.arange(steps + 1) - steps)
        values = jnp.maximum(strike - prices, 0)
        return lib.lax.fori_loop(0, steps, back, (values, prices))[0][0]

    rng = np.random.default_rng(0)
    bounds = np.array([[80, 120], [90, 110], [0.1, 0.5], [0.01, 0.08]])
    arguments = rng.uniform(bounds[:, 0], bounds[:, 1], (lanes, 4)).astype(np.float32)
    return lib.vmap(price), tuple(np.ascontiguousarray(arguments.T))


def outputs(lanes, steps):
    """The prices."""
    return [((lanes,), np.float32)]


BY_HAND = r"""
// Nodes are worked at in groups: the groups above the diagonal of a level are left out, the nodes
// above it within a group are never read.
#define GROUP 16
#define GROUPS ((STEPS + GROUP - 1) / GROUP)

LANE void lane(int i, const float *spots, const float *strikes, const float *volatilities,
               const float *rates, float *prices) {
    real spot = load(spots, i), strike = load(strikes, i);
    real logarithm_up = load(volatilities, i) * square_root(1.0f / STEPS);
    real up = exponential(logarithm_up), down = 1.0f / up, up_twice = up * up;
    real growth = exponential(load(rates, i) * (1.0f / STEPS));
    real chance = (growth - down) / (up - down);
    real rises = chance / growth, falls = (1.0f - chance) / growth;
    real values[GROUPS * GROUP + 1], lowest[GROUPS];  // of a group, the price of its lowest node
    UNROLLED
    for (int group = 0; group < GROUPS; group++) {
        real price = spot * exponential(logarithm_up * (2.0f * GROUP * group - STEPS));
        lowest[group] = price;
        UNROLLED
        for (int k = 0; k < GROUP; k++) {
            values[group * GROUP + k] = largest(strike - price, 0.0f);
            price = price * up_twice;
        }
        if (group == GROUPS - 1) values[GROUPS * GROUP] = largest(strike - price, 0.0f);
    }
    for (int level = STEPS - 1; level >= 0; level--) {
        UNROLLED
        for (int group = 0; group < GROUPS; group++) {
            if (group * GROUP <= level) {
                real price = lowest[group] * up;
                lowest[group] = price;
                UNROLLED
                for (int k = 0; k < GROUP; k++) {
                    int node = group * GROUP + k;
                    real held = rises * values[node + 1] + falls * values[node];
                    values[node] = largest(held, strike - price);
                    price = price * up_twice;
                }
            }
        }
    }
    store(prices, i, values[0]);
}
"""
