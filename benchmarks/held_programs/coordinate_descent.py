"""A path of elastic nets by cyclic coordinate descent, folds side by side (Friedman 2010)."""

import numpy as np

FIELD = "statistics"
SIZES = {
    "tiny": dict(rows=20, features=6, folds=2, penalties=2, sweeps=2),
    "small": dict(rows=200, features=60, folds=5, penalties=8, sweeps=5),
    "large": dict(rows=10000, features=500, folds=10, penalties=20, sweeps=10),
}


def make(lib, rows, features, folds, penalties, sweeps):
    jnp, lax = lib.numpy, lib.lax

    def soft(x, t):
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - t, 0.0)

    def fit(x, y, weight, start, penalty):
        scale = jnp.sum(weight[:, None] * x**2, axis=0)

        def coordinate(j, carry):
            beta, r = carry
            column = x[:, j]
            rho = jnp.sum(weight * column * r) + scale[j] * beta[j]
            new = soft(rho, 0.9 * penalty) / (scale[j] + 0.1 * penalty)
            return beta.at[j].set(new), r - column * (new - beta[j])

        def sweep(_, carry):
            return lax.fori_loop(0, features, coordinate, carry)

        return lax.fori_loop(0, sweeps, sweep, (start, y - x @ start))[0]

    def path(x, y, training, grid):
        weight = training / jnp.sum(training)

        def next_penalty(beta, penalty):
            beta = fit(x, y, weight, beta, penalty)
            error = jnp.sum((1 - training) * (y - x @ beta) ** 2) / jnp.sum(1 - training)
            return beta, (beta, error)

        return lax.scan(next_penalty, jnp.zeros(features), grid)[1]

    def step(x, y, masks):
        mean, sd = jnp.mean(x, axis=0), jnp.std(x, axis=0)
        x = (x - mean) / sd
        y = y - jnp.mean(y)
        largest = jnp.max(jnp.abs(x.T @ y)) / rows
        grid = largest * jnp.logspace(0, -2, penalties)
        betas, errors = lib.vmap(path, (None, None, 0, None))(x, y, masks, grid)
        score = jnp.mean(errors, axis=0)
        best = jnp.argmin(score)
        return score, grid[best], jnp.mean(betas[:, best], axis=0), jnp.mean(betas != 0, axis=0)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, features)) @ (
        np.eye(features) + 0.3 * rng.standard_normal((features, features)) / np.sqrt(features))
    y = x[:, : features // 4].sum(axis=1) + 2 * rng.standard_normal(rows)
    fold = rng.integers(0, folds, rows)
    masks = (fold[None] != np.arange(folds)[:, None]).astype(np.float32)
    return step, (x.astype(np.float32), y.astype(np.float32), masks)
