"""Chemical equilibria by Newton's method as an implicit layer: loss and gradient (Blondel 2022)."""

import numpy as np

FIELD = "chemistry"
SIZES = {
    "tiny": dict(lanes=32),
    "small": dict(lanes=2**11),
    "large": dict(lanes=2**16),
}


def make(lib, lanes):
    jnp = lib.numpy

    def residual(y, params, total):
        """Mass balances of three species that bind in pairs and in one triple, in logarithms."""
        a, b, c = jnp.exp(y[0]), jnp.exp(y[1]), jnp.exp(y[2])
        ab, bc, ac, abc = (jnp.exp(p) for p in params)
        pairs = ab * a * b, bc * b * c, ac * a * c
        triple = abc * a * b * c
        return jnp.stack([
            a + pairs[0] + pairs[2] + triple - total[0],
            b + pairs[0] + pairs[1] + triple - total[1],
            c + pairs[1] + pairs[2] + triple - total[2],
        ])  # fmt: skip

    def newton(params, total):
        def going(state):
            _, size, count = state
            return (size > 1e-5) & (count < 50)

        def improve(state):
            y, _, count = state
            slope = lib.jacfwd(residual)(y, params, total)
            change = jnp.linalg.solve(slope, residual(y, params, total))
            change = jnp.clip(change, -1.0, 1.0)
            y = y - change
            return y, jnp.max(jnp.abs(change)), count + 1

        y, _, _ = lib.lax.while_loop(going, improve, (jnp.log(total) - 1, 1.0, 0))
        return y

    @lib.custom_vjp
    def equilibrium(params, total):
        return newton(params, total)

    def forward(params, total):
        y = newton(params, total)
        return y, (y, params, total)

    def backward(kept, ct):
        y, params, total = kept
        slope = lib.jacrev(residual)(y, params, total)
        u = jnp.linalg.solve(slope.T, ct)
        _, pull = lib.vjp(lambda p, t: residual(y, p, t), params, total)
        return lib.tree.map(lambda x: -x, pull(u))

    equilibrium.defvjp(forward, backward)

    def loss(params, total, measured):
        def one(total, measured):
            y = equilibrium(tuple(params), total)
            return jnp.sum((y - measured) ** 2)

        return jnp.mean(lib.vmap(one)(total, measured))

    def step(params, total, measured):
        value, gradient = lib.value_and_grad(loss)(params, total, measured)
        return value, gradient, params - 0.1 * gradient

    rng = np.random.default_rng(0)
    total = rng.uniform(0.5, 3, (lanes, 3)).astype(np.float32)
    measured = (np.log(total) - rng.uniform(0.5, 1.5, (lanes, 3))).astype(np.float32)
    return step, (np.array([0.5, 0.0, -0.5, 0.3], np.float32), total, measured)
