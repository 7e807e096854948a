"""Differential equations: explicit steps with a controller, a stiff implicit solver, a stochastic
equation on a Brownian tree, dense output and events; gradients by both adjoints, and batches."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx

LIBRARIES = ["diffrax", "optimistix"]
RATES = jnp.array([1.1, 0.4, 0.1, 0.4])
START = jnp.array([10.0, 5.0])
TIMES = jnp.linspace(0.0, 10.0, 21)
CONTROLLER = diffrax.PIDController(rtol=1e-5, atol=1e-5)


def predators(t, y, rates):
    """Lotka and Volterra's equations."""
    a, b, c, d = rates
    return jnp.stack([a * y[0] - b * y[0] * y[1], c * y[0] * y[1] - d * y[1]])


def populations(rates, start, adjoint):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(predators), diffrax.Tsit5(), 0.0, 10.0, 0.1, start, args=rates,
        saveat=diffrax.SaveAt(ts=TIMES), stepsize_controller=CONTROLLER, adjoint=adjoint)


def loss(rates, start, adjoint):
    return jnp.mean(jnp.log(populations(rates, start, adjoint).ys) ** 2)


def reaction(t, y, rates):
    """Robertson's reaction, which is stiff."""
    a, b, c = y
    first, second, third = rates[0] * a, rates[1] * b ** 2, rates[2] * b * c
    return jnp.stack([third - first, first - third - second, second])


def reacted(rates, solver):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(reaction), solver, 0.0, 100.0, 2e-4, jnp.array([1.0, 0.0, 0.0]),
        args=rates, stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-7)).ys[-1]


def walk(key, drift, solver):
    """Ornstein and Uhlenbeck's process, in two dimensions."""
    path = diffrax.VirtualBrownianTree(0.0, 2.0, tol=1e-3, shape=(2,), key=key,
                                       levy_area=diffrax.SpaceTimeLevyArea)
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, a: -a * y), diffrax.ControlTerm(
        lambda t, y, a: jnp.diag(jnp.array([0.3, 0.6])), path))
    return diffrax.diffeqsolve(terms, solver, 0.0, 2.0, 0.05, jnp.ones(2), args=drift).ys[-1]


def landing(height):
    """When a ball that falls from a height meets the ground."""
    event = diffrax.Event(lambda t, y, args, **kwargs: y[0],
                          optx.Newton(1e-5, 1e-5))
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.81])), diffrax.Dopri5(), 0.0, 10.0,
        0.1, jnp.stack([height, 0.0]), event=event).ts[-1]


def program():
    adjoint = diffrax.RecursiveCheckpointAdjoint()
    return jax.jit(jax.value_and_grad(lambda r: loss(r, START, adjoint))), (RATES,)


def results():
    found = {}
    solution = jax.jit(lambda r: populations(r, START, diffrax.RecursiveCheckpointAdjoint()))(RATES)
    found["populations"], found["steps"] = solution.ys, solution.stats["num_steps"]
    for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.BacksolveAdjoint()):
        found[f"gradient by {type(adjoint).__name__}"] = jax.jit(
            jax.grad(functools.partial(loss, start=START, adjoint=adjoint)))(RATES)
    found["by forward mode"] = jax.jit(jax.jacfwd(
        lambda r: loss(r, START, diffrax.ForwardMode())))(RATES)
    found["between the steps"] = jax.jit(lambda r: jax.vmap(diffrax.diffeqsolve(
        diffrax.ODETerm(predators), diffrax.Dopri8(), 0.0, 10.0, 0.1, START, args=r,
        saveat=diffrax.SaveAt(dense=True), stepsize_controller=CONTROLLER).evaluate)(
            TIMES[1:] - 0.2))(RATES)
    starts = START * jnp.linspace(0.5, 1.5, 5)[:, None]
    found["batch of gradients"] = jax.jit(jax.vmap(jax.grad(
        lambda y: loss(RATES, y, diffrax.RecursiveCheckpointAdjoint()))))(starts)
    rates = jnp.array([0.04, 3e3, 1e2])
    found["reaction"] = jax.jit(lambda r: reacted(r, diffrax.Kvaerno5()))(rates)
    found["reaction: gradient"] = jax.jit(jax.grad(
        lambda r: reacted(r, diffrax.Kvaerno5())[2]))(rates) * rates
    keys = jax.random.split(jax.random.key(4), 8)
    for solver in (diffrax.Euler(), diffrax.Heun(), diffrax.SRA1()):
        found[f"walks by {type(solver).__name__}"] = jax.jit(jax.vmap(
            functools.partial(walk, drift=0.7, solver=solver)))(keys)
    found["walk: gradient"] = jax.jit(jax.grad(lambda a: walk(keys[0], a, diffrax.Heun())[0]))(0.7)
    found["landing"], found["landing: gradient"] = jax.jit(jax.value_and_grad(landing))(20.0)
    return found


if __name__ == "__main__":
    for name, value in results().items():
        print(name, value)
