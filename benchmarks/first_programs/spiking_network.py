"""Leaky neurons that adapt, trained through their spikes with surrogate slopes (Neftci 2019)."""

import numpy as np

FIELD = "neuroscience"
SIZES = {
    "tiny": dict(batch=2, inputs=4, hidden=6, classes=3, times=5),
    "small": dict(batch=32, inputs=40, hidden=64, classes=10, times=50),
    "large": dict(batch=256, inputs=700, hidden=512, classes=20, times=100),
}


def make(lib, batch, inputs, hidden, classes, times):
    jnp = lib.numpy

    @lib.custom_jvp
    def spike(v):
        return (v > 0).astype(jnp.float32)

    @spike.defjvp
    def _(primals, tangents):
        (v,), (t,) = primals, tangents
        return spike(v), t / (1 + 10 * jnp.abs(v)) ** 2

    def run(params, x):
        def step(state, x):
            v, current, adaptation, out = state
            z = spike(v - 1 - 0.3 * adaptation)
            current = 0.8 * current + x @ params["in"] + z @ params["back"]
            v = 0.9 * v * (1 - z) + 0.1 * current
            adaptation = 0.95 * adaptation + z
            out = 0.9 * out + z @ params["out"]
            return (v, current, adaptation, out), (out, jnp.mean(z))

        zeros = jnp.zeros((batch, hidden), jnp.float32)
        start = (zeros, zeros, zeros, jnp.zeros((batch, classes), jnp.float32))
        _, (outs, rates) = lib.lax.scan(step, start, x)
        return jnp.max(outs, axis=0), rates

    def loss(params, x, labels):
        out, rates = run(params, x)
        rows = lib.nn.log_softmax(out)
        hit = jnp.take_along_axis(rows, labels[:, None], axis=1)
        return -jnp.mean(hit) + 10 * jnp.mean((rates - 0.1) ** 2), jnp.mean(rates)

    def train(params, speed, x, labels):
        (value, rate), slopes = lib.value_and_grad(loss, has_aux=True)(params, x, labels)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(slopes)))
        scale = jnp.minimum(1, 1 / (norm + 1e-6))
        speed = lib.tree.map(lambda s, g: 0.9 * s + scale * g, speed, slopes)
        params = lib.tree.map(lambda p, s: p - 0.05 * s, params, speed)
        return params, speed, value, rate, norm

    rng = np.random.default_rng(0)
    shapes = {"in": (inputs, hidden), "back": (hidden, hidden), "out": (hidden, classes)}
    params = {k: (rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32)
              for k, s in shapes.items()}
    params["in"] *= 3
    params["back"] *= 0.3
    speed = {k: np.zeros(s, np.float32) for k, s in shapes.items()}
    x = (rng.uniform(size=(times, batch, inputs)) < 0.15).astype(np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)
    return train, (params, speed, x, labels)
