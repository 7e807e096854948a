"""Roots, minima, least squares and fixed points by Newton, chord, BFGS, L-BFGS, Nelder-Mead,
Levenberg-Marquardt, Gauss-Newton, dogleg and bisection; gradients by the implicit function
theorem, and batches of problems."""

import jax
import jax.numpy as jnp
import optimistix as optx

LIBRARIES = ["optimistix"]
TIMES = jnp.linspace(0.0, 4.0, 40)
DATA = 2.5 * jnp.exp(-0.8 * TIMES) + 0.5 + 0.05 * jnp.sin(9 * TIMES)
TOLERANCES = {"rtol": 1e-5, "atol": 1e-5}


def equations(y, scale):
    """Two equations with one root nearby, for a tree of unknowns."""
    a, b = y["a"], y["b"]
    return {"first": jnp.tanh(a) * scale - b + 0.2, "second": b ** 3 + a - 0.5}


def rosenbrock(y, scale):
    return jnp.sum(scale * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)


def residuals(y, data):
    return y[0] * jnp.exp(-y[1] * TIMES) + y[2] - data


def root(solver, scale):
    start = {"a": jnp.array(0.1), "b": jnp.array(0.1)}
    found = optx.root_find(equations, solver, start, args=scale).value
    return jnp.stack([found["a"], found["b"]])


def minimum(solver, scale):
    return optx.minimise(rosenbrock, solver, jnp.array([-0.5, 0.8]), args=scale,
                         max_steps=2000).value


def fit(solver, data):
    return optx.least_squares(residuals, solver, jnp.array([1.0, 1.0, 0.0]), args=data).value


def fixed_point(solver, scale):
    return optx.fixed_point(lambda y, s: jnp.cos(s * y), solver, jnp.array([0.5, 1.0]),
                            args=scale).value


def between(solver, scale):
    return optx.root_find(lambda y, s: y ** 3 + s * y - 2.0, solver, jnp.array(0.5), args=scale,
                          options={"lower": 0.0, "upper": 2.0}).value


def cases():
    """A function and its argument, by name."""
    of = lambda problem, solver, arg: (lambda a: problem(solver(**TOLERANCES), a), arg)
    scale = jnp.array(0.9)
    return {"Newton": of(root, optx.Newton, scale), "chord": of(root, optx.Chord, scale),
            "root by least squares": of(root, optx.LevenbergMarquardt, scale),
            "bisection": of(between, optx.Bisection, scale),
            "BFGS": of(minimum, optx.BFGS, jnp.array(5.0)),
            "L-BFGS": of(minimum, optx.LBFGS, jnp.array(5.0)),
            "Nelder-Mead": of(minimum, optx.NelderMead, jnp.array(5.0)),
            "Levenberg-Marquardt": of(fit, optx.LevenbergMarquardt, DATA),
            "Gauss-Newton": of(fit, optx.GaussNewton, DATA),
            "dogleg": of(fit, optx.Dogleg, DATA),
            "fixed point": of(fixed_point, optx.FixedPointIteration, scale)}


def program():
    return (jax.jit(jax.value_and_grad(lambda data: jnp.sum(
        fit(optx.LevenbergMarquardt(**TOLERANCES), data) ** 2))), (DATA,))


def results():
    found = {}
    for name, (fun, arg) in cases().items():
        found[name] = jax.jit(fun)(arg)
        if name != "Nelder-Mead":  # its minimum is not exact enough to compare gradients there
            norm = lambda a, fun=fun: jnp.sum(fun(a) ** 2)
            found[f"{name}: gradient"] = jax.jit(jax.grad(norm))(arg)
    scales = jnp.linspace(0.5, 1.5, 6)
    found["batch of roots"] = jax.jit(jax.vmap(cases()["Newton"][0]))(scales)
    found["batch of fits"] = jax.vmap(cases()["dogleg"][0])(DATA * scales[:, None])
    return found


if __name__ == "__main__":
    for name, value in results().items():
        print(name, value)
