"""Lanes: implied volatilities by bracketing with inverse interpolation (Brent 1973), and slopes."""

import numpy as np

FIELD = "finance"
SIZES = {
    "tiny": dict(lanes=64),
    "small": dict(lanes=2**13),
    "large": dict(lanes=2**20),
}


def make(lib, lanes):
    jnp = lib.numpy
    cdf = lib.scipy.stats.norm.cdf

    def price(sigma, spot, strike, time):
        width = sigma * jnp.sqrt(time)
        d1 = jnp.log(spot / strike) / width + width / 2
        return spot * cdf(d1) - strike * cdf(d1 - width)

    def root(f, low, high):
        """Brent's method: the bracket [b, c], a was b before."""
        def going(state):
            _a, b, c, _fa, fb, _fc, _d, _e, count = state
            return (jnp.abs(c - b) > 1e-4) & (fb != 0) & (count < 60)

        def advance(state):
            a, b, c, fa, fb, fc, d, e, count = state
            swap = jnp.abs(fc) < jnp.abs(fb)
            a, b, c = jnp.where(swap, b, a), jnp.where(swap, c, b), jnp.where(swap, b, c)
            fa, fb, fc = jnp.where(swap, fb, fa), jnp.where(swap, fc, fb), jnp.where(swap, fb, fc)
            half, least = (c - b) / 2, 2e-6
            s = fb / jnp.where(fa == 0, 1.0, fa)
            q, r = fa / jnp.where(fc == 0, 1.0, fc), fb / jnp.where(fc == 0, 1.0, fc)
            straight = (a == c)
            p = jnp.where(straight, 2 * half * s,
                          s * (2 * half * q * (q - r) - (b - a) * (r - 1)))  # fmt: skip
            w = jnp.where(straight, 1 - s, (q - 1) * (r - 1) * (s - 1))
            w = jnp.where(p > 0, -w, w)
            p = jnp.abs(p)
            good = (2 * p < jnp.minimum(3 * half * w - jnp.abs(least * w), jnp.abs(e * w)))
            good = good & (jnp.abs(e) >= least) & (jnp.abs(fa) > jnp.abs(fb))
            e, d = jnp.where(good, d, half), jnp.where(good, p / jnp.where(w == 0, 1.0, w), half)
            a, fa = b, fb
            b = b + jnp.where(jnp.abs(d) > least, d, least * jnp.sign(half))
            fb = f(b)
            same = (fb > 0) == (fc > 0)
            c, fc = jnp.where(same, a, c), jnp.where(same, fa, fc)
            d, e = jnp.where(same, b - a, d), jnp.where(same, b - a, e)
            return a, b, c, fa, fb, fc, d, e, count + 1

        fl, fh = f(low), f(high)
        start = (low, high, low, fl, fh, fl, high - low, high - low, 0)
        final = lib.lax.while_loop(going, advance, start)
        return final[1], final[-1]

    def implied(paid, spot, strike, time):
        sigma, count = root(lambda s: price(s, spot, strike, time) - paid,
                            jnp.float32(0.02), jnp.float32(2.0))  # fmt: skip
        vega = lib.grad(price)(sigma, spot, strike, time)
        return sigma, vega, count

    rng = np.random.default_rng(0)
    spot = rng.uniform(0.8, 1.2, lanes).astype(np.float32)
    strike = rng.uniform(0.9, 1.1, lanes).astype(np.float32)
    time = rng.uniform(0.3, 2, lanes).astype(np.float32)
    paid = np.maximum(spot - strike, 0) + spot * rng.uniform(0.05, 0.2, lanes) * np.sqrt(time)
    def surface(*quotes):
        sigma, vega, count = lib.vmap(implied)(*quotes)
        return sigma, vega, jnp.mean(count < 20)

    return surface, (paid.astype(np.float32), spot, strike, time)
