"""Penalised cubic B-splines with a smoothness found by cross-validation (Eilers 1996)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(points=32, knots=6, steps=2),
    "small": dict(points=1024, knots=24, steps=10),
    "large": dict(points=2**17, knots=128, steps=20),
}


def make(lib, points, knots, steps):
    jnp = lib.numpy
    grid = np.linspace(-3 / knots, 1 + 3 / knots, knots + 7).astype(np.float32)

    def basis(x):
        """Cox and de Boor's recursion."""
        b = ((x[:, None] >= grid[:-1]) & (x[:, None] < grid[1:])).astype(jnp.float32)
        for degree in range(1, 4):
            left = (x[:, None] - grid[: -degree - 1]) / (grid[degree:-1] - grid[: -degree - 1])
            right = (grid[degree + 1 :] - x[:, None]) / (grid[degree + 1 :] - grid[1:-degree])
            b = left * b[:, :-1] + right * b[:, 1:]
        return b

    def fit(log_penalty, design, y, penalty):
        gram = design.T @ design
        system = gram + jnp.exp(log_penalty) * penalty + 1e-4 * jnp.eye(gram.shape[0])
        factor = lib.scipy.linalg.cho_factor(system)
        weights = lib.scipy.linalg.cho_solve(factor, design.T @ y)
        freedom = jnp.trace(lib.scipy.linalg.cho_solve(factor, gram))
        return weights, freedom

    def score(log_penalty, design, y, penalty):
        """Generalised cross-validation."""
        weights, freedom = fit(log_penalty, design, y, penalty)
        return jnp.log(jnp.mean((y - design @ weights) ** 2)) - 2 * jnp.log(1 - freedom / points)

    def solve(x, y, at):
        design = basis(x)
        rows = jnp.diff(jnp.eye(design.shape[1]), n=2, axis=0)
        penalty = rows.T @ rows
        rule = lib.value_and_grad(score)

        def step(state, _):
            log_penalty, speed = state
            value, slope = rule(log_penalty, design, y, penalty)
            speed = 0.7 * speed - 5.0 * slope
            return (log_penalty + speed, speed), value

        start = (jnp.float32(2.0), jnp.float32(0.0))
        (log_penalty, _), values = lib.lax.scan(step, start, None, length=steps)
        weights, freedom = fit(log_penalty, design, y, penalty)
        return basis(at) @ weights, freedom, values

    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.001, 0.999, points))
    y = np.sin(7 * x) + 0.5 * np.cos(20 * x * x) + 0.3 * rng.standard_normal(points)
    at = np.linspace(0.01, 0.99, 101)
    return solve, tuple(a.astype(np.float32) for a in (x, y, at))
