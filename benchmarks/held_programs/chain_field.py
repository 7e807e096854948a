"""Gradient of a linear-chain conditional random field with ragged sentences (Lafferty 2001)."""

import numpy as np

FIELD = "sequence labelling"
SIZES = {
    "tiny": dict(batch=3, length=7, features=5, tags=4),
    "small": dict(batch=32, length=48, features=64, tags=17),
    "large": dict(batch=512, length=256, features=512, tags=64),
}


def make(lib, batch, length, features, tags):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    logsumexp = lib.scipy.special.logsumexp

    def log_partition(emissions, transitions, start, mask):
        def forward(alpha, at):
            emission, here = at
            new = logsumexp(alpha[:, None] + transitions, axis=0) + emission
            return jnp.where(here, new, alpha), None

        alpha, _ = lax.scan(forward, start + emissions[0], (emissions[1:], mask[1:]))
        return logsumexp(alpha)

    def score(emissions, transitions, start, labels, mask):
        own = jnp.take_along_axis(emissions, labels[:, None], axis=1)[:, 0]
        pairs = transitions[labels[:-1], labels[1:]]
        return start[labels[0]] + jnp.sum(own * mask) + jnp.sum(pairs * mask[1:])

    def loss(params, x, labels, lengths):
        hidden = nn.relu(x @ params["w1"] + params["b1"])
        emissions = hidden @ params["w2"]

        def one(e, y, n):
            mask = jnp.arange(length) < n
            z = log_partition(e, params["transitions"], params["start"], mask)
            return z - score(e, params["transitions"], params["start"], y, mask)

        return jnp.mean(lib.vmap(one)(emissions, labels, lengths))

    def step(params, momentum, x, labels, lengths):
        value, grads = lib.value_and_grad(loss)(params, x, labels, lengths)
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        params = lib.tree.map(lambda p, m: p - 0.05 * m, params, momentum)
        return value, params, momentum

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {"w1": draw(features, features), "b1": np.zeros(features, np.float32),
              "w2": draw(features, tags), "transitions": draw(tags, tags), "start": draw(tags)}
    momentum = {k: np.zeros_like(v) for k, v in params.items()}
    x = rng.standard_normal((batch, length, features)).astype(np.float32)
    labels = rng.integers(0, tags, (batch, length)).astype(np.int32)
    lengths = rng.integers(2, length + 1, batch).astype(np.int32)
    return step, (params, momentum, x, labels, lengths)
