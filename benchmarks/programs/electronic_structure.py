"""Restricted Hartree-Fock energies of hydrogen chains, and the forces (Roothaan 1951)."""

import numpy as np

FIELD = "quantum chemistry"
SIZES = {
    "tiny": dict(molecules=2, atoms=4, iterations=3),
    "small": dict(molecules=4, atoms=6, iterations=6),
    "large": dict(molecules=64, atoms=10, iterations=10),
}


def make(lib, molecules, atoms, iterations):
    jnp = lib.numpy
    exponents = np.array([1.309756, 0.233136], np.float32)  # a hydrogen's two s functions
    alpha = np.tile(exponents, atoms)
    norms = (2 * alpha / np.pi) ** 0.75
    orbitals = 2 * atoms

    def boys(t):
        small = t < 1e-3
        root = jnp.sqrt(jnp.where(small, 1.0, t))
        large = 0.5 * np.pi**0.5 * lib.scipy.special.erf(root) / root
        return jnp.where(small, 1 - t / 3 + t**2 / 10, large)

    def integrals(nuclei):
        centres = jnp.repeat(nuclei, 2, axis=0)
        total = alpha[:, None] + alpha[None]
        reduced = alpha[:, None] * alpha[None] / total
        r2 = jnp.sum((centres[:, None] - centres[None]) ** 2, axis=-1)
        product = norms[:, None] * norms[None] * jnp.exp(-reduced * r2)
        overlap = product * (np.pi / total) ** 1.5
        kinetic = reduced * (3 - 2 * reduced * r2) * overlap
        middle = alpha[:, None, None] * centres[:, None] + alpha[None, :, None] * centres[None]
        middle = middle / total[..., None]
        to_nuclei = jnp.sum((middle[:, :, None] - nuclei) ** 2, axis=-1)
        attraction = -2 * np.pi / total * product * boys(total[..., None] * to_nuclei).sum(-1)
        apart = jnp.sum((middle[:, :, None, None] - middle) ** 2, axis=-1)
        p, q = total[:, :, None, None], total
        repulsion = 2 * np.pi**2.5 / (p * q * np.sqrt(p + q)) * boys(p * q / (p + q) * apart)
        repulsion = repulsion * product[:, :, None, None] * product
        return overlap, kinetic + attraction, repulsion

    def fock(density, core, repulsion):
        coulomb = jnp.einsum("pqrs,rs->pq", repulsion, density)
        exchange = jnp.einsum("prqs,rs->pq", repulsion, density)
        return core + coulomb - 0.5 * exchange

    def energy(nuclei):
        overlap, core, repulsion = integrals(nuclei)
        values, vectors = jnp.linalg.eigh(overlap)
        orthogonal = vectors / jnp.sqrt(values) @ vectors.T

        def iterate(_, density):
            f = orthogonal @ fock(density, core, repulsion) @ orthogonal
            _, c = jnp.linalg.eigh(f)
            occupied = (orthogonal @ c)[:, : atoms // 2]
            return 0.5 * density + occupied @ occupied.T

        density = lib.lax.fori_loop(0, iterations, iterate, jnp.zeros((orbitals, orbitals)))
        electronic = 0.5 * jnp.sum(density * (core + fock(density, core, repulsion)))
        i, j = np.triu_indices(atoms, 1)
        distance = jnp.linalg.norm(nuclei[i] - nuclei[j], axis=-1)
        return electronic + jnp.sum(1 / distance), density

    def step(geometries):
        with lib.default_matmul_precision("highest"):
            (energies, densities), slopes = lib.vmap(lib.value_and_grad(energy, has_aux=True))(
                geometries
            )
        return energies, densities, -slopes

    rng = np.random.default_rng(0)
    line = np.stack([1.6 * np.arange(atoms), *np.zeros((2, atoms))], axis=-1)
    geometries = line + 0.1 * rng.standard_normal((molecules, atoms, 3))
    return step, (geometries.astype(np.float32),)
