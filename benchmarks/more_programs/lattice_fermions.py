"""Propagator on a four-dimensional lattice of gauge links by conjugate gradients (Wilson 1974)."""

import numpy as np

FIELD = "lattice field theory"
SIZES = {
    "tiny": dict(space=2, time=4, iterations=3),
    "small": dict(space=4, time=8, iterations=8),
    "large": dict(space=16, time=32, iterations=20),
}


def make(lib, space, time, iterations):
    jnp = lib.numpy
    gamma = np.zeros((4, 4, 4), np.complex64)
    pauli = [np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]]), np.array([[1, 0], [0, -1]])]
    for k in range(3):
        gamma[k, :2, 2:], gamma[k, 2:, :2] = -1j * pauli[k], 1j * pauli[k]
    gamma[3, :2, 2:] = gamma[3, 2:, :2] = np.eye(2)
    gamma5 = np.diag([1, 1, -1, -1]).astype(np.complex64)
    minus, plus = np.eye(4, dtype=np.complex64) - gamma, np.eye(4, dtype=np.complex64) + gamma

    def hopping(links, psi):
        """Neighbours in eight directions, carried along the links."""
        out = jnp.zeros_like(psi)
        for mu in range(4):
            ahead = jnp.einsum("...ab,...sb->...sa", links[mu], jnp.roll(psi, -1, mu))
            back = jnp.einsum("...ba,...sb->...sa", links[mu].conj(), psi)
            out = out + jnp.einsum("st,...ta->...sa", minus[mu], ahead)
            out = out + jnp.einsum("st,...ta->...sa", plus[mu], jnp.roll(back, 1, mu))
        return out

    def dirac(links, kappa, psi):
        return psi - kappa * hopping(links, psi)

    def normal(links, kappa, psi):
        """gamma5 D gamma5 D, which is Hermitian and positive."""
        turned = jnp.einsum("st,...ta->...sa", gamma5, dirac(links, kappa, psi))
        return jnp.einsum("st,...ta->...sa", gamma5, dirac(links, kappa, turned))

    def inner(a, b):
        return jnp.sum(a.conj() * b).real

    def propagator(links, source, kappa):
        def iterate(state, _):
            x, r, p, square = state
            q = normal(links, kappa, p)
            rate = square / inner(p, q)
            x, r = x + rate * p, r - rate * q
            new = inner(r, r)
            return (x, r, r + new / square * p, new), jnp.sqrt(new)

        state = (jnp.zeros_like(source), source, source, inner(source, source))
        (x, *_), residuals = lib.lax.scan(iterate, state, None, length=iterations)
        correlator = jnp.sum(jnp.abs(x) ** 2, axis=(0, 1, 2, 4, 5))
        plaquette = jnp.einsum("...ab,...bc,...dc,...ad->...", links[0], jnp.roll(links[1], -1, 0),
                               jnp.roll(links[0], -1, 1).conj(), links[1].conj())  # fmt: skip
        return x, correlator, residuals, jnp.mean(plaquette.real)

    rng = np.random.default_rng(0)
    shape = (space, space, space, time)
    a = 0.3 * (rng.standard_normal((4, *shape, 3, 3)) + 1j * rng.standard_normal((4, *shape, 3, 3)))
    links, _ = np.linalg.qr(np.eye(3) + a)
    source = rng.standard_normal((*shape, 4, 3)) + 1j * rng.standard_normal((*shape, 4, 3))
    return propagator, (links.astype(np.complex64), source.astype(np.complex64), np.float32(0.11))
