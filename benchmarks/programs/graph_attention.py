"""Loss and gradient of a graph attention network on a citation graph (Velickovic et al. 2018)."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(nodes=20, degree=3, features=8, hidden=4, heads=2),
    "small": dict(nodes=400, degree=8, features=64, hidden=8, heads=8),
    "large": dict(nodes=20_000, degree=16, features=256, hidden=16, heads=8),
}


def make(lib, nodes, degree, features, hidden, heads):
    jnp, nn = lib.numpy, lib.nn
    classes = 7

    def segment_softmax(scores, segments):
        largest = lib.ops.segment_max(scores, segments, num_segments=nodes)
        weights = jnp.exp(scores - largest[segments])
        total = lib.ops.segment_sum(weights, segments, num_segments=nodes)
        return weights / total[segments]

    def attend(p, x, senders, receivers):
        h = jnp.einsum("nf,fkh->nkh", x, p["weight"])
        to, of = jnp.sum(h * p["to"], axis=-1), jnp.sum(h * p["of"], axis=-1)
        scores = nn.leaky_relu(of[senders] + to[receivers], 0.2)
        alpha = segment_softmax(scores, receivers)
        messages = alpha[:, :, None] * h[senders]
        return lib.ops.segment_sum(messages, receivers, num_segments=nodes)

    def loss(params, x, senders, receivers, labels, train):
        h = attend(params["first"], x, senders, receivers)
        h = nn.elu(h.reshape(nodes, heads * hidden) + params["bias"])
        logits = attend(params["second"], h, senders, receivers).mean(axis=1)
        picked = jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
        decay = sum(jnp.sum(p**2) for p in lib.tree.leaves(params))
        return -jnp.sum(jnp.where(train, picked, 0.0)) / jnp.sum(train) + 2.5e-4 * decay, logits

    rng = np.random.default_rng(0)

    def layer(fan_in, fan_out):
        return {
            "weight": rng.standard_normal((fan_in, heads, fan_out)) / np.sqrt(fan_in),
            "to": 0.5 * rng.standard_normal((heads, fan_out)),
            "of": 0.5 * rng.standard_normal((heads, fan_out)),
        }

    params = {
        "first": layer(features, hidden),
        "second": layer(heads * hidden, classes),
        "bias": np.zeros(heads * hidden),
    }
    params = lib.tree.map(lambda p: p.astype(np.float32), params)
    popular = (nodes * rng.random((nodes, degree)) ** 2).astype(np.int32)  # few are cited by many
    itself = np.arange(nodes, dtype=np.int32)
    senders = np.concatenate([np.repeat(itself, degree), itself])
    receivers = np.concatenate([popular.ravel(), itself])
    x = (rng.random((nodes, features)) < 0.1).astype(np.float32)
    x /= np.maximum(x.sum(axis=1, keepdims=True), 1)
    labels = rng.integers(classes, size=nodes, dtype=np.int32)
    train = rng.random(nodes) < 0.3
    return lib.value_and_grad(loss, has_aux=True), (params, x, senders, receivers, labels, train)
