"""Expectation-maximisation of a mixture of Gaussians that begins with k-means (Dempster 1977)."""

import math

import numpy as np

FIELD = "clustering"
SIZES = {
    "tiny": dict(points=60, dims=2, clusters=3, lloyds=2, iterations=3),
    "small": dict(points=2000, dims=4, clusters=8, lloyds=5, iterations=5),
    "large": dict(points=100_000, dims=16, clusters=32, lloyds=10, iterations=10),
}


def make(lib, points, dims, clusters, lloyds, iterations):
    jnp, linalg = lib.numpy, lib.scipy.linalg

    def lloyd(_, centres):
        x = centres["x"]
        cost = jnp.sum(centres["at"] ** 2, axis=1) - 2 * x @ centres["at"].T
        nearest = jnp.argmin(cost, axis=1)
        total = lib.ops.segment_sum(x, nearest, num_segments=clusters)
        count = jnp.bincount(nearest, length=clusters)
        return {"x": x, "at": total / jnp.maximum(count, 1)[:, None]}

    def log_prob(x, mean, cov):
        factor = jnp.linalg.cholesky(cov)
        z = linalg.solve_triangular(factor, (x - mean).T, lower=True)
        log_det = jnp.sum(jnp.log(jnp.diag(factor)))
        return -0.5 * jnp.sum(z**2, axis=0) - log_det - 0.5 * dims * math.log(2 * math.pi)

    def maximisation(x, responsibilities):
        count = responsibilities.sum(axis=0)
        means = (responsibilities.T @ x) / count[:, None]

        def covariance(weights, mean, count):
            centred = x - mean
            return (weights[:, None] * centred).T @ centred / count + 1e-3 * jnp.eye(dims)

        covs = lib.vmap(covariance, in_axes=(1, 0, 0))(responsibilities, means, count)
        return count / points, means, covs

    def fit(x, centres):
        at = lib.lax.fori_loop(0, lloyds, lloyd, {"x": x, "at": centres})["at"]
        nearest = jnp.argmin(jnp.linalg.norm(x[:, None] - at, axis=-1), axis=1)
        model = maximisation(x, lib.nn.one_hot(nearest, clusters) + 1e-4)

        def iterate(model, _):
            weights, means, covs = model
            each = lib.vmap(log_prob, in_axes=(None, 0, 0), out_axes=1)(x, means, covs)
            joint = each + jnp.log(weights)
            evidence = lib.scipy.special.logsumexp(joint, axis=1, keepdims=True)
            return maximisation(x, jnp.exp(joint - evidence)), jnp.mean(evidence)

        model, evidences = lib.lax.scan(iterate, model, None, length=iterations)
        return at, model, evidences

    rng = np.random.default_rng(0)
    truth = 4 * rng.standard_normal((clusters, dims))
    factors = 0.5 * rng.standard_normal((clusters, dims, dims)) + np.eye(dims)
    label = rng.integers(clusters, size=points)
    x = truth[label] + np.einsum("nij,nj->ni", factors[label], rng.standard_normal((points, dims)))
    centres = truth + 0.5 * rng.standard_normal(truth.shape)
    return fit, (x.astype(np.float32), centres.astype(np.float32))
