"""Postures of an arm that reach poses, by damped least squares with limits (Nakamura 1986)."""

import numpy as np

FIELD = "robotics"
SIZES = {
    "tiny": dict(poses=4, steps=3),
    "small": dict(poses=256, steps=20),
    "large": dict(poses=2**14, steps=50),
}
TOLERANCE = 2e-2  # steps near a limit depend on the last digit


def make(lib, poses, steps):
    jnp = lib.numpy
    links = np.array([[0.0, 0.34, np.pi / 2], [0.0, 0.0, -np.pi / 2], [0.0, 0.4, -np.pi / 2],
                      [0.0, 0.0, np.pi / 2], [0.0, 0.4, np.pi / 2], [0.0, 0.0, -np.pi / 2],
                      [0.0, 0.126, 0.0]], np.float32)  # length, offset, twist
    limit = np.array([2.9, 2.0, 2.9, 2.0, 2.9, 2.0, 3.0], np.float32)

    def hand(angles):
        """The pose after all joints, by the transforms of Denavit and Hartenberg."""
        pose = jnp.eye(4, dtype=jnp.float32)
        for k, (a, d, twist) in enumerate(links):
            c, s = jnp.cos(angles[k]), jnp.sin(angles[k])
            ct, st = float(np.cos(twist)), float(np.sin(twist))
            pose = pose @ jnp.array([[c, -s * ct, s * st, a * c], [s, c * ct, -c * st, a * s],
                                     [0.0, st, ct, d], [0.0, 0.0, 0.0, 1.0]])
        return pose

    def error(angles, target):
        pose = hand(angles)
        turn = pose[:3, :3].T @ target[:3, :3]
        axis = jnp.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0],
                          turn[1, 0] - turn[0, 1]])
        return jnp.concatenate([target[:3, 3] - pose[:3, 3], 0.25 * pose[:3, :3] @ axis])

    def reach(target, start):
        def step(state, _):
            angles, damping = state
            e = error(angles, target)
            slopes = lib.jacfwd(error)(angles, target)
            system = slopes @ slopes.T + damping * jnp.eye(6, dtype=jnp.float32)
            move = -slopes.T @ jnp.linalg.solve(system, e)
            centre = -0.02 * angles / limit**2
            rest = centre - slopes.T @ jnp.linalg.solve(system, slopes @ centre)
            new = jnp.clip(angles + jnp.clip(move, -0.5, 0.5) + rest, -limit, limit)
            better = jnp.sum(error(new, target) ** 2) < jnp.sum(e**2)
            damping = jnp.clip(jnp.where(better, damping * 0.5, damping * 3), 1e-3, 1.0)
            return (jnp.where(better, new, angles), damping), jnp.sum(e**2)

        (angles, _), errors = lib.lax.scan(step, (start, jnp.float32(0.05)), None, length=steps)
        slopes = lib.jacfwd(error)(angles, target)
        dexterity = jnp.sqrt(jnp.abs(jnp.linalg.det(slopes @ slopes.T)))
        return angles, errors, dexterity

    def solve(wanted, start):
        targets = lib.vmap(hand)(wanted)
        angles, errors, dexterity = lib.vmap(reach)(targets, start)
        return angles, jnp.mean(errors, axis=0), dexterity

    rng = np.random.default_rng(0)
    wanted = rng.uniform(-0.7, 0.7, (poses, 7)) * limit
    start = wanted + rng.normal(0, 0.2, (poses, 7))
    return solve, (wanted.astype(np.float32), np.clip(start, -limit, limit).astype(np.float32))
