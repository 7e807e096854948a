"""Conductivity from temperatures by linear finite elements and an adjoint (Giles and Pierce 2000).

The elements are triangles; preconditioned conjugate gradients solve for the temperatures.
"""

import numpy as np

FIELD = "finite elements"
TOLERANCE = {"gpu": 6e-2}  # large, two libraries on one CPU differ by 2e-2: 2,800 iterations
SIZES = {
    "tiny": dict(side=6, sensors=5),
    "small": dict(side=24, sensors=40),
    "large": dict(side=256, sensors=2000),
}


def triangles(side):
    """The corners of a grid's triangles."""
    i, j = (each.ravel() for each in np.mgrid[: side - 1, : side - 1])
    corner = i * side + j
    lower = np.stack([corner, corner + side, corner + 1], axis=1)
    upper = np.stack([corner + side + 1, corner + 1, corner + side], axis=1)
    return np.concatenate([lower, upper]).astype(np.int32)


def make(lib, side, sensors):
    jnp = lib.numpy
    nodes = side * side
    inner = np.zeros((side, side), bool)
    inner[1:-1, 1:-1] = True
    inner = inner.ravel()

    def stiffness(corners):
        """Of one triangle: area times the products of the gradients of its hats."""
        edges = jnp.roll(corners, -1, axis=0) - jnp.roll(corners, 1, axis=0)
        (ax, ay), (bx, by) = corners[1] - corners[0], corners[2] - corners[0]
        area = 0.5 * jnp.abs(ax * by - ay * bx)
        return jnp.sum(edges[:, None] * edges[None], axis=-1) / (4 * area), area

    def temperatures(log_conductivity, mesh, elements, source):
        local, area = lib.vmap(stiffness)(mesh[elements])
        local = jnp.exp(log_conductivity)[:, None, None] * local
        load = (area[:, None] / 3 * source[elements].mean(axis=1, keepdims=True)).repeat(3, axis=1)
        load = jnp.where(inner, jnp.zeros(nodes).at[elements].add(load), 0.0)
        diagonal = jnp.zeros(nodes).at[elements].add(jnp.diagonal(local, axis1=1, axis2=2))

        def matvec(u):
            each = jnp.einsum("eij,ej->ei", local, jnp.where(inner, u, 0.0)[elements],
                              precision="highest")  # fmt: skip
            return jnp.where(inner, jnp.zeros(nodes).at[elements].add(each), u)

        def conjugate_gradients(matvec, b):
            limit = 1e-10 * jnp.vdot(b, b)

            def unfinished(state):
                _, r, _, _, count = state
                return (jnp.vdot(r, r) > limit) & (count < 20 * side)

            def improve(state):
                u, r, p, rho, count = state
                q = matvec(p)
                alpha = rho / jnp.vdot(p, q)
                u, r = u + alpha * p, r - alpha * q
                z = r / diagonal
                after = jnp.vdot(r, z)
                return u, r, z + after / rho * p, after, count + 1

            z = b / diagonal
            state = (jnp.zeros_like(b), b, z, jnp.vdot(b, z), 0)
            return lib.lax.while_loop(unfinished, improve, state)[0]

        return lib.lax.custom_linear_solve(matvec, load, conjugate_gradients, symmetric=True)

    def misfit(log_conductivity, mesh, elements, source, where, measured):
        u = temperatures(log_conductivity, mesh, elements, source)
        return 1e4 * jnp.mean((u[where] - measured) ** 2), u

    rng = np.random.default_rng(0)
    grid = np.stack(np.mgrid[:side, :side], axis=-1).reshape(-1, 2) / (side - 1)
    mesh = grid + inner[:, None] * 0.2 / side * rng.standard_normal(grid.shape)
    elements = triangles(side)
    source = 1 + np.sin(3 * np.pi * mesh[:, 0]) * mesh[:, 1]
    centre = mesh[elements].mean(axis=1)
    log_conductivity = np.sin(5 * centre[:, 0]) * np.cos(4 * centre[:, 1])
    where = rng.choice(np.flatnonzero(inner), min(sensors, inner.sum()), replace=False)
    measured = 0.1 * rng.uniform(0.2, 1.0, where.shape)
    floats = (x.astype(np.float32) for x in (log_conductivity, mesh, source, measured))
    log_conductivity, mesh, source, measured = floats
    step = lib.value_and_grad(misfit, has_aux=True)
    return step, (log_conductivity, mesh, elements, source, where.astype(np.int32), measured)
