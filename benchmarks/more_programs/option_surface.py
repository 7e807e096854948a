"""Heston prices by alternating implicit steps, tridiagonal systems by scan (in 't Hout 2010)."""

import numpy as np

FIELD = "finance"
SIZES = {
    "tiny": dict(spots=12, variances=8, steps=2, maturities=1),
    "small": dict(spots=64, variances=32, steps=4, maturities=2),
    "large": dict(spots=512, variances=256, steps=10, maturities=8),
}


def make(lib, spots, variances, steps, maturities):
    jnp = lib.numpy

    def tridiagonal(lower, diagonal, upper, right):
        """Thomas's algorithm along the first axis."""
        def forth(carry, row):
            c, d = carry
            a, b, u, r = row
            pivot = b - a * c
            new = (u / pivot, (r - a * d) / pivot)
            return new, new

        zero = jnp.zeros_like(right[0])
        _, (c, d) = lib.lax.scan(forth, (zero, zero), (lower, diagonal, upper, right))

        def back(x, row):
            x = row[1] - row[0] * x
            return x, x

        _, x = lib.lax.scan(back, zero, (c, d), reverse=True)
        return x

    s = np.linspace(0, 4, spots, dtype=np.float32)
    v = np.linspace(0, 1, variances, dtype=np.float32)
    ds, dv = s[1] - s[0], v[1] - v[0]
    inner_s = np.pad(np.ones(spots - 2, np.float32), 1)[:, None]
    inner_v = np.pad(np.ones(variances - 2, np.float32), 1)[None, :]

    def price(params, maturity):
        names = ("rate", "pull", "level", "wobble", "rho")
        rate, pull, level, wobble, rho = (params[k] for k in names)
        dt = maturity / steps
        diffusion = 0.5 * v[None] * s[:, None] ** 2 / ds**2 * inner_s
        drift = rate * s[:, None] / (2 * ds) * inner_s * jnp.ones_like(v)
        across = 0.5 * wobble**2 * v[None] / dv**2 * inner_v * jnp.ones((spots, 1))
        slide = pull * (level - v[None]) / (2 * dv) * inner_v * jnp.ones((spots, 1))

        def in_s(u):
            up, down = jnp.roll(u, -1, 0), jnp.roll(u, 1, 0)
            return diffusion * (up - 2 * u + down) + drift * (up - down) - 0.5 * rate * u

        def in_v(u):
            up, down = jnp.roll(u, -1, 1), jnp.roll(u, 1, 1)
            return across * (up - 2 * u + down) + slide * (up - down) - 0.5 * rate * u

        def mixed(u):
            right, left = jnp.roll(u, -1, 0), jnp.roll(u, 1, 0)
            corners = jnp.roll(right, -1, 1) - jnp.roll(right, 1, 1)
            corners = corners - jnp.roll(left, -1, 1) + jnp.roll(left, 1, 1)
            return rho * wobble * s[:, None] * v[None] * corners / (4 * ds * dv) * inner_s * inner_v

        theta = 0.6

        def step(u, _):
            start = u + dt * (in_s(u) + in_v(u) + mixed(u))
            right = start - theta * dt * in_s(u)
            first = tridiagonal(-theta * dt * (diffusion - drift),
                                1 + theta * dt * (2 * diffusion + 0.5 * rate),
                                -theta * dt * (diffusion + drift), right)  # fmt: skip
            right = (first - theta * dt * in_v(u)).T
            u = tridiagonal(-theta * dt * (across - slide).T,
                            1 + theta * dt * (2 * across + 0.5 * rate).T,
                            -theta * dt * (across + slide).T, right).T  # fmt: skip
            return u, None

        payoff = jnp.maximum(s - 1, 0)[:, None] * jnp.ones_like(v)
        u, _ = lib.lax.scan(step, payoff, None, length=steps)
        return u

    def surface(params, times, quotes):
        def loss(params):
            u = lib.vmap(price, in_axes=(None, 0))(params, times)
            near = u[:, spots // 8 : spots // 2, : variances // 4]
            return jnp.mean((near - quotes) ** 2), jnp.mean(u, axis=(1, 2))

        return lib.value_and_grad(loss, has_aux=True)(params)

    rng = np.random.default_rng(0)
    params = {"rate": 0.02, "pull": 1.5, "level": 0.1, "wobble": 0.3, "rho": -0.5}
    params = {k: np.float32(p) for k, p in params.items()}
    times = np.linspace(0.1, 0.4, maturities).astype(np.float32)
    quotes = rng.uniform(0, 1, (maturities, spots // 2 - spots // 8, variances // 4))
    return surface, (params, times, quotes.astype(np.float32))
