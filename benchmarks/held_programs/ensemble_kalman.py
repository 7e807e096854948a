"""An ensemble Kalman filter for Lorenz 96, localised, with perturbed observations (Evensen)."""

import numpy as np

FIELD = "weather"
SIZES = {
    "tiny": dict(members=6, sites=12, every=3, cycles=2, substeps=2),
    "small": dict(members=40, sites=80, every=2, cycles=10, substeps=5),
    "large": dict(members=512, sites=1024, every=4, cycles=20, substeps=10),
}


def make(lib, members, sites, every, cycles, substeps):
    jnp, lax, random = lib.numpy, lib.lax, lib.random
    observed = np.arange(0, sites, every)
    gap = np.abs(np.arange(sites)[:, None] - np.arange(sites)[None])
    gap = np.minimum(gap, sites - gap)
    taper = np.exp(-((gap / 4.0) ** 2) / 2).astype(np.float32)

    def rate(x):
        ahead, before = jnp.roll(x, -1, axis=-1), jnp.roll(x, 1, axis=-1)
        return (ahead - jnp.roll(x, 2, axis=-1)) * before - x + 8.0

    def runge_kutta(x, _):
        dt = 0.02
        k1 = rate(x)
        k2 = rate(x + dt / 2 * k1)
        k3 = rate(x + dt / 2 * k2)
        k4 = rate(x + dt * k3)
        return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    def assimilate(ensemble, key, y):
        mean = jnp.mean(ensemble, axis=0)
        anomalies = (ensemble - mean) * 1.02
        ensemble = mean + anomalies
        cov = taper * (anomalies.T @ anomalies) / (members - 1)
        hph = cov[observed][:, observed] + jnp.eye(len(observed))
        noise = random.normal(key, (members, len(observed)))
        innovation = y + noise - ensemble[:, observed]
        factor = lib.scipy.linalg.cho_factor(hph)
        weights = lib.scipy.linalg.cho_solve(factor, innovation.T)
        return ensemble + (cov[:, observed] @ weights).T

    def step(ensemble, truth, seed):
        def cycle(carry, key):
            ensemble, truth = carry
            ensemble, _ = lax.scan(runge_kutta, ensemble, None, length=substeps)
            truth, _ = lax.scan(runge_kutta, truth, None, length=substeps)
            one, two = random.split(key)
            y = truth[observed] + random.normal(one, (len(observed),))
            ensemble = assimilate(ensemble, two, y)
            error = jnp.sqrt(jnp.mean((jnp.mean(ensemble, axis=0) - truth) ** 2))
            return (ensemble, truth), (error, jnp.mean(jnp.std(ensemble, axis=0)))

        keys = random.split(random.key(seed), cycles)
        (ensemble, _), track = lax.scan(cycle, (ensemble, truth), keys)
        return jnp.mean(ensemble, axis=0), track

    rng = np.random.default_rng(0)
    truth = (8 + rng.standard_normal(sites)).astype(np.float32)
    ensemble = (truth + rng.standard_normal((members, sites))).astype(np.float32)
    return step, (ensemble, truth, np.uint32(0))
