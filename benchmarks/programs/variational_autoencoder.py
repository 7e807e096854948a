"""Evidence lower bound of a variational autoencoder and its gradient (Kingma and Welling 2014)."""

import numpy as np

FIELD = "generative models"
SIZES = {
    "tiny": dict(images=8, pixels=64, hidden=32, latent=4),
    "small": dict(images=64, pixels=784, hidden=128, latent=16),
    "large": dict(images=4096, pixels=784, hidden=1024, latent=64),
}


def make(lib, images, pixels, hidden, latent):
    jnp, nn = lib.numpy, lib.nn

    def dense(x, layer):
        return x @ layer["weight"] + layer["bias"]

    def encode(params, x):
        for layer in params["encoder"]:
            x = jnp.tanh(dense(x, layer))
        return dense(x, params["mean"]), dense(x, params["log_var"])

    def decode(params, z):
        for layer in params["decoder"]:
            z = jnp.tanh(dense(z, layer))
        return dense(z, params["logits"])

    def negative_elbo(params, x, seed):
        mean, log_var = encode(params, x)
        noise = lib.random.normal(lib.random.key(seed), mean.shape)
        z = mean + jnp.exp(0.5 * log_var) * noise
        logits = decode(params, z)
        likelihood = jnp.sum(x * logits - nn.softplus(logits), axis=1)
        divergence = 0.5 * jnp.sum(jnp.exp(log_var) + mean**2 - 1.0 - log_var, axis=1)
        return jnp.mean(divergence - likelihood)

    rng = np.random.default_rng(0)

    def layer(before, after):
        weight = rng.standard_normal((before, after)) / np.sqrt(before)
        return {"weight": weight.astype(np.float32), "bias": np.zeros(after, np.float32)}

    params = {
        "encoder": [layer(pixels, hidden), layer(hidden, hidden)],
        "mean": layer(hidden, latent),
        "log_var": layer(hidden, latent),
        "decoder": [layer(latent, hidden), layer(hidden, hidden)],
        "logits": layer(hidden, pixels),
    }
    x = (rng.random((images, pixels)) < 0.3).astype(np.float32)
    return lib.value_and_grad(negative_elbo), (params, x, np.uint32(0))
