"""Loss and gradient of a language model of two LSTM layers, by scan (Zaremba et al. 2014)."""

import numpy as np

FIELD = "recurrent networks"
SIZES = {
    "tiny": dict(batch=4, length=6, width=16, words=32),
    "small": dict(batch=16, length=32, width=64, words=256),
    "large": dict(batch=64, length=128, width=512, words=4096),
}


def make(lib, batch, length, width, words):
    jnp, nn = lib.numpy, lib.nn

    def cell(params, state, x):
        h, c = state
        gates = x @ params["input"] + h @ params["recurrent"] + params["bias"]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = nn.sigmoid(f + 1.0) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return h, c

    def network(params, tokens):
        def advance(states, x):
            after = []
            for layer, state in zip(params["layers"], states):
                state = cell(layer, state, x)
                x = state[0]
                after.append(state)
            return tuple(after), x

        zeros = jnp.zeros((batch, width))
        states = tuple((zeros, zeros) for _ in params["layers"])
        _, hs = lib.lax.scan(advance, states, params["embedding"][tokens])
        return hs @ params["readout"]

    def loss(params, tokens):
        log_probs = nn.log_softmax(network(params, tokens[:-1]))
        return -jnp.mean(jnp.take_along_axis(log_probs, tokens[1:, :, None], axis=-1))

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "embedding": rng.standard_normal((words, width)).astype(np.float32),
        "layers": [
            {
                "input": normal(width, 4 * width),
                "recurrent": normal(width, 4 * width),
                "bias": np.zeros(4 * width, np.float32),
            }
            for _ in range(2)
        ],
        "readout": normal(width, words),
    }
    tokens = rng.integers(words, size=(length + 1, batch), dtype=np.int32)
    return lib.value_and_grad(loss), (params, tokens)
