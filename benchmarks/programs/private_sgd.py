"""A step of differentially private training: clipped per-sample gradients (Abadi et al. 2016)."""

import numpy as np

FIELD = "differential privacy"
SIZES = {
    "tiny": dict(batch=4, side=12, filters=4),
    "small": dict(batch=32, side=28, filters=8),
    "large": dict(batch=2048, side=28, filters=16),
}


def make(lib, batch, side, filters):
    jnp = lib.numpy
    clip, noise_multiplier, rate = 1.0, 0.8, 0.25

    def convolve(x, kernel, stride):
        return lib.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def pool(x):
        return lib.lax.reduce_window(x, -jnp.inf, lib.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")

    def network(params, x):
        x = jnp.tanh(convolve(x, params["conv1"], 2) + params["bias1"])
        x = pool(x)
        x = jnp.tanh(convolve(x, params["conv2"], 2) + params["bias2"])
        x = pool(x).reshape(x.shape[0], -1)
        x = jnp.tanh(x @ params["dense"] + params["bias3"])
        return x @ params["readout"]

    def loss(params, image, label):
        logits = network(params, image[None])[0]
        return -lib.nn.log_softmax(logits)[label]

    def clipped_gradient(params, image, label):
        value, gradient = lib.value_and_grad(loss)(params, image, label)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(gradient)))
        scale = jnp.minimum(1.0, clip / norm)
        return lib.tree.map(lambda g: scale * g, gradient), value, norm

    def step(seed, params, images, labels):
        per_sample = lib.vmap(clipped_gradient, in_axes=(None, 0, 0))
        gradients, values, norms = per_sample(params, images, labels)
        keys = lib.random.split(lib.random.key(seed), len(params))
        private = {}
        for key, name in zip(keys, sorted(params)):
            noise = noise_multiplier * clip * lib.random.normal(key, params[name].shape)
            private[name] = (gradients[name].sum(0) + noise) / batch
        updated = lib.tree.map(lambda p, g: p - rate * g, params, private)
        return updated, private, values.mean(), norms

    rng = np.random.default_rng(0)

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    after = lambda n: (n + 1) // 2 - 1
    flat = after(after(side)) ** 2 * 2 * filters
    params = {
        "conv1": weight(8, 8, 1, filters),
        "bias1": np.zeros(filters, np.float32),
        "conv2": weight(4, 4, filters, 2 * filters),
        "bias2": np.zeros(2 * filters, np.float32),
        "dense": weight(flat, 32),
        "bias3": np.zeros(32, np.float32),
        "readout": weight(32, 10),
    }
    images = rng.uniform(0, 1, (batch, side, side, 1)).astype(np.float32)
    labels = rng.integers(10, size=batch, dtype=np.int32)
    return step, (np.uint32(0), params, images, labels)
