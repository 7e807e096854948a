"""Rotations and rigid motions: exponentials, logarithms and adjoints of SO(3) and SE(3), gradients
on the manifold, and jax_dataclasses' mutable copies and static arguments."""

import jax
import jax.numpy as jnp
import jax_dataclasses as jdc
import jaxlie

LIBRARIES = ["jaxlie", "jax-dataclasses"]
POINTS = jax.random.normal(jax.random.key(0), (40, 3))
TRUTH = jaxlie.SE3.exp(jnp.array([0.4, -0.2, 0.1, 0.3, 0.5, -0.4]))
SEEN = jax.vmap(TRUTH.apply)(POINTS)


@jdc.pytree_dataclass
class Fit:
    pose: jaxlie.SE3
    rate: jdc.Static[float]


def misfit(pose):
    return jnp.mean((jax.vmap(pose.apply)(POINTS) - SEEN) ** 2)


@jax.jit
def step(fit):
    value, slope = jaxlie.manifold.value_and_grad(misfit)(fit.pose)
    with jdc.copy_and_mutate(fit) as moved:
        moved.pose = jaxlie.manifold.rplus(fit.pose, -fit.rate * slope)
    return moved, value


@jdc.jit
def power(rotation: jaxlie.SO3, n: jdc.Static[int]):
    for _ in range(n - 1):
        rotation = rotation @ rotation
    return rotation


def results():
    fit, values = Fit(jaxlie.SE3.identity(), 0.4), []
    for _ in range(20):
        fit, value = step(fit)
        values.append(value)
    turn = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)
    return {"values": jnp.stack(values), "pose": fit.pose.as_matrix(), "log": TRUTH.log(),
            "adjoint": TRUTH.adjoint(), "power": power(turn, 3).as_matrix(),
            "batch": jax.vmap(jaxlie.SO3.exp)(jnp.eye(3)).as_matrix(),
            "slope": jax.jacfwd(lambda v: jaxlie.SE3.exp(v).log())(jnp.full(6, 0.1)),
            "random": jaxlie.SO3.sample_uniform(jax.random.key(1)).as_matrix()}


def program():
    return step, (Fit(jaxlie.SE3.identity(), 0.4),)
