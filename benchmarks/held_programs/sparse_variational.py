"""Adam on a sparse variational Gaussian process classifier, in minibatches (Hensman 2015)."""

import numpy as np

FIELD = "Gaussian processes"
SIZES = {
    "tiny": dict(batch=12, inducing=5, features=2, nodes=4, steps=2),
    "small": dict(batch=256, inducing=64, features=8, nodes=16, steps=3),
    "large": dict(batch=8192, inducing=1024, features=16, nodes=20, steps=8),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, batch, inducing, features, nodes, steps):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    solve_triangular = lib.scipy.linalg.solve_triangular
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    points = points.astype(np.float32)
    weights = (weights / np.sqrt(2 * np.pi)).astype(np.float32)

    def kernel(params, x, z):
        x, z = x / jnp.exp(params["scale"]), z / jnp.exp(params["scale"])
        squares = jnp.sum(x**2, -1)[:, None] + jnp.sum(z**2, -1)[None] - 2 * x @ z.T
        r = jnp.sqrt(jnp.maximum(squares, 0.0) + 1e-6)
        return jnp.exp(params["signal"]) * (1 + 3**0.5 * r) * jnp.exp(-3**0.5 * r)

    def negative_elbo(params, x, y):
        kzz = kernel(params, params["z"], params["z"]) + 1e-3 * jnp.eye(inducing)
        chol = jnp.linalg.cholesky(kzz)
        a = solve_triangular(chol, kernel(params, params["z"], x), lower=True)
        s = jnp.tril(params["root"], -1) + jnp.diag(jnp.exp(jnp.diag(params["root"])))
        mean = a.T @ params["mean"]
        spread = jnp.sum((s.T @ a) ** 2, axis=0) - jnp.sum(a**2, axis=0)
        sd = jnp.sqrt(jnp.maximum(jnp.exp(params["signal"]) + spread, 1e-6))
        f = mean[:, None] + sd[:, None] * points
        fits = jnp.sum(nn.log_sigmoid(y[:, None] * f) * weights, axis=1)
        divergence = 0.5 * (jnp.sum(s**2) + jnp.sum(params["mean"] ** 2) - inducing
                            - 2 * jnp.sum(jnp.diag(params["root"])))  # fmt: skip
        return divergence / (steps * batch) - jnp.mean(fits)

    def step(params, first, second, xs, ys):
        def update(carry, at):
            params, first, second, t = carry
            value, grads = lib.value_and_grad(negative_elbo)(params, *at)
            t = t + 1
            first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
            second = lib.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
            params = lib.tree.map(lambda p, m, v: p - 0.01 * (m / (1 - 0.9**t)) / (
                jnp.sqrt(v / (1 - 0.99**t)) + 1e-4), params, first, second)  # fmt: skip
            return (params, first, second, t), value

        carry = (params, first, second, jnp.float32(0))
        (params, first, second, _), values = lax.scan(update, carry, (xs, ys))
        return values, params, first, second

    rng = np.random.default_rng(0)
    xs = rng.standard_normal((steps, batch, features)).astype(np.float32)
    ys = np.sign(xs[..., 0] * xs[..., 1] + 0.1).astype(np.float32)
    params = {"z": rng.standard_normal((inducing, features)), "scale": np.ones(features),
              "signal": np.zeros(()), "mean": 0.1 * rng.standard_normal(inducing),
              "root": 0.1 * np.tril(rng.standard_normal((inducing, inducing)))}
    params = {k: np.asarray(v, np.float32) for k, v in params.items()}
    zeros = {k: np.zeros_like(v) for k, v in params.items()}
    return step, (params, zeros, zeros, xs, ys)
