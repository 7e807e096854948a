"""An SGD step of gated, dilated, causal convolutions over samples of sound (Oord et al. 2016)."""

import numpy as np

FIELD = "audio"
SIZES = {
    "tiny": dict(batch=2, length=40, channels=8, skip=8, dilations=(1, 2), levels=16),
    "small": dict(batch=2, length=400, channels=16, skip=16, dilations=(1, 2, 4, 8), levels=64),
    "large": dict(batch=8, length=16000, channels=64, skip=128,
                  dilations=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512), levels=256),
}
TOLERANCE = {"cpu": 2e-3, "gpu": 5e-2}  # by TF32 2e-2 from float32


def make(lib, batch, length, channels, skip, dilations, levels):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax

    def causal(x, w, dilation):
        return lax.conv_general_dilated(x, w, (1,), [(dilation, 0)], rhs_dilation=(dilation,),
                                        dimension_numbers=("NWC", "WIO", "NWC"))

    def loss(params, sound):
        x, total = params["embedding"][sound[:, :-1]], 0.0
        for p, dilation in zip(params["layers"], dilations):
            a, b = jnp.split(causal(x, p["both"], dilation) + p["bias"], 2, axis=-1)
            h = jnp.tanh(a) * nn.sigmoid(b)
            x, total = x + h @ p["residual"], total + h @ p["skip"]
        h = nn.relu(nn.relu(total) @ params["first"])
        logits = h @ params["last"]
        of_next = jnp.take_along_axis(logits, sound[:, 1:, None], axis=-1)[..., 0]
        return jnp.mean(nn.logsumexp(logits, axis=-1) - of_next)

    def step(params, sound):
        value, slope = lib.value_and_grad(loss)(params, sound)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, slope), slope, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    layers = [{"both": draw(2, channels, 2 * channels), "bias": np.zeros(2 * channels, np.float32),
               "residual": draw(channels, channels), "skip": draw(channels, skip)}
              for _ in dilations]
    params = {"embedding": draw(1, levels, channels)[0] * 4, "layers": layers,
              "first": draw(skip, skip), "last": draw(skip, levels)}
    return step, (params, rng.integers(0, levels, (batch, length + 1)).astype(np.int32))
