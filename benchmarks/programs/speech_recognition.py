"""Gradient of dilated convolutions under the CTC loss (Graves et al. 2006)."""

import numpy as np

FIELD = "speech"
SIZES = {
    "tiny": dict(batch=2, frames=16, bands=4, width=8, symbols=5, labels=3, depth=2),
    "small": dict(batch=4, frames=128, bands=16, width=32, symbols=28, labels=20, depth=4),
    "large": dict(batch=32, frames=512, bands=80, width=256, symbols=64, labels=60, depth=7),
}


def make(lib, batch, frames, bands, width, symbols, labels, depth):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    never = -1e30

    def causal(x, kernel, dilation):
        padding = [((kernel.shape[0] - 1) * dilation, 0)]
        return lax.conv_general_dilated(
            x, kernel, (1,), padding, rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
        )  # fmt: skip

    def network(params, x):
        x = x @ params["input"]
        total = 0.0
        for index, p in enumerate(params["layers"]):
            both = causal(x, p["dilated"], 2**index) + p["bias"]
            filtered, gate = jnp.split(both, 2, axis=-1)
            h = jnp.tanh(filtered) * nn.sigmoid(gate)
            total = total + h @ p["skip"]
            x = x + h @ p["residual"]
        return nn.log_softmax(nn.gelu(total) @ params["output"], axis=-1)

    def ctc(log_probs, target, n_frames, n_labels):
        """-log of the sum over all alignments; symbol 0 is the blank."""
        states = jnp.zeros(2 * labels + 1, target.dtype).at[1::2].set(target)
        before = jnp.concatenate([jnp.array([-1, -1], states.dtype), states[:-2]])
        may_skip = (states != 0) & (states != before)

        def advance(alpha, inputs):
            t, emit = inputs
            one = jnp.concatenate([jnp.array([never]), alpha[:-1]])
            two = jnp.where(may_skip, jnp.concatenate([jnp.full(2, never), alpha[:-2]]), never)
            after = nn.logsumexp(jnp.stack([alpha, one, two]), axis=0) + emit[states]
            return jnp.where(t < n_frames, after, alpha), None

        start = jnp.where(jnp.arange(2 * labels + 1) < 2, log_probs[0, states], never)
        alpha, _ = lax.scan(advance, start, (jnp.arange(1, frames), log_probs[1:]))
        return -jnp.logaddexp(alpha[2 * n_labels], alpha[2 * n_labels - 1])

    def loss(params, x, targets, n_frames, n_labels):
        each = lib.vmap(ctc)(network(params, x), targets, n_frames, n_labels)
        return jnp.mean(each / n_labels), each

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def layer():
        return {
            "dilated": normal(2, width, 2 * width), "bias": np.zeros(2 * width, np.float32),
            "skip": normal(width, width), "residual": normal(width, width),
        }  # fmt: skip

    params = {
        "input": normal(bands, width),
        "layers": [layer() for _ in range(depth)],
        "output": normal(width, symbols),
    }
    x = rng.standard_normal((batch, frames, bands)).astype(np.float32)
    targets = rng.integers(1, symbols, size=(batch, labels), dtype=np.int32)
    n_frames = rng.integers(3 * frames // 4, frames + 1, size=batch, dtype=np.int32)
    n_labels = rng.integers(labels // 2 + 1, labels + 1, size=batch, dtype=np.int32)
    return lib.value_and_grad(loss, has_aux=True), (params, x, targets, n_frames, n_labels)
