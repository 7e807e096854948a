"""Smoothing of tracks in logarithmic time, and its likelihood's gradient (Särkkä et al. 2021)."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(tracks=2, times=8),
    "small": dict(tracks=4, times=128),
    "large": dict(tracks=32, times=2048),
}


def make(lib, tracks, times):
    jnp = lib.numpy
    dt = 0.1
    f = np.kron(np.array([[1, dt], [0, 1]]), np.eye(2)).astype(np.float32)
    h = np.eye(2, 4, dtype=np.float32)
    first_mean, first_cov = np.zeros(4, np.float32), np.eye(4, dtype=np.float32)

    def model(log_drift, log_noise):
        spread = jnp.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
        return jnp.exp(log_drift) * jnp.kron(spread, jnp.eye(2)), jnp.exp(log_noise) * jnp.eye(2)

    def element(y, q, r):
        s = h @ q @ h.T + r
        gain = jnp.linalg.solve(s, h @ q).T
        weighted = jnp.linalg.solve(s, h @ f).T
        a = f - gain @ h @ f
        return a, gain @ y, q - gain @ s @ gain.T, weighted @ y, weighted @ h @ f

    def first_element(y, q, r):
        _, _, _, eta, j = element(y, q, r)
        s = h @ first_cov @ h.T + r
        gain = jnp.linalg.solve(s, h @ first_cov).T
        mean = first_mean + gain @ (y - h @ first_mean)
        return jnp.zeros((4, 4)), mean, first_cov - gain @ s @ gain.T, eta, j

    def filtering(left, right):
        (a1, b1, c1, eta1, j1), (a2, b2, c2, eta2, j2) = left, right
        forth = jnp.linalg.solve((jnp.eye(4) + c1 @ j2).T, a2.T).T
        back = jnp.linalg.solve((jnp.eye(4) + j2 @ c1).T, a1).T
        return (
            forth @ a1,
            forth @ (b1 + c1 @ eta2) + b2,
            forth @ c1 @ a2.T + c2,
            back @ (eta2 - j2 @ b1) + eta1,
            back @ j2 @ a1 + j1,
        )

    def smoothing(later, earlier):
        (e1, g1, l1), (e2, g2, l2) = later, earlier
        return e2 @ e1, e2 @ g1 + g2, e2 @ l1 @ e2.T + l2

    def smoother_element(mean, cov, q):
        e = jnp.linalg.solve(f @ cov @ f.T + q, f @ cov).T
        return e, mean - e @ f @ mean, cov - e @ f @ cov

    def surprise(mean, cov, y, q, r):
        s = h @ (f @ cov @ f.T + q) @ h.T + r
        sign, log_det = jnp.linalg.slogdet(2 * jnp.pi * s)
        residual = y - h @ f @ mean
        return 0.5 * (residual @ jnp.linalg.solve(s, residual) + sign * log_det)

    def smooth(y, log_drift, log_noise):
        q, r = model(log_drift, log_noise)
        rest = lib.vmap(element, in_axes=(0, None, None))(y[1:], q, r)
        first = first_element(y[0], q, r)
        elements = lib.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)
        _, means, covs, _, _ = lib.lax.associative_scan(lib.vmap(filtering), elements)
        each = lib.vmap(surprise, in_axes=(0, 0, 0, None, None))(means[:-1], covs[:-1], y[1:], q, r)
        parts = lib.vmap(smoother_element, in_axes=(0, 0, None))(means[:-1], covs[:-1], q)
        last = (jnp.zeros((4, 4)), means[-1], covs[-1])
        parts = lib.tree.map(lambda a, b: jnp.concatenate([a, b[None]]), parts, last)
        _, means, covs = lib.lax.associative_scan(lib.vmap(smoothing), parts, reverse=True)
        return jnp.sum(each), (means, jnp.diagonal(covs, axis1=1, axis2=2))

    def loss(params, y):
        with lib.default_matmul_precision("highest"):
            each, smoothed = lib.vmap(smooth)(y, params["log_drift"], params["log_noise"])
        return jnp.mean(each) / times, smoothed

    rng = np.random.default_rng(0)
    velocity = np.cumsum(0.3 * rng.standard_normal((tracks, times, 2)), axis=1)
    y = np.cumsum(dt * velocity, axis=1) + 0.3 * rng.standard_normal((tracks, times, 2))
    params = {
        "log_drift": np.zeros(tracks, np.float32),
        "log_noise": np.full(tracks, -2, np.float32),
    }
    return lib.value_and_grad(loss, has_aux=True), (params, y.astype(np.float32))
