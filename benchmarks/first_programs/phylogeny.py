"""The likelihood of a tree of species by pruning, and its slopes to branches (Felsenstein 1981)."""

import numpy as np

FIELD = "biology"
SIZES = {
    "tiny": dict(species=4, sites=10),
    "small": dict(species=16, sites=500),
    "large": dict(species=128, sites=2**15),
}


def make(lib, species, sites):
    jnp = lib.numpy
    rates, inner = 4, species - 1

    def generator(params):
        """Of substitutions, reversible in time, one a unit of time on average."""
        frequencies = lib.nn.softmax(params["frequencies"])
        exchange = jnp.exp(jnp.concatenate([params["exchange"], jnp.zeros(1, jnp.float32)]))
        rows, cols = np.triu_indices(4, 1)
        q = jnp.zeros((4, 4), jnp.float32).at[rows, cols].set(exchange)
        q = (q + q.T) * frequencies
        q = q - jnp.diag(jnp.sum(q, axis=1))
        return q / -jnp.sum(jnp.diag(q) * frequencies), frequencies

    def transitions(q, frequencies, times):
        """e^(q t) for all times, by the eigenvectors of a symmetric matrix."""
        root = jnp.sqrt(frequencies)
        values, vectors = jnp.linalg.eigh((q * root[:, None]) / root)
        grown = jnp.exp(times[..., None] * values)
        return jnp.einsum("ik,...k,jk->...ij", vectors / root[:, None], grown,
                          vectors * root[:, None])

    def likelihood(params, leaves, left, right):
        q, frequencies = generator(params)
        shape = jnp.exp(params["shape"])
        middle = (jnp.arange(rates) + 0.5) / rates
        speed = (-jnp.log(1 - middle)) ** (1 / shape)
        speed = speed / jnp.mean(speed)
        times = jnp.exp(params["branches"])[:, None] * speed
        p = transitions(q, frequencies, times)

        def join(state, node):
            partial, scale = state
            a, b, k = node
            up = jnp.einsum("rij,srj->sri", p[a], partial[a])
            up = up * jnp.einsum("rij,srj->sri", p[b], partial[b])
            high = jnp.max(up, axis=(1, 2), keepdims=True)
            partial = partial.at[k].set(up / high)
            return (partial, scale + jnp.log(high[:, 0, 0])), None

        start = jnp.zeros((2 * species - 1, sites, rates, 4), jnp.float32)
        start = start.at[:species].set(lib.nn.one_hot(leaves, 4)[:, :, None, :])
        (partial, scale), _ = lib.lax.scan(
            join, (start, jnp.zeros(sites, jnp.float32)),
            (left, right, jnp.arange(species, 2 * species - 1)))
        site = jnp.log(jnp.mean(partial[-1] @ frequencies, axis=1)) + scale
        return jnp.sum(site) / sites, site

    def improve(params, leaves, left, right):
        rule = lib.value_and_grad(likelihood, has_aux=True)
        (value, site), slopes = rule(params, leaves, left, right)
        params = lib.tree.map(lambda p, g: p + 0.02 * g / (1e-3 + jnp.abs(g)), params, slopes)
        return params, value, site, slopes

    rng = np.random.default_rng(0)
    free, left, right = list(range(species)), [], []
    for k in range(inner):
        a, b = (free.pop(rng.integers(len(free))) for _ in range(2))
        left.append(a)
        right.append(b)
        free.append(species + k)
    ancestor = rng.integers(0, 4, sites)
    leaves = np.where(rng.uniform(size=(species, sites)) < 0.3,
                      rng.integers(0, 4, (species, sites)), ancestor)
    params = dict(frequencies=np.zeros(4), exchange=np.zeros(5), shape=np.zeros(()),
                  branches=rng.normal(-2, 0.3, 2 * species - 1))
    params = {k: np.asarray(v, np.float32) for k, v in params.items()}
    return improve, (params, *(np.asarray(a, np.int32) for a in (leaves, left, right)))
