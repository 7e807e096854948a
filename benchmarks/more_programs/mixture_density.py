"""An attentive neural process with mixtures of Gaussians as outputs (Kim et al. 2019)."""

import itertools

import numpy as np

FIELD = "meta-learning"
SIZES = {
    "tiny": dict(tasks=3, context=5, targets=7, width=8, components=2),
    "small": dict(tasks=16, context=20, targets=30, width=32, components=4),
    "large": dict(tasks=256, context=100, targets=200, width=256, components=10),
}


def make(lib, tasks, context, targets, width, components):
    jnp = lib.numpy

    def mlp(layers, x):
        for k, (w, b) in enumerate(layers):
            x = x @ w + b
            if k < len(layers) - 1:
                x = lib.nn.silu(x)
        return x

    def predict(params, xc, yc, xt):
        """The latent's distribution of a context, and the mixture at the targets, of one task."""
        pairs = jnp.concatenate([xc, yc], axis=-1)
        values = mlp(params["encoder"], pairs)
        query, keys = mlp(params["place"], xt), mlp(params["place"], xc)
        near = lib.nn.softmax(query @ keys.T / float(np.sqrt(width)), axis=-1)
        mean, spread = jnp.split(mlp(params["latent"], jnp.mean(values, axis=0)), 2)
        return near @ values, mean, 0.1 + 0.9 * lib.nn.sigmoid(spread)

    def log_likelihood(raw, y):
        logits, means, raw_scale = jnp.split(raw, 3, axis=-1)
        scale = 0.05 + lib.nn.softplus(raw_scale)
        each = lib.scipy.stats.norm.logpdf(y, means, scale)
        return lib.nn.logsumexp(lib.nn.log_softmax(logits) + each, axis=-1)

    def task_loss(params, key, xc, yc, xt, yt):
        deterministic, prior_mean, prior_scale = predict(params, xc, yc, xt)
        _, mean, scale = predict(params, xt, yt, xt)
        z = mean + scale * lib.random.normal(key, (width,))
        joined = jnp.concatenate([xt, deterministic, jnp.tile(z, (targets, 1))], axis=-1)
        fit = jnp.mean(log_likelihood(mlp(params["decoder"], joined), yt))
        kl = jnp.log(prior_scale / scale) - 0.5
        kl = kl + 0.5 * (scale**2 + (mean - prior_mean) ** 2) / prior_scale**2
        return jnp.sum(kl) / targets - fit

    def loss(params, seed, xc, yc, xt, yt):
        keys = lib.random.split(lib.random.key(seed), tasks)
        each = lib.vmap(task_loss, in_axes=(None, 0, 0, 0, 0, 0))(params, keys, xc, yc, xt, yt)
        return jnp.mean(each), jnp.quantile(each, jnp.array([0.1, 0.5, 0.9]))

    rng = np.random.default_rng(0)

    def draw(*widths):
        return [((rng.standard_normal((m, n)) / np.sqrt(m)).astype(np.float32),
                 np.zeros(n, np.float32)) for m, n in itertools.pairwise(widths)]  # fmt: skip

    params = {
        "encoder": draw(2, width, width),
        "place": draw(1, width, width),
        "latent": draw(width, width, 2 * width),
        "decoder": draw(1 + 2 * width, width, width, 3 * components),
    }
    phase = rng.uniform(0, 2 * np.pi, (tasks, 1, 1))
    x = rng.uniform(-2, 2, (tasks, context + targets, 1))
    y = np.sin(2 * x + phase) + 0.1 * rng.standard_normal(x.shape)
    parts = [a[:, s].astype(np.float32) for s in (slice(context), slice(context, None))
             for a in (x, y)]  # fmt: skip
    return lib.value_and_grad(loss, has_aux=True), (params, np.uint32(0), *parts)
