"""Gradient of a mask network that steers a minimum-variance beamformer (Heymann et al. 2016)."""

import numpy as np

FIELD = "audio"
# at the highest precision of products two libraries differ by 1e-2 on a CPU and on a GPU, in
# TensorFloat-32 each by 3e-2 to 6e-2 from that: the matrices that are inverted are nearly singular
TOLERANCE = {"gpu": 8e-2}
SIZES = {
    "tiny": dict(batch=2, microphones=3, samples=128, window=16, width=8),
    "small": dict(batch=2, microphones=4, samples=4096, window=128, width=32),
    "large": dict(batch=16, microphones=8, samples=65536, window=512, width=256),
}


def make(lib, batch, microphones, samples, window, width):
    jnp, nn = lib.numpy, lib.nn
    hop = window // 2
    frames = (samples - window) // hop + 1
    bins = window // 2 + 1
    place = np.arange(frames)[:, None] * hop + np.arange(window)
    sine = np.sin(np.pi * (np.arange(window) + 0.5) / window).astype(np.float32)

    def analyse(signal):
        return jnp.fft.rfft(signal[..., place] * sine, axis=-1)  # ..., frames, bins

    def synthesise(spectrum):
        pieces = jnp.fft.irfft(spectrum, n=window, axis=-1) * sine
        return jnp.zeros(samples).at[place].add(pieces)

    def masks(params, spectra):
        features = jnp.log1p(jnp.abs(spectra[0]))
        h = jnp.tanh(features @ params["w1"] + params["b1"])
        h = jnp.tanh(h @ params["w2"] + params["b2"])
        speech, noise = jnp.split(nn.sigmoid(h @ params["w3"]), 2, axis=-1)
        return speech, noise

    def covariance(mask, spectra):
        weighted = jnp.einsum("tf,ctf,dtf->fcd", mask, spectra, spectra.conj())
        return weighted / (mask.sum(axis=0)[:, None, None] + 1e-6)

    def enhance(params, signal):
        spectra = analyse(signal)  # microphones, frames, bins
        speech, noise = masks(params, spectra)
        phi_speech, phi_noise = covariance(speech, spectra), covariance(noise, spectra)
        load = 1e-2 * jnp.trace(phi_noise, axis1=1, axis2=2).real / microphones + 1e-4
        phi_noise = phi_noise + load[:, None, None] * jnp.eye(microphones)
        ratio = jnp.linalg.solve(phi_noise, phi_speech)
        weights = ratio[:, :, 0] / jnp.trace(ratio, axis1=1, axis2=2)[:, None]
        return synthesise(jnp.einsum("fc,ctf->tf", weights.conj(), spectra))

    def loss(params, signals, clean):
        estimates = lib.vmap(enhance, in_axes=(None, 0))(params, signals)
        scale = jnp.sum(estimates * clean, axis=1) / jnp.sum(clean**2, axis=1)
        target = scale[:, None] * clean
        error = jnp.sum((estimates - target) ** 2, axis=1)
        return -jnp.mean(10 * jnp.log10(jnp.sum(target**2, axis=1) / error)), estimates

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "w1": normal(bins, width), "b1": np.zeros(width, np.float32),
        "w2": normal(width, width), "b2": np.zeros(width, np.float32),
        "w3": normal(width, 2 * bins),
    }  # fmt: skip
    time = np.arange(samples)
    pitch = rng.uniform(0.02, 0.2, (batch, 3, 1))
    clean = np.sin(2 * np.pi * pitch * time).sum(axis=1) * (1 + np.sin(time / 40))
    delays = rng.integers(0, 4, (batch, microphones)) * (np.arange(microphones) > 0)
    signals = [[np.roll(c, d) for d in row] for c, row in zip(clean, delays)]
    reach = rng.uniform(0.2, 0.5, (batch, microphones, 1))
    noise = reach * rng.standard_normal((batch, 1, samples))
    signals = np.array(signals) + noise + 0.3 * rng.standard_normal((batch, microphones, samples))
    step = lib.value_and_grad(loss, has_aux=True)
    return step, (params, signals.astype(np.float32), clean.astype(np.float32))
