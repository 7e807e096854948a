"""Probabilistic programs: eight schools by NUTS, a Gaussian mixture whose assignments are summed
out, a regression by variational inference with a normal guide, and predictions of each."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.reparam import LocScaleReparam

numpyro.enable_x64()  # chains of single precision part by its rounding
LIBRARIES = ["numpyro"]
EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
KEYS = jax.random.split(jax.random.key(0), 6)
POINTS = jnp.concatenate([jax.random.normal(KEYS[0], (40,)) - 3.0,
                          0.5 * jax.random.normal(KEYS[1], (60,)) + 2.0])
X = jax.random.normal(KEYS[2], (80, 3))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3 * jax.random.normal(KEYS[3], (80,))


@numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)})
def schools(errors, effects=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(errors)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("seen", dist.Normal(theta, errors), obs=effects)


def mixture(points):
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(2)))
    ordered = dist.transforms.OrderedTransform()
    centers = numpyro.sample(
        "centers", dist.TransformedDistribution(dist.Normal(0, 3).expand([2]), ordered))
    with numpyro.plate("points", len(points)):
        parts = dist.MixtureSameFamily(dist.Categorical(shares), dist.Normal(centers, 1.0))
        numpyro.sample("seen", parts, obs=points)


def regression(x, y=None):
    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([3]).to_event(1))
    scale = numpyro.sample("scale", dist.LogNormal(0, 1))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("seen", dist.Normal(x @ weights, scale), obs=y)


def posterior(model, key, *data, warmup=25, samples=50):
    chain = MCMC(NUTS(model), num_warmup=warmup, num_samples=samples, progress_bar=False)
    chain.run(key, *data)
    return chain.get_samples()


def by_variation(key, steps):
    guide = AutoNormal(regression)
    svi = SVI(regression, guide, numpyro.optim.Adam(0.02), Trace_ELBO(num_particles=4))
    found = svi.run(key, steps, X, Y, progress_bar=False)
    return guide, found.params, found.losses


def program():
    chain = MCMC(NUTS(schools), num_warmup=200, num_samples=300, progress_bar=False)

    def run(key):
        chain.run(key, ERRORS, EFFECTS)
        chain.post_warmup_state = chain.last_state  # later runs go on from here
        return chain.get_samples()

    return run, (KEYS[4],)


def results():
    of_schools = posterior(schools, KEYS[4], ERRORS, EFFECTS)
    of_mixture = posterior(mixture, KEYS[4], POINTS)
    long = posterior(mixture, KEYS[5], POINTS, warmup=200, samples=300)["centers"].mean(axis=0)
    guide, params, losses = by_variation(KEYS[5], 500)
    draws = guide.sample_posterior(KEYS[5], params, sample_shape=(200,))
    predicted = Predictive(regression, draws)(KEYS[0], X)["seen"]
    densities = log_likelihood(regression, draws, X, Y)["seen"]
    return {"mu of schools": of_schools["mu"].mean(),
            "tau of schools": of_schools["tau"].mean(),
            "effects of schools": of_schools["theta"].mean(axis=0),
            "centers of the mixture": of_mixture["centers"].mean(axis=0),
            "shares of the mixture": of_mixture["shares"].mean(axis=0),
            # rounding decides where a chain is after some hundred steps, with JAX too
            "a long chain finds the centers": jnp.abs(long - jnp.array([-3, 2])).max() < 0.3,
            "last ELBO": losses[-1],
            "median of the guide": guide.median(params)["weights"],
            "predictions": predicted.mean(axis=0)[:5],
            "log likelihood": densities.mean()}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.round(value, 3)}")
