"""Gradient of a gated model with convolutions as long as the text (Poli et al. 2023: Hyena)."""

import numpy as np

FIELD = "language"
SIZES = {
    "tiny": dict(batch=2, length=16, width=8, layers=2, words=16),
    "small": dict(batch=2, length=256, width=32, layers=2, words=64),
    "large": dict(batch=4, length=4096, width=256, layers=4, words=512),
}


def make(lib, batch, length, width, layers, words):
    jnp, nn = lib.numpy, lib.nn

    def layer_norm(x, scale):
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lib.lax.rsqrt(var + 1e-5) * scale

    def filters(p):
        """An MLP of the position gives the filters, under windows that decay."""
        t = jnp.linspace(0.0, 1.0, length)[:, None]
        bands = 2 * jnp.pi * jnp.arange(1, 5) * t
        position = jnp.concatenate([t, jnp.sin(bands), jnp.cos(bands)], axis=-1)
        h = jnp.sin(10.0 * (position @ p["filter1"]))
        h = jnp.sin(h @ p["filter2"]) @ p["filter3"]
        return h * jnp.exp(-t * jnp.linspace(1.0, 30.0, width))

    def long_conv(u, kernel, skip):
        u_f = jnp.fft.rfft(u, n=2 * length, axis=1)
        k_f = jnp.fft.rfft(kernel, n=2 * length, axis=0)
        return jnp.fft.irfft(u_f * k_f, n=2 * length, axis=1)[:, :length] + u * skip

    def short_conv(x, kernel):
        padded = jnp.pad(x, ((0, 0), (2, 0), (0, 0)))
        return sum(kernel[i] * padded[:, i : i + length] for i in range(3))

    def block(x, p):
        z = short_conv(layer_norm(x, p["norm1"]) @ p["project"], p["short"])
        gate, out, v = jnp.split(z, 3, axis=-1)
        y = out * long_conv(gate * v, filters(p), p["skip"])
        x = x + y @ p["out"]
        return x + nn.gelu(layer_norm(x, p["norm2"]) @ p["up"]) @ p["down"], None

    def loss(params, tokens):
        x = params["embedding"][tokens[:, :-1]]
        x, _ = lib.lax.scan(block, x, params["layers"])
        logits = layer_norm(x, 1.0) @ params["embedding"].T
        target = jnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1)[..., 0]
        return jnp.mean(nn.logsumexp(logits, axis=-1) - target)

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal((layers, *shape)) / np.sqrt(shape[0])).astype(np.float32)

    ones = np.ones((layers, width), np.float32)
    params = {
        "embedding": rng.standard_normal((words, width)).astype(np.float32) / np.float32(4),
        "layers": {
            "norm1": ones, "norm2": ones, "skip": ones, "short": normal(3, 3 * width),
            "project": normal(width, 3 * width), "out": normal(width, width),
            "filter1": normal(9, 16), "filter2": normal(16, 16), "filter3": normal(16, width),
            "up": normal(width, 2 * width), "down": normal(2 * width, width),
        },
    }  # fmt: skip
    tokens = rng.integers(words, size=(batch, length + 1), dtype=np.int32)
    return lib.value_and_grad(loss), (params, tokens)
