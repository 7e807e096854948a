"""t-SNE: perplexities by bisection, then descent of the map with momentum (van der Maaten)."""

import numpy as np

FIELD = "visualisation"
SIZES = {
    "tiny": dict(points=16, features=4, bisections=6, steps=2),
    "small": dict(points=256, features=20, bisections=20, steps=10),
    "large": dict(points=4096, features=64, bisections=30, steps=50),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, points, features, bisections, steps):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    wanted = float(np.log(points / 8))

    def squares(x):
        s = jnp.sum(x**2, axis=-1)
        return jnp.maximum(s[:, None] + s[None] - 2 * x @ x.T, 0.0)

    def conditional(distances, log_beta, i):
        logits = -jnp.exp(log_beta) * distances
        return nn.softmax(jnp.where(jnp.arange(points) == i, -jnp.inf, logits))

    def precision(distances, i):
        def bisect(_, bounds):
            low, high = bounds
            middle = 0.5 * (low + high)
            p = conditional(distances, middle, i)
            entropy = -jnp.sum(lib.scipy.special.xlogy(p, p))
            wide = entropy > wanted
            return jnp.where(wide, middle, low), jnp.where(wide, high, middle)

        low, high = lax.fori_loop(0, bisections, bisect, (-10.0, 10.0))
        return 0.5 * (low + high)

    def divergence(y, p):
        q = 1 / (1 + squares(y))
        q = q * (1 - jnp.eye(points))
        q = jnp.maximum(q / jnp.sum(q), 1e-12)
        return jnp.sum(lib.scipy.special.xlogy(p, p) - p * jnp.log(q))

    def step(x, y):
        distances = squares(x)
        rows = jnp.arange(points)
        log_beta = lib.vmap(precision)(distances, rows)
        p = lib.vmap(conditional)(distances, log_beta, rows)
        p = (p + p.T) / (2 * points)

        def descend(carry, _):
            y, speed, gains = carry
            value, grad = lib.value_and_grad(divergence)(y, 4 * p)
            same = jnp.sign(grad) == jnp.sign(speed)
            gains = jnp.maximum(jnp.where(same, 0.8 * gains, gains + 0.2), 0.01)
            speed = 0.5 * speed - 5.0 * gains * grad
            y = y + speed
            return (y - jnp.mean(y, axis=0), speed, gains), value

        carry = (y, jnp.zeros_like(y), jnp.ones_like(y))
        (y, _, _), values = lax.scan(descend, carry, None, length=steps)
        return values, y, log_beta

    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, features)) + 3 * rng.integers(0, 3, (points, 1))
    return step, (x.astype(np.float32), rng.standard_normal((points, 2)).astype(np.float32))
