"""Restricted Hartree-Fock of s orbitals: all integrals, the SCF loop, and forces on the nuclei."""

import numpy as np

FIELD = "quantum chemistry"
SIZES = {
    "tiny": dict(atoms=2, exponents=2, iterations=4),
    "small": dict(atoms=6, exponents=3, iterations=12),
    "large": dict(atoms=16, exponents=4, iterations=20),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}


def make(lib, atoms, exponents, iterations):
    jnp, lax = lib.numpy, lib.lax
    orbitals = atoms * exponents

    def boys(t):
        small = t < 1e-3
        safe = jnp.where(small, 1.0, t)
        value = 0.5 * jnp.sqrt(jnp.pi / safe) * lib.scipy.special.erf(jnp.sqrt(safe))
        return jnp.where(small, 1 - t / 3, value)

    def integrals(positions, charges, alphas):
        centres = jnp.repeat(positions, exponents, axis=0)
        a = jnp.tile(alphas, atoms)
        norm = (2 * a / jnp.pi) ** 0.75
        p = a[:, None] + a[None]
        mu = a[:, None] * a[None] / p
        r2 = jnp.sum((centres[:, None] - centres[None]) ** 2, axis=-1)
        pair = norm[:, None] * norm[None] * jnp.exp(-mu * r2)
        middle = (a[:, None, None] * centres[:, None] + a[None, :, None] * centres[None])
        middle = middle / p[..., None]
        overlap = pair * (jnp.pi / p) ** 1.5
        kinetic = mu * (3 - 2 * mu * r2) * overlap
        to_nuclei = jnp.sum((middle[:, :, None] - positions) ** 2, axis=-1)
        attraction = -jnp.sum(charges * (2 * jnp.pi / p * pair)[..., None]
                              * boys(p[..., None] * to_nuclei), axis=-1)  # fmt: skip
        q2 = jnp.sum((middle[:, :, None, None] - middle[None, None]) ** 2, axis=-1)
        pp, qq = p[:, :, None, None], p[None, None]
        repulsion = (2 * jnp.pi**2.5 / (pp * qq * jnp.sqrt(pp + qq))
                     * pair[:, :, None, None] * pair[None, None]
                     * boys(pp * qq / (pp + qq) * q2))  # fmt: skip
        return overlap, kinetic + attraction, repulsion

    def energy_of(density, core, repulsion):
        coulomb = jnp.einsum("ijkl,kl->ij", repulsion, density)
        exchange = jnp.einsum("ikjl,kl->ij", repulsion, density)
        fock = core + coulomb - 0.5 * exchange
        return fock, 0.5 * jnp.sum(density * (core + fock))

    def step(positions, charges, alphas):
        overlap, core, repulsion = integrals(positions, charges, alphas)
        values, vectors = jnp.linalg.eigh(overlap)
        half = (vectors / jnp.sqrt(values)) @ vectors.T

        def iterate(density, _):
            fock, energy = energy_of(density, core, repulsion)
            _, c = jnp.linalg.eigh(half @ fock @ half)
            occupied = (half @ c)[:, : atoms // 2]
            new = 2 * occupied @ occupied.T
            return 0.5 * density + 0.5 * new, energy

        start = jnp.zeros((orbitals, orbitals), core.dtype)
        density, energies = lax.scan(iterate, start, None, length=iterations)
        fock, _ = energy_of(density, core, repulsion)
        weighted = 0.25 * density @ fock @ density

        def lagrangian(positions):
            s, h, g = integrals(positions, charges, alphas)
            upper = jnp.triu_indices(atoms, 1)
            apart = jnp.sqrt(jnp.sum((positions[upper[0]] - positions[upper[1]]) ** 2, axis=-1))
            nuclear = jnp.sum(charges[upper[0]] * charges[upper[1]] / apart)
            return energy_of(density, h, g)[1] - jnp.sum(weighted * s) + nuclear

        return energies, density, lib.grad(lagrangian)(positions)

    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), -1).reshape(-1, 3)[:atoms]
    positions = (2.2 * grid + 0.2 * rng.standard_normal((atoms, 3))).astype(np.float32)
    return step, (positions, np.ones(atoms, np.float32),
                  (0.25 * 3.5 ** np.arange(exponents)).astype(np.float32))
