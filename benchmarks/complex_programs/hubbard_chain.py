"""Real time of a Hubbard-like chain of spins by exponentials of its bonds (Trotter 1959)."""

import numpy as np

FIELD = "condensed matter"
SIZES = {
    "tiny": dict(sites=4, steps=2),
    "small": dict(sites=12, steps=10),
    "large": dict(sites=20, steps=10),
}


def make(lib, sites, steps):
    jnp = lib.numpy
    x = np.array([[0, 1], [1, 0]], np.complex64)
    y = np.array([[0, -1j], [1j, 0]], np.complex64)
    z = np.diag([1, -1]).astype(np.complex64)
    hop = (np.kron(x, x) + np.kron(y, y)).astype(np.complex64) / 2
    repel = np.kron(z, z).astype(np.complex64) / 4

    def evolve(hopping, repulsion, state, dt):
        values, vectors = jnp.linalg.eigh(hopping * hop + repulsion * repel)
        gate = (vectors * jnp.exp(-1j * dt * values)) @ vectors.conj().T

        def bond(state, k):
            state = state.reshape(2**k, 4, -1)
            return jnp.einsum("ij,ajb->aib", gate, state).reshape(-1)

        def step(state, _):
            for k in [*range(0, sites - 1, 2), *range(1, sites - 1, 2)]:
                state = bond(state, k)
            odds = jnp.abs(state.reshape(2 ** (sites // 2), 2, -1)) ** 2
            return state, jnp.sum(odds[:, 0]) - jnp.sum(odds[:, 1])

        return lib.lax.scan(step, state, None, length=steps)

    rng = np.random.default_rng(0)
    state = rng.normal(size=2**sites) + 1j * rng.normal(size=2**sites)
    state = (state / np.linalg.norm(state)).astype(np.complex64)
    return evolve, (np.float32(1.0), np.float32(2.5), state, np.float32(0.05))
