"""Fits conductances of a graph so that heat that spreads on it is what was measured (adjoint)."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(nodes=20, edges=50, steps=4),
    "small": dict(nodes=1000, edges=6000, steps=20),
    "large": dict(nodes=100000, edges=1000000, steps=50),
}


def make(lib, nodes, edges, steps):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def laplacian(u, c, a, b):
        flow = c * (u[b] - u[a])
        return (lib.ops.segment_sum(flow, a, nodes) - lib.ops.segment_sum(flow, b, nodes))

    def heat(log_c, u, source, a, b):
        c = nn.softplus(log_c)

        def advance(u, _):
            half = u + 0.01 * (laplacian(u, c, a, b) + source - 0.1 * u**3)
            new = u + 0.02 * (laplacian(half, c, a, b) + source - 0.1 * half**3)
            return new, jnp.mean(new)

        return lax.scan(advance, u, None, length=steps)

    def loss(log_c, u, source, a, b, seen, where):
        final, means = heat(log_c, u, source, a, b)
        return jnp.mean((final[where] - seen) ** 2) + 1e-3 * jnp.mean(log_c**2), means

    def step(log_c, u, source, a, b, seen, where):
        (value, means), grads = lib.value_and_grad(loss, has_aux=True)(
            log_c, u, source, a, b, seen, where)  # fmt: skip
        return value, means, log_c - grads, grads

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, nodes, (2, edges)).astype(np.int32)
    where = rng.choice(nodes, nodes // 4, replace=False).astype(np.int32)
    return step, (rng.standard_normal(edges).astype(np.float32),
                  rng.standard_normal(nodes).astype(np.float32),
                  (0.1 * rng.standard_normal(nodes)).astype(np.float32), a, b,
                  rng.standard_normal(len(where)).astype(np.float32), where)
