"""Gaussian processes: their likelihood and its gradient, conditioning, samples, and quasiseparable
kernels, whose cost is linear in the number of data."""

import jax
import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels

LIBRARIES = ["tinygp"]
TIMES = jnp.sort(jax.random.uniform(jax.random.key(0), (60,), maxval=10.0))
SEEN = jnp.sin(TIMES) + 0.1 * jax.random.normal(jax.random.key(1), (60,))
START = {"scale": 0.0, "length": 0.0, "noise": -3.0, "mean": 0.1}


def dense(params):
    kernel = jnp.exp(2 * params["scale"]) * kernels.Matern32(jnp.exp(params["length"]))
    return GaussianProcess(kernel, TIMES, diag=jnp.exp(params["noise"]), mean=params["mean"])


def fast(params):
    kernel = kernels.quasisep.Matern32(jnp.exp(params["length"]), jnp.exp(params["scale"]))
    return GaussianProcess(kernel, TIMES, diag=jnp.exp(params["noise"]), mean=params["mean"])


def minus_log_likelihood(params, build):
    return -build(params).log_probability(SEEN)


@jax.jit
def step(params):
    value, slope = jax.value_and_grad(minus_log_likelihood)(params, dense)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, slope), value


def results():
    params, values = START, []
    for _ in range(10):
        params, value = step(params)
        values.append(value)
    _, conditioned = dense(params).condition(SEEN, jnp.linspace(0.0, 10.0, 7))
    value, slope = jax.jit(jax.value_and_grad(lambda p: minus_log_likelihood(p, fast)))(params)
    sho = GaussianProcess(kernels.quasisep.SHO(omega=2.0, quality=1.0), TIMES, diag=0.05)
    unit = tinygp.transforms.Linear(0.5, kernels.ExpSquared())
    return {"values": jnp.stack(values), "mean": conditioned.loc, "variance": conditioned.variance,
            "sample": dense(params).sample(jax.random.key(2)), "fast": value,
            "slope": jnp.stack([slope[name] for name in sorted(slope)]),
            "oscillator": sho.log_probability(SEEN), "kernel": unit(TIMES[:4], TIMES[:3])}


def program():
    return step, (START,)
