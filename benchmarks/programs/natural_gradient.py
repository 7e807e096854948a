"""A Hessian-free step for an autoencoder (Martens 2010).

Conjugate gradients see the Gauss-Newton matrix by its products; a line search follows.
"""

import itertools

import numpy as np

FIELD = "second-order optimisation"
# Of 20 steps of conjugate gradients the last see roundoff: on one CPU two libraries differ by 8e-3,
# an input changed by 1e-7 changes a result by 4e-3, and float64 is 0.1 away. With 10 steps all
# agree to 3e-6.
TOLERANCE = {"gpu": 4e-2}
SIZES = {
    "tiny": dict(batch=8, features=12, widths=(8, 4), iterations=3),
    "small": dict(batch=64, features=64, widths=(48, 16), iterations=8),
    "large": dict(batch=2048, features=784, widths=(512, 128, 32), iterations=20),
}


def make(lib, batch, features, widths, iterations):
    jnp, nn = lib.numpy, lib.nn
    damping = 0.05

    def network(params, x):
        for index, (weight, bias) in enumerate(params):
            x = x @ weight + bias
            if index not in (len(widths) - 1, len(params) - 1):
                x = jnp.tanh(x)
        return x

    def cross_entropy(logits, x):
        return jnp.mean(jnp.sum(nn.softplus(logits) - x * logits, axis=-1))

    def loss(params, x):
        return cross_entropy(network(params, x), x)

    def step(params, direction, x):
        value, slope = lib.value_and_grad(loss)(params, x)
        outputs, pushforward = lib.linearize(lambda p: network(p, x), params)
        _, pullback = lib.vjp(lambda p: network(p, x), params)

        def gauss_newton(vector):
            tangent = pushforward(vector)
            _, curved = lib.jvp(lib.grad(lambda z: cross_entropy(z, x)), (outputs,), (tangent,))
            (product,) = pullback(curved)
            return lib.tree.map(lambda p, v: p + damping * v, product, vector)

        direction, _ = lib.scipy.sparse.linalg.cg(
            gauss_newton, lib.tree.map(jnp.negative, slope), x0=direction, maxiter=iterations,
            tol=0.0,
        )  # fmt: skip
        product = lib.tree.map(lambda s, d: jnp.sum(s * d), slope, direction)
        decrease = sum(lib.tree.leaves(product))

        def shorter(state):
            rate, _ = state
            rate = 0.7 * rate
            return rate, loss(lib.tree.map(lambda p, d: p + rate * d, params, direction), x)

        def too_long(state):
            rate, after = state
            return (after > value + 1e-2 * rate * decrease) & (rate > 0.05)

        start = (jnp.float32(1 / 0.7), jnp.float32(jnp.inf))
        rate, after = lib.lax.while_loop(too_long, shorter, start)
        updated = lib.tree.map(lambda p, d: p + rate * d, params, direction)
        return value, after, rate, direction, updated

    rng = np.random.default_rng(0)
    sizes = (features, *widths, *widths[-2::-1], features)
    params = [
        (
            (1.5 * rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32),
            0.1 * rng.standard_normal(b).astype(np.float32),
        )
        for a, b in itertools.pairwise(sizes)
    ]
    direction = lib.tree.map(np.zeros_like, params)
    codes = rng.standard_normal((batch, 4)) @ rng.standard_normal((4, features))
    x = 1 / (1 + np.exp(-2 * codes))
    def exact_step(*state):
        """The last digits of a loss decide how long the line search is."""
        with lib.default_matmul_precision("highest"):
            return step(*state)

    return exact_step, (params, direction, x.astype(np.float32))
