"""Sampling from the posterior of a regression: NUTS after an adaptation of step size and mass
matrix by windows, HMC, Langevin dynamics on minibatches, and effective sample sizes."""

import blackjax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)  # chains of single precision part by its rounding
LIBRARIES = ["blackjax"]
KEYS = jax.random.split(jax.random.key(0), 6)
X = jax.random.normal(KEYS[0], (100, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3 * jax.random.normal(KEYS[1], (100,))
START = {"weights": jnp.zeros(3), "log scale": 0.0}


def log_prior(params):
    return -0.5 * jnp.sum(params["weights"] ** 2) - 0.5 * params["log scale"] ** 2


def log_likelihood(params, batch):
    x, y = batch
    scale = jnp.exp(params["log scale"])
    return jax.scipy.stats.norm.logpdf(y, x @ params["weights"], scale).sum()


def log_density(params):
    return log_prior(params) + log_likelihood(params, (X, Y))


def sampled(algorithm, key, state, steps):
    def one(state, key):
        state, info = algorithm.step(key, state)
        return state, (state.position, info.acceptance_rate)

    return jax.lax.scan(one, state, jax.random.split(key, steps))[1]


@jax.jit
def nuts(key):
    adapting, sampling = jax.random.split(key)
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = warmup.run(adapting, START, 200)
    return sampled(blackjax.nuts(log_density, **parameters), sampling, state, 300)


@jax.jit
def hmc(key):
    algorithm = blackjax.hmc(log_density, step_size=0.02, inverse_mass_matrix=jnp.ones(4),
                             num_integration_steps=4)
    return sampled(algorithm, key, algorithm.init(START), 350)


@jax.jit
def langevin(key):
    gradient = blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, len(Y))
    algorithm = blackjax.sgld(gradient)

    def one(position, key):
        choosing, stepping = jax.random.split(key)
        rows = jax.random.choice(choosing, len(Y), (20,), replace=False)
        position = algorithm.step(stepping, position, (X[rows], Y[rows]), 1e-4)
        return position, position

    return jax.lax.scan(one, algorithm.init(START), jax.random.split(key, 1000))[1]


def program():
    return nuts, (KEYS[2],)


def results():
    by_nuts, accepted = nuts(KEYS[2])
    by_hmc, _ = hmc(KEYS[3])
    by_sgld = langevin(KEYS[4])
    chains = by_hmc["weights"][50:].reshape(2, 150, 3)
    return {"first draw of NUTS": by_nuts["weights"][0],
            "mean by NUTS": by_nuts["weights"].mean(axis=0),
            "log scale by NUTS": by_nuts["log scale"].mean(),
            "accepted by NUTS": accepted.mean(),
            "mean by HMC": chains.mean(axis=(0, 1)),
            "effective sample size": blackjax.diagnostics.effective_sample_size(chains),
            "R hat": blackjax.diagnostics.potential_scale_reduction(chains),
            "mean by Langevin dynamics": by_sgld["weights"][500:].mean(axis=0)}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.round(value, 3)}")
