"""Solvers: L-BFGS, proximal and projected gradients, Gauss-Newton and Levenberg-Marquardt, and the
derivative of a ridge regression's solution by its optimality condition."""

import jax
import jax.numpy as jnp
import jaxopt

LIBRARIES = ["jaxopt"]
KEYS = jax.random.split(jax.random.key(0), 3)
X = jax.random.normal(KEYS[0], (128, 12))
Y = X @ jnp.where(jnp.arange(12) < 4, 2.0, 0.0) + 0.1 * jax.random.normal(KEYS[1], (128,))
LABELS = (Y > 0).astype(jnp.float32)
TIMES = jnp.linspace(0.0, 3.0, 40)
SEEN = 2.5 * jnp.exp(-1.3 * TIMES) + 0.5


def logistic(weights, l2):
    losses = jax.nn.softplus(X @ weights) - LABELS * (X @ weights)
    return losses.mean() + 0.5 * l2 * weights @ weights


def squares(weights):
    return 0.5 * jnp.mean((X @ weights - Y) ** 2)


def decay(params):
    return params[0] * jnp.exp(-params[1] * TIMES) + params[2] - SEEN


def by_lbfgs(l2):
    return jaxopt.LBFGS(logistic, maxiter=100, tol=1e-4).run(jnp.zeros(12), l2=l2).params


def lasso():
    solver = jaxopt.ProximalGradient(squares, jaxopt.prox.prox_lasso, maxiter=200, tol=1e-5)
    return solver.run(jnp.zeros(12), hyperparams_prox=0.1).params


def on_the_simplex():
    solver = jaxopt.ProjectedGradient(squares, jaxopt.projection.projection_simplex, maxiter=200,
                                      tol=1e-5)
    return solver.run(jnp.full(12, 1 / 12), hyperparams_proj=4.0).params


def ridge_condition(weights, l2):
    return X.T @ (X @ weights - Y) / len(Y) + l2 * weights


@jaxopt.implicit_diff.custom_root(ridge_condition)
def ridge(start, l2):
    del start  # the system is solved at once
    return jnp.linalg.solve(X.T @ X / len(Y) + l2 * jnp.eye(12), X.T @ Y / len(Y))


def program():
    return jax.jit(jax.value_and_grad(lambda l2: squares(by_lbfgs(l2)))), (0.1,)


def results():
    start = jnp.array([1.0, 1.0, 0.0])
    gauss_newton = jaxopt.GaussNewton(decay, maxiter=20).run(start).params
    marquardt = jaxopt.LevenbergMarquardt(decay, maxiter=30, tol=1e-6).run(start).params
    loss_of_ridge = lambda l2: squares(ridge(None, l2))
    return {"logistic regression by L-BFGS": by_lbfgs(0.1),
            "its derivative by the penalty": jax.jacrev(by_lbfgs)(0.1),
            "lasso": lasso(),
            "on the simplex": on_the_simplex(),
            "Gauss-Newton": gauss_newton,
            "Levenberg-Marquardt": marquardt,
            "ridge": ridge(None, 0.3),
            "derivative of its loss by the penalty": jax.grad(loss_of_ridge)(0.3),
            "derivatives of ridge": jax.jacobian(ridge, argnums=1)(None, 0.3)}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.round(value, 3)}")
