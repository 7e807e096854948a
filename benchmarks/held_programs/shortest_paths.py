"""All shortest paths with their next nodes (Floyd, Warshall), and centralities from them."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(nodes=12, degree=3),
    "small": dict(nodes=160, degree=6),
    "large": dict(nodes=2048, degree=8),
}


def make(lib, nodes, degree):
    jnp, lax = lib.numpy, lib.lax

    def step(senders, receivers, lengths):
        far = jnp.full((nodes, nodes), jnp.inf)
        distance = far.at[senders, receivers].min(lengths)
        distance = distance.at[jnp.arange(nodes), jnp.arange(nodes)].set(0.0)
        following = jnp.where(jnp.isfinite(distance), jnp.arange(nodes), -1)

        def through(k, carry):
            distance, following = carry
            detour = distance[:, k, None] + distance[None, k, :]
            shorter = detour < distance
            return (jnp.where(shorter, detour, distance),
                    jnp.where(shorter, following[:, k, None], following))

        distance, following = lax.fori_loop(0, nodes, through, (distance, following))
        reached = jnp.isfinite(distance)
        total = jnp.sum(jnp.where(reached, distance, 0.0), axis=1)
        count = jnp.sum(reached, axis=1) - 1
        closeness = count / jnp.maximum(total, 1e-6) * count / (nodes - 1)

        def hop(carry, _):
            at, visits = carry
            at = jnp.where(at == jnp.arange(nodes), at, following[at, jnp.arange(nodes)])
            return (at, visits.at[at.ravel()].add(1)), None

        start = jnp.broadcast_to(jnp.arange(nodes)[:, None], (nodes, nodes))
        (_, visits), _ = lax.scan(hop, (start, jnp.zeros(nodes, jnp.int32)), None, length=8)
        diameter = jnp.max(jnp.where(reached, distance, -jnp.inf))
        return distance, closeness, visits, diameter

    rng = np.random.default_rng(0)
    senders = np.repeat(np.arange(nodes), degree).astype(np.int32)
    receivers = rng.integers(0, nodes, nodes * degree).astype(np.int32)
    receivers[::degree] = (np.arange(nodes) + 1) % nodes
    return step, (senders, receivers, rng.uniform(0.1, 1, nodes * degree).astype(np.float32))
