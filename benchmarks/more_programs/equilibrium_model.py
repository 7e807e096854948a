"""Gradient of a deep equilibrium model by the implicit function theorem (Bai et al. 2019)."""

import numpy as np

FIELD = "implicit layers"
SIZES = {
    "tiny": dict(batch=4, inputs=6, width=8, history=3, iterations=4),
    "small": dict(batch=64, inputs=32, width=48, history=4, iterations=8),
    "large": dict(batch=1024, inputs=784, width=1024, history=5, iterations=12),
}


def make(lib, batch, inputs, width, history, iterations):
    jnp = lib.numpy

    def layer(params, z, x):
        h = jnp.tanh(z @ params["first"] + x @ params["inject"] + params["bias"])
        z = z + h @ params["second"]
        centred = z - jnp.mean(z, axis=-1, keepdims=True)
        norm = jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
        return params["gain"] * centred / norm

    def anderson(f, z):
        """A fixed point by Anderson's mixing, for each sample."""
        steps = jnp.zeros((history, batch, width)).at[0].set(z)
        images = jnp.zeros((history, batch, width)).at[0].set(f(z))
        steps = steps.at[1].set(images[0])
        images = images.at[1].set(f(images[0]))

        def mix(k, state):
            steps, images = state
            used = jnp.arange(history) < k
            g = jnp.where(used[:, None, None], images - steps, 0)
            gram = jnp.einsum("ibw,jbw->bij", g, g) + 1e-2 * jnp.eye(history)
            sides = jnp.broadcast_to(used * 1.0, (batch, history))[..., None]
            weights = jnp.linalg.solve(gram, sides)
            weights = jnp.where(used, weights[..., 0], 0)
            weights = weights / jnp.sum(weights, axis=1, keepdims=True)
            z = jnp.einsum("bi,ibw->bw", weights, images)
            slot = k % history
            return steps.at[slot].set(z), images.at[slot].set(f(z))

        steps, images = lib.lax.fori_loop(2, iterations, mix, (steps, images))
        return images[(iterations - 1) % history]

    @lib.custom_vjp
    def solve(params, x):
        return anderson(lambda z: layer(params, z, x), jnp.zeros((batch, width)))

    def solve_forward(params, x):
        z = solve(params, x)
        return z, (params, x, z)

    def solve_backward(saved, cotangent):
        params, x, z = saved
        _, pull = lib.vjp(lambda z: layer(params, z, x), z)
        adjoint = anderson(lambda u: pull(u)[0] + cotangent, cotangent)
        _, pull = lib.vjp(lambda p, x: layer(p, z, x), params, x)
        return pull(adjoint)

    solve.defvjp(solve_forward, solve_backward)

    def loss(params, x, labels):
        z = solve(params, x)
        logits = lib.nn.log_softmax(z @ params["head"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    rng = np.random.default_rng(0)

    def draw(rows, columns, scale=1.0):
        return (scale * rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    params = {
        "first": draw(width, width, 0.4),
        "second": draw(width, width, 0.4),
        "inject": draw(inputs, width),
        "bias": np.zeros(width, np.float32),
        "gain": np.full(width, 0.6, np.float32),
        "head": draw(width, 10),
    }
    x = rng.standard_normal((batch, inputs)).astype(np.float32)
    return lib.value_and_grad(loss), (params, x, rng.integers(0, 10, batch).astype(np.int32))
