"""Gradient of a vocoder that makes sound of spectra, judged by spectra (Kong et al. 2020)."""

import numpy as np

FIELD = "audio"
SIZES = {
    "tiny": dict(batch=2, frames=6, bands=8, width=16, factors=(4, 2), window=16),
    "small": dict(batch=2, frames=16, bands=20, width=32, factors=(4, 4), window=64),
    "large": dict(batch=16, frames=32, bands=80, width=256, factors=(8, 8, 4), window=1024),
}
TOLERANCE = {"cpu": 2e-3, "gpu": 3e-2}


def make(lib, batch, frames, bands, width, factors, window):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NWC", "WIO", "NWC")
    bins = window // 2 + 1

    def conv(x, p, dilation=1):
        return lax.conv_general_dilated(x, p["w"], (1,), "SAME", rhs_dilation=(dilation,),
                                        dimension_numbers=names) + p["b"]

    def enlarge(x, p, factor):
        return lax.conv_transpose(x, p["w"], (factor,), "SAME", dimension_numbers=names) + p["b"]

    def network(params, x):
        x = conv(x, params["first"])
        for p, factor in zip(params["levels"], factors):
            x = enlarge(nn.leaky_relu(x, 0.1), p["up"], factor)
            total = 0.0
            for chain in p["chains"]:
                y = x
                for dilation, q in zip((1, 3), chain):
                    y = y + conv(nn.leaky_relu(conv(nn.leaky_relu(y, 0.1), q[0], dilation), 0.1),
                                 q[1])
                total = total + y
            x = total / len(p["chains"])
        return jnp.tanh(conv(nn.leaky_relu(x), params["last"]))[..., 0]

    def spectra(sound, mel):
        """Logarithms of bands of short Fourier transforms."""
        hop = window // 4
        starts = jnp.arange((sound.shape[1] - window) // hop + 1) * hop
        pieces = sound[:, starts[:, None] + jnp.arange(window)] * jnp.hanning(window)
        power = jnp.abs(jnp.fft.rfft(pieces)) ** 2
        return jnp.log(power @ mel + 1e-3)

    def loss(params, x, sound, mel):
        made = network(params, x)
        return (jnp.mean(jnp.abs(spectra(made, mel) - spectra(sound, mel)))
                + jnp.mean((made - sound) ** 2))

    def step(params, x, sound, mel):
        return lib.value_and_grad(loss)(params, x, sound, mel)

    rng = np.random.default_rng(0)

    def draw(k, a, b):
        w = rng.standard_normal((k, a, b)) / np.sqrt(k * a)
        return {"w": w.astype(np.float32), "b": np.zeros(b, np.float32)}

    levels, c = [], width
    for factor in factors:
        levels.append({"up": draw(2 * factor, c, c // 2),
                       "chains": [[[draw(k, c // 2, c // 2), draw(k, c // 2, c // 2)]
                                   for _ in range(2)] for k in (3, 7)]})
        c //= 2
    params = {"first": draw(7, bands, width), "levels": levels, "last": draw(7, c, 1)}
    length = frames * int(np.prod(factors))
    mel = rng.random((bins, bands)) * (rng.random((bins, bands)) < 0.2)
    return step, (params, rng.standard_normal((batch, frames, bands)).astype(np.float32),
                  (0.3 * rng.standard_normal((batch, length))).astype(np.float32),
                  mel.astype(np.float32))
