"""V-cycles of multigrid for a Poisson equation of variable coefficients (Briggs 2000)."""

import numpy as np

FIELD = "numerical analysis"
SIZES = {
    "tiny": dict(n=16, levels=2, cycles=2),
    "small": dict(n=128, levels=5, cycles=4),
    "large": dict(n=2048, levels=9, cycles=8),
}


def make(lib, n, levels, cycles):
    jnp, lax = lib.numpy, lib.lax

    def faces(k):
        inner = jnp.pad(k, 1, mode="edge")
        middle = inner[1:-1, 1:-1]
        return [0.5 * (middle + inner[:-2, 1:-1]), 0.5 * (middle + inner[2:, 1:-1]),
                0.5 * (middle + inner[1:-1, :-2]), 0.5 * (middle + inner[1:-1, 2:])]

    def neighbours(u, c):
        p = jnp.pad(u, 1)
        return c[0] * p[:-2, 1:-1] + c[1] * p[2:, 1:-1] + c[2] * p[1:-1, :-2] + c[3] * p[1:-1, 2:]

    def smooth(u, f, c, h, times):
        diagonal = sum(c)

        def jacobi(_, u):
            return u + 0.8 * ((f * h * h + neighbours(u, c)) / diagonal - u)

        return lax.fori_loop(0, times, jacobi, u)

    def residual(u, f, c, h):
        return f - (sum(c) * u - neighbours(u, c)) / (h * h)

    def restrict(r):
        m = r.shape[0] // 2
        return r.reshape(m, 2, m, 2).mean(axis=(1, 3))

    def prolong(e):
        return jnp.repeat(jnp.repeat(e, 2, axis=0), 2, axis=1)

    def v_cycle(u, f, k, h, level):
        c = faces(k)
        if level == 0:
            return smooth(u, f, c, h, 30)
        u = smooth(u, f, c, h, 3)
        coarse = restrict(residual(u, f, c, h))
        e = v_cycle(jnp.zeros_like(coarse), coarse, restrict(k), 2 * h, level - 1)
        return smooth(u + prolong(e), f, c, h, 3)

    def step(f, k):
        def cycle(u, _):
            u = v_cycle(u, f, k, 1.0 / n, levels - 1)
            return u, jnp.linalg.norm(residual(u, f, faces(k), 1.0 / n))

        return lax.scan(cycle, jnp.zeros_like(f), None, length=cycles)

    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
    k = np.exp(np.sin(5 * x) * np.cos(3 * y)).astype(np.float32)
    return step, (rng.standard_normal((n, n)).astype(np.float32), k)
