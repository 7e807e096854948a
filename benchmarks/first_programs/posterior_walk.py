"""Metropolis walks through the posterior of a dose response with random slopes (Roberts 1997)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(chains=16, doses=6, steps=10),
    "small": dict(chains=512, doses=12, steps=200),
    "large": dict(chains=2**14, doses=24, steps=2000),
}


def make(lib, chains, doses, steps):
    jnp = lib.numpy
    norm = lib.scipy.stats.norm

    def log_density(theta, dose, deaths, exposed):
        """Binomial counts on a logistic curve with a lapse rate, and normal priors."""
        middle, slope, lapse = theta[0], jnp.exp(theta[1]), lib.nn.sigmoid(theta[2])
        p = lapse + (1 - lapse) * lib.nn.sigmoid(slope * (dose - middle))
        p = jnp.clip(p, 1e-6, 1 - 1e-6)
        fit = jnp.sum(deaths * jnp.log(p) + (exposed - deaths) * jnp.log1p(-p))
        prior = norm.logpdf(theta[0], 0, 2) + norm.logpdf(theta[1], 0, 1)
        return fit + prior + norm.logpdf(theta[2], -3, 1)

    def walk(key, theta, dose, deaths, exposed):
        def step(state, key):
            theta, density, width, total = state
            first, second = lib.random.split(key)
            proposal = theta + width * lib.random.normal(first, (3,))
            other = log_density(proposal, dose, deaths, exposed)
            accepted = jnp.log(lib.random.uniform(second)) < other - density
            theta = jnp.where(accepted, proposal, theta)
            density = jnp.where(accepted, other, density)
            width = width * jnp.exp(0.02 * (accepted - 0.3))
            return (theta, density, width, total + accepted), theta

        start = (theta, log_density(theta, dose, deaths, exposed), jnp.float32(0.2), 0.0)
        last, path = lib.lax.scan(step, start, lib.random.split(key, steps))
        return jnp.mean(path, axis=0), jnp.var(path, axis=0), last[3] / steps

    def sample(seed, theta, dose, deaths, exposed):
        keys = lib.random.split(lib.random.key(seed), chains)
        means, within, rates = lib.vmap(walk, in_axes=(0, 0, None, None, None))(
            keys, theta, dose, deaths, exposed)  # fmt: skip
        between = jnp.var(means, axis=0)
        within = jnp.mean(within, axis=0)
        return jnp.mean(means, axis=0), jnp.sqrt(1 + between / within), jnp.mean(rates)

    rng = np.random.default_rng(0)
    dose = np.linspace(-2, 2, doses)
    deaths = rng.binomial(20, 0.05 + 0.95 / (1 + np.exp(-2 * (dose - 0.3))))
    theta = np.array([0.3, 0.7, -3.0]) + 0.3 * rng.standard_normal((chains, 3))
    arrays = (theta, dose, deaths, np.full(doses, 20))
    return sample, (np.uint32(0), *(a.astype(np.float32) for a in arrays))
