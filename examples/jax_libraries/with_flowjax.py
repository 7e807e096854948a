"""Normalising flows: a masked autoregressive flow of rational quadratic splines, fitted by its own
training loop to samples of a curved density, its densities and its samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import paramax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal, StandardNormal, Transformed
from flowjax.flows import masked_autoregressive_flow
from flowjax.train import fit_to_data

LIBRARIES = ["flowjax", "paramax"]
NOISE = jax.random.normal(jax.random.key(0), (256, 2))
DATA = jnp.stack([NOISE[:, 0], 0.5 * NOISE[:, 1] + NOISE[:, 0] ** 2], 1)


def make():
    return masked_autoregressive_flow(
        jax.random.key(1), base_dist=StandardNormal((2,)), nn_width=16, flow_layers=2,
        transformer=RationalQuadraticSpline(knots=6, interval=4))


@eqx.filter_jit
def step(flow, data):
    def loss(flow):
        return -paramax.unwrap(flow).log_prob(data).mean()

    value, grads = eqx.filter_value_and_grad(loss)(flow)
    return eqx.apply_updates(flow, jax.tree.map(lambda g: -1e-2 * g, grads)), value


def results():
    flow, losses = fit_to_data(jax.random.key(2), make(), DATA, learning_rate=5e-3, max_epochs=4,
                               batch_size=64, show_progress=False)
    shifted = Transformed(Normal(jnp.zeros(2)), flow.bijection)
    return {"losses": jnp.asarray(losses["train"]), "densities": flow.log_prob(DATA[:6]),
            "samples": flow.sample(jax.random.key(3), (5,)),
            "shifted": shifted.log_prob(DATA[:3]), "step": step(make(), DATA)[1]}


def program():
    return step, (make(), DATA)
