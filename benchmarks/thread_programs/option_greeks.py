"""Prices and sensitivities of many options by Black and Scholes (1973): long maps and sums."""

import numpy as np

FIELD = "finance"
SIZES = {
    "tiny": dict(options=500),
    "small": dict(options=400_000),
    "server": dict(options=10_000_000),
    "large": dict(options=40_000_000),
}


def make(lib, options):
    jnp = lib.numpy

    def price(spot, volatility, strike, expiry):
        root = volatility * jnp.sqrt(expiry)
        first = (jnp.log(spot / strike) + 0.02 * expiry) / root + 0.5 * root
        below = lib.scipy.special.ndtr
        return spot * below(first) - strike * jnp.exp(-0.02 * expiry) * below(first - root)

    def greeks(spot, volatility, strike, expiry):
        def total(s, v):
            return jnp.sum(price(s, v, strike, expiry))

        delta, vega = lib.grad(total, (0, 1))(spot, volatility)
        value = price(spot, volatility, strike, expiry)
        ranked = jnp.cumsum(value - jnp.mean(value))
        return delta, vega, value, ranked / options

    rng = np.random.default_rng(0)
    spot = rng.uniform(80, 120, options)
    volatility = rng.uniform(0.1, 0.4, options)
    strike, expiry = rng.uniform(80, 120, options), rng.uniform(0.2, 2.0, options)
    return greeks, tuple(x.astype(np.float32) for x in (spot, volatility, strike, expiry))
