"""Alternating least squares for ratings, with weights of confidence (Hu, Koren, Volinsky 2008)."""

import numpy as np

FIELD = "recommendation"
SIZES = {
    "tiny": dict(users=12, items=10, seen=4, rank=3, rounds=2),
    "small": dict(users=300, items=200, seen=20, rank=12, rounds=3),
    "large": dict(users=50000, items=20000, seen=64, rank=64, rounds=5),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, users, items, seen, rank, rounds):
    jnp, lax = lib.numpy, lib.lax

    def solve_rows(factors, index, weight):
        gram = factors.T @ factors

        def row(index, weight):
            near = factors[index]
            left = gram + near.T @ (weight[:, None] * near) + 0.1 * jnp.eye(rank)
            return lib.scipy.linalg.solve(left, near.T @ (1 + weight), assume_a="pos")

        return lib.vmap(row)(index, weight)

    def solve_columns(factors, index, weight):
        gram = factors.T @ factors
        outer = weight[..., None, None] * (factors[:, None, :, None] * factors[:, None, None, :])
        outer = jnp.broadcast_to(outer, (users, seen, rank, rank))
        left = lib.ops.segment_sum(outer.reshape(-1, rank, rank), index.ravel(), items)
        right = (1 + weight)[..., None] * factors[:, None]
        right = lib.ops.segment_sum(right.reshape(-1, rank), index.ravel(), items)
        left = left + gram + 0.1 * jnp.eye(rank)
        return jnp.linalg.solve(left, right[..., None])[..., 0]

    def step(index, ratings, item_factors):
        weight = 4.0 * jnp.log1p(ratings)

        def alternate(carry, _):
            _, v = carry
            u = solve_rows(v, index, weight)
            v = solve_columns(u, index, weight)
            predicted = jnp.einsum("ur,usr->us", u, v[index])
            return (u, v), jnp.mean((1 + weight) * (1 - predicted) ** 2)

        start = (jnp.zeros((users, rank)), item_factors)
        (u, v), losses = lax.scan(alternate, start, None, length=rounds)
        scores = u @ v.T
        scores = scores.at[jnp.arange(users)[:, None], index].set(-jnp.inf)
        top, _ = lax.top_k(scores, 5)
        return losses, u, v, top

    rng = np.random.default_rng(0)
    index = np.stack([rng.choice(items, seen, replace=False) for _ in range(users)])
    return step, (index.astype(np.int32), rng.exponential(2, (users, seen)).astype(np.float32),
                  (0.3 * rng.standard_normal((items, rank))).astype(np.float32))
