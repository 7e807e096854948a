"""An EM step of hidden Markov models over many sequences: forward-backward, Viterbi (Baum 1970)."""

import numpy as np

FIELD = "sequence models"
SIZES = {
    "tiny": dict(sequences=3, length=8, states=4, symbols=6),
    "small": dict(sequences=32, length=40, states=12, symbols=20),
    "large": dict(sequences=1024, length=256, states=64, symbols=256),
}


def make(lib, sequences, length, states, symbols):
    jnp = lib.numpy

    def expectations(start, transition, emission, text):
        seen = emission[:, text].T

        def forth(alpha, b):
            alpha = (alpha @ transition) * b
            scale = jnp.sum(alpha)
            return alpha / scale, (alpha / scale, scale)

        first = start * seen[0]
        scale = jnp.sum(first)
        _, (alphas, scales) = lib.lax.scan(forth, first / scale, seen[1:])
        alphas = jnp.concatenate([(first / scale)[None], alphas])

        def back(beta, given):
            b, scale = given
            new = transition @ (b * beta) / scale
            return new, new

        _, betas = lib.lax.scan(back, jnp.ones(states), (seen[1:], scales), reverse=True)
        betas = jnp.concatenate([betas, jnp.ones((1, states))])
        gamma = alphas * betas
        pairs = jnp.einsum("ti,tj->ij", alphas[:-1], seen[1:] * betas[1:] / scales[:, None])
        counts = jnp.zeros((symbols, states)).at[text].add(gamma)
        return gamma[0], pairs * transition, counts, jnp.log(scale) + jnp.sum(jnp.log(scales))

    def viterbi(start, transition, emission, text):
        """The log probability of the best path, and the path."""
        log_transition, log_seen = jnp.log(transition), jnp.log(emission[:, text].T)

        def forth(score, b):
            options = score[:, None] + log_transition
            return jnp.max(options, axis=0) + b, jnp.argmax(options, axis=0)

        score, pointers = lib.lax.scan(forth, jnp.log(start) + log_seen[0], log_seen[1:])
        last = jnp.argmax(score)
        _, path = lib.lax.scan(lambda s, p: (p[s], p[s]), last, pointers, reverse=True)
        return jnp.max(score), jnp.append(path, last)

    def step(start, transition, emission, texts):
        args = (start, transition, emission)
        each = lib.vmap(lambda text: expectations(*args, text))(texts)
        first, pairs, counts, likelihood = lib.tree.map(lambda x: jnp.sum(x, axis=0), each)
        best, paths = lib.vmap(lambda text: viterbi(*args, text))(texts)
        histogram = jnp.bincount(paths.ravel(), length=states)
        return (first / jnp.sum(first), pairs / jnp.sum(pairs, axis=1, keepdims=True),
                (counts / jnp.sum(counts, axis=0)).T, likelihood, best, histogram)  # fmt: skip

    rng = np.random.default_rng(0)
    start = rng.dirichlet(np.ones(states)).astype(np.float32)
    transition = rng.dirichlet(np.ones(states), states).astype(np.float32)
    emission = rng.dirichlet(np.full(symbols, 0.5), states) + 1e-4
    emission = (emission / emission.sum(1, keepdims=True)).astype(np.float32)
    texts = rng.integers(0, symbols, (sequences, length)).astype(np.int32)
    return step, (start, transition, emission, texts)
