"""Lennard-Jones molecular dynamics with a neighbour list, by velocity Verlet (Verlet 1967)."""

import itertools

import numpy as np

FIELD = "molecular dynamics"
SIZES = {
    "tiny": dict(side=6, steps=2),
    "small": dict(side=8, steps=10),
    "large": dict(side=32, steps=50),
}


def lattice_neighbours(side, radius):
    """For each site of a periodic cubic lattice, the sites within a radius of it."""
    reach = range(-int(radius), int(radius) + 1)
    offsets = [o for o in itertools.product(reach, repeat=3) if 0 < np.linalg.norm(o) <= radius]
    sites = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
    around = (sites + np.array(offsets)) % side
    return sites[:, 0], around @ np.array([side * side, side, 1])


def make(lib, side, steps):
    jnp = lib.numpy
    spacing, cutoff, skin, dt = 1.1, 2.5, 0.25, 0.002
    box = side * spacing
    shift = 4 * (cutoff**-12 - cutoff**-6)  # the energy is continuous at the cutoff

    def pair_energy(r2):
        inverse = 1.0 / r2
        return 4.0 * (inverse**6 - inverse**3) - shift

    def energy(positions, neighbours):
        difference = positions[:, None, :] - positions[neighbours]
        difference = difference - box * jnp.round(difference / box)
        r2 = jnp.sum(difference**2, axis=-1)
        within = r2 < cutoff**2
        r2 = jnp.where(within, r2, 1.0)
        return 0.5 * jnp.sum(jnp.where(within, pair_energy(r2), 0.0))

    def simulate(positions, velocities, neighbours):
        potential_and_slope = lib.value_and_grad(energy)

        def verlet(state, _):
            positions, velocities, slope = state
            velocities = velocities - 0.5 * dt * slope
            positions = (positions + dt * velocities) % box
            potential, slope = potential_and_slope(positions, neighbours)
            velocities = velocities - 0.5 * dt * slope
            kinetic = 0.5 * jnp.sum(velocities**2)
            return (positions, velocities, slope), (potential, kinetic)

        _, slope = potential_and_slope(positions, neighbours)
        state = (positions, velocities, slope)
        (positions, velocities, slope), energies = lib.lax.scan(verlet, state, None, length=steps)
        angle = 2 * np.pi / box * positions  # an atom at the box's edge may be on either side
        return jnp.sin(angle), jnp.cos(angle), velocities, slope, energies

    rng = np.random.default_rng(0)
    sites, neighbours = lattice_neighbours(side, (cutoff + skin) / spacing)
    label = rng.permutation(len(sites))  # where an atom is says nothing about its number
    order = np.argsort(label)
    neighbours = label[neighbours][order]
    positions = (sites[order] + 0.5) * spacing + 0.05 * rng.standard_normal(sites.shape)
    velocities = rng.standard_normal(sites.shape)
    velocities -= velocities.mean(0)
    return simulate, (
        positions.astype(np.float32),
        velocities.astype(np.float32),
        neighbours.astype(np.int32),
    )
