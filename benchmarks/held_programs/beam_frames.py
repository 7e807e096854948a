"""Sizing of a plane frame of beams: assembled stiffness, solve, stresses, gradient (Kirsch)."""

import numpy as np

FIELD = "structures"
SIZES = {
    "tiny": dict(storeys=2, bays=1, cases=2),
    "small": dict(storeys=10, bays=5, cases=6),
    "large": dict(storeys=40, bays=20, cases=16),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 1e-1}


def make(lib, storeys, bays, cases):
    jnp, nn = lib.numpy, lib.nn
    columns = bays + 1
    node = np.arange((storeys + 1) * columns).reshape(storeys + 1, columns)
    ends = np.concatenate([np.stack([node[:-1].ravel(), node[1:].ravel()], -1),
                           np.stack([node[1:, :-1].ravel(), node[1:, 1:].ravel()], -1)])
    freedoms = 3 * node.size
    free = np.arange(3 * columns, freedoms)
    dofs = (3 * ends[:, :, None] + np.arange(3)).reshape(len(ends), 6)

    def local_stiffness(length, area):
        inertia = 0.1 * area**2
        ea, ei = area / length, inertia / length**3
        z = jnp.zeros(())
        return jnp.array([
            [ea, z, z, -ea, z, z],
            [z, 12 * ei, 6 * ei * length, z, -12 * ei, 6 * ei * length],
            [z, 6 * ei * length, 4 * ei * length**2, z, -6 * ei * length, 2 * ei * length**2],
            [-ea, z, z, ea, z, z],
            [z, -12 * ei, -6 * ei * length, z, 12 * ei, -6 * ei * length],
            [z, 6 * ei * length, 2 * ei * length**2, z, -6 * ei * length, 4 * ei * length**2],
        ])  # fmt: skip

    def element(coordinates, pair, area):
        along = coordinates[pair[1]] - coordinates[pair[0]]
        length = jnp.sqrt(along @ along)
        c, s = along / length
        turn = jnp.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        turn = jnp.kron(jnp.eye(2), turn)
        return turn.T @ local_stiffness(length, area) @ turn, length

    def objective(log_area, coordinates, loads):
        areas = jnp.exp(log_area)
        ks, lengths = lib.vmap(element, (None, 0, 0))(coordinates, ends, areas)
        full = jnp.zeros((freedoms, freedoms))
        full = full.at[dofs[:, :, None], dofs[:, None, :]].add(ks)
        inner = full[np.ix_(free, free)] + 1e-4 * jnp.eye(len(free))
        solution = jnp.linalg.solve(inner, loads[free])
        moved = jnp.zeros((freedoms, cases)).at[free].set(solution)
        forces = jnp.einsum("eij,ejc->eic", ks, moved[dofs])
        stress = jnp.max(jnp.abs(forces), axis=1) / areas[:, None]
        excess = nn.softplus(10 * (stress - 1)) / 10
        return jnp.sum(areas * lengths) + jnp.sum(excess**2) + jnp.sum(loads * moved), stress

    def step(log_area, coordinates, loads):
        (value, stress), grads = lib.value_and_grad(objective, argnums=(0, 1), has_aux=True)(
            log_area, coordinates, loads)  # fmt: skip
        return value, jnp.max(stress, axis=0), log_area - 0.01 * jnp.sign(grads[0]), grads

    rng = np.random.default_rng(0)
    y, x = np.meshgrid(np.arange(storeys + 1.0), 1.5 * np.arange(columns), indexing="ij")
    loads = np.zeros((freedoms, cases))
    loads[3 * columns:] = 0.01 * rng.standard_normal((freedoms - 3 * columns, cases))
    return step, (0.1 * rng.standard_normal(len(ends)).astype(np.float32),
                  np.stack([x.ravel(), y.ravel()], -1).astype(np.float32),
                  loads.astype(np.float32))
