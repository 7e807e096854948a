"""Loss and gradient of a message-passing network on a sparse graph (Gilmer et al. 2017)."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(nodes=24, edges=80, features=8, layers=2),
    "small": dict(nodes=512, edges=4096, features=32, layers=2),
    "large": dict(nodes=40_000, edges=400_000, features=64, layers=3),
}


def make(lib, nodes, edges, features, layers):
    jnp = lib.numpy

    def network(params, x, senders, receivers):
        for layer in params["layers"]:
            messages = jnp.concatenate([x[senders], x[receivers]], axis=1)
            messages = lib.nn.relu(messages @ layer["message"] + layer["message_bias"])
            degree = jnp.zeros(nodes).at[receivers].add(1.0)
            received = jnp.zeros((nodes, features)).at[receivers].add(messages)
            received = received / jnp.maximum(degree, 1.0)[:, None]
            x = x + lib.nn.silu(jnp.concatenate([x, received], axis=1) @ layer["update"])
        return x @ params["readout"]

    def loss(params, x, senders, receivers, labels):
        logits = network(params, x, senders, receivers)
        picked = jnp.take_along_axis(lib.nn.log_softmax(logits), labels[:, None], axis=1)
        return -jnp.mean(picked)

    rng = np.random.default_rng(0)

    def weight(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "layers": [
            {
                "message": weight(2 * features, features),
                "message_bias": np.zeros(features, np.float32),
                "update": weight(2 * features, features),
            }
            for _ in range(layers)
        ],
        "readout": weight(features, 10),
    }
    senders, receivers = rng.integers(nodes, size=(2, edges), dtype=np.int32)
    labels = rng.integers(10, size=nodes, dtype=np.int32)
    x = rng.standard_normal((nodes, features)).astype(np.float32)
    return lib.value_and_grad(loss), (params, x, senders, receivers, labels)
