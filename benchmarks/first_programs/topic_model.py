"""Topics of documents by variational inference, with a step on their prior (Blei 2003)."""

import numpy as np

FIELD = "text"
SIZES = {
    "tiny": dict(documents=6, words=12, topics=3, inner=3),
    "small": dict(documents=128, words=400, topics=16, inner=20),
    "large": dict(documents=4096, words=8000, topics=64, inner=40),
}


def make(lib, documents, words, topics, inner):
    jnp = lib.numpy
    special = lib.scipy.special

    def expected_log(a):
        return special.digamma(a) - special.digamma(jnp.sum(a, axis=-1, keepdims=True))

    def step(counts, topic_word, prior):
        log_topic = expected_log(topic_word)
        weights = jnp.exp(log_topic)

        def going(state):
            _, change, n = state
            return (change > 1e-3) & (n < inner)

        def update(state):
            gamma, _, n = state
            theta = jnp.exp(expected_log(gamma))
            norm = theta @ weights + 1e-10
            new = prior + theta * ((counts / norm) @ weights.T)
            return new, jnp.mean(jnp.abs(new - gamma)), n + 1

        start = (jnp.ones((documents, topics), jnp.float32) + counts.mean(), jnp.float32(1), 0)
        gamma, _, n = lib.lax.while_loop(going, update, start)
        theta = jnp.exp(expected_log(gamma))
        norm = theta @ weights + 1e-10
        topic_word = 0.1 + weights * (theta.T @ (counts / norm))

        log_theta = expected_log(gamma)
        bound = jnp.sum(counts * jnp.log(norm))
        bound += jnp.sum((prior - gamma) * log_theta) + jnp.sum(special.gammaln(gamma))
        bound -= jnp.sum(special.gammaln(jnp.sum(gamma, axis=1)))

        def of_prior(a):
            return documents * (special.gammaln(jnp.sum(a)) - jnp.sum(special.gammaln(a))) \
                + jnp.sum((a - 1) * jnp.sum(log_theta, axis=0))

        slope = lib.grad(of_prior)(prior)
        diagonal = -documents * special.polygamma(1, prior)
        shared = documents * special.polygamma(1, jnp.sum(prior))
        b = jnp.sum(slope / diagonal) / (1 / shared + jnp.sum(1 / diagonal))
        prior = jnp.maximum(prior - (slope - b) / diagonal, 0.01)
        best = jnp.argsort(-topic_word, axis=1)[:, :5]
        return topic_word, prior, gamma, bound, n, best

    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(words, 0.1), topics)
    mixture = rng.dirichlet(np.full(topics, 0.3), documents)
    counts = np.stack([rng.multinomial(120, p / p.sum()) for p in mixture @ truth])
    topic_word = rng.gamma(2.0, 0.5, (topics, words))
    prior = np.full(topics, 0.5)
    return step, tuple(a.astype(np.float32) for a in (counts, topic_word, prior))
