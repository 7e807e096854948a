"""Beam search over a gated recurrent decoder, with a length penalty (Wu et al. 2016)."""

import numpy as np

FIELD = "translation"
SIZES = {
    "tiny": dict(batch=2, beams=3, vocabulary=17, features=8, length=4),
    "small": dict(batch=4, beams=5, vocabulary=2000, features=128, length=12),
    "large": dict(batch=64, beams=8, vocabulary=32000, features=1024, length=32),
}


def make(lib, batch, beams, vocabulary, features, length):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def cell(params, h, x):
        both = jnp.concatenate([x, h], axis=-1)
        gates = nn.sigmoid(both @ params["gates"] + params["bias"])
        reset, update = jnp.split(gates, 2, axis=-1)
        fresh = jnp.tanh(jnp.concatenate([x, reset * h], axis=-1) @ params["fresh"])
        return update * h + (1 - update) * fresh

    def step(params, h0):
        scores = jnp.full((batch, beams), -jnp.inf).at[:, 0].set(0.0)
        tokens = jnp.zeros((batch, beams, length), jnp.int32)
        finished = jnp.zeros((batch, beams), bool)
        state = jnp.repeat(h0[:, None], beams, axis=1)
        last = jnp.ones((batch, beams), jnp.int32)

        def advance(carry, t):
            scores, tokens, finished, state, last = carry
            state = cell(params, state, params["embed"][last])
            logp = nn.log_softmax(state @ params["embed"].T, axis=-1)
            only_end = jnp.where(jnp.arange(vocabulary) == 0, 0.0, -jnp.inf)
            logp = jnp.where(finished[..., None], only_end, logp)
            total = (scores[..., None] + logp).reshape(batch, beams * vocabulary)
            scores, flat = lax.top_k(total, beams)
            parent, last = flat // vocabulary, flat % vocabulary
            tokens = jnp.take_along_axis(tokens, parent[..., None], axis=1).at[:, :, t].set(last)
            finished = jnp.take_along_axis(finished, parent, axis=1) | (last == 0)
            state = jnp.take_along_axis(state, parent[..., None], axis=1)
            return (scores, tokens, finished, state, last), None

        carry = (scores, tokens, finished, state, last)
        (scores, tokens, *_), _ = lax.scan(advance, carry, jnp.arange(length))
        lengths = jnp.sum(tokens != 0, axis=-1)
        final = scores / ((5.0 + lengths) / 6.0) ** 0.6
        best = jnp.argmax(final, axis=-1)
        chosen = jnp.take_along_axis(tokens, best[:, None, None], axis=1)[:, 0]
        return chosen, jnp.sort(final, axis=-1)

    rng = np.random.default_rng(0)

    def draw(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {"embed": rng.standard_normal((vocabulary, features)).astype(np.float32),
              "gates": draw(2 * features, 2 * features), "fresh": draw(2 * features, features),
              "bias": np.zeros(2 * features, np.float32)}
    return step, (params, rng.standard_normal((batch, features)).astype(np.float32))
