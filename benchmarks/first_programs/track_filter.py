"""Kalman filters of many tracks, smoothed backwards, and their likelihood (Rauch 1965)."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(tracks=8, steps=6),
    "small": dict(tracks=512, steps=64),
    "large": dict(tracks=2**14, steps=512),
}


def make(lib, tracks, steps):
    jnp = lib.numpy
    dt = 0.1
    move = np.kron(np.eye(2), [[1, dt], [0, 1]]).astype(np.float32)
    look = np.kron(np.eye(2), [[1, 0]]).astype(np.float32)
    shake = np.kron(np.eye(2), [[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]).astype(np.float32)

    def smooth(seen, log_noise, log_drive):
        noise = jnp.exp(log_noise) * jnp.eye(2)
        drive = jnp.exp(log_drive) * shake

        def forward(state, z):
            mean, cov = state
            mean, cov = move @ mean, move @ cov @ move.T + drive
            surprise = z - look @ mean
            spread = look @ cov @ look.T + noise
            gain = jnp.linalg.solve(spread, look @ cov).T
            sign, logdet = jnp.linalg.slogdet(spread)
            fit = -0.5 * (surprise @ jnp.linalg.solve(spread, surprise) + logdet)
            after = mean + gain @ surprise
            left = jnp.eye(4) - gain @ look
            after_cov = left @ cov @ left.T + gain @ noise @ gain.T
            return (after, after_cov), (mean, cov, after, after_cov, fit * sign)

        start = (jnp.zeros(4).at[0].set(seen[0, 0]).at[2].set(seen[0, 1]), jnp.eye(4))
        last, (means, covs, filtered, filtered_covs, fits) = lib.lax.scan(forward, start, seen)

        def backward(after, known):
            mean, cov, predicted, spread = known
            gain = jnp.linalg.solve(spread, move @ cov).T
            mean = mean + gain @ (after[0] - predicted)
            cov = cov + gain @ (after[1] - spread) @ gain.T
            return (mean, cov), (mean, jnp.diagonal(cov))

        known = (filtered[:-1], filtered_covs[:-1], means[1:], covs[1:])
        _, (path, variances) = lib.lax.scan(backward, last, known, reverse=True)
        return path, variances, jnp.sum(fits)

    def all_tracks(seen, log_noise, log_drive):
        path, variances, fits = lib.vmap(smooth)(seen, log_noise, log_drive)
        return path[:, ::4], jnp.mean(variances, axis=0), fits

    rng = np.random.default_rng(0)
    velocity = np.cumsum(rng.standard_normal((tracks, steps, 2)) * dt**0.5, axis=1)
    seen = np.cumsum(velocity * dt, axis=1) + 0.3 * rng.standard_normal((tracks, steps, 2))
    log_noise = np.log(0.09) + 0.2 * rng.standard_normal(tracks)
    log_drive = 0.2 * rng.standard_normal(tracks)
    return all_tracks, tuple(a.astype(np.float32) for a in (seen, log_noise, log_drive))
