"""Pendulums under a PID controller, a stop that they hit, and tuning of the gains by grid."""

import numpy as np

FIELD = "control"
SIZES = {
    "tiny": dict(lanes=64, steps=20),
    "small": dict(lanes=2**11, steps=100),
    "large": dict(lanes=2**16, steps=1000),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 3e-2}  # a stop is hit one step later


def make(lib, lanes, steps):
    jnp = lib.numpy
    dt, stop, most = 0.01, 1.2, 6.0

    def control(gains, error, before, total):
        wanted = gains[0] * error + gains[1] * total + gains[2] * (error - before) / dt
        force = jnp.clip(wanted, -most, most)
        wound = jnp.abs(wanted) > most
        return force, jnp.where(wound, total, total + dt * error)

    def simulate(gains, angle, goal):
        def step(k, state):
            angle, speed, before, total, cost, hits, settled = state
            error = goal - angle
            force, total = control(gains, error, before, total)
            speed = speed + dt * (force - 9.81 * jnp.sin(angle) - 0.1 * speed)
            new = angle + dt * speed
            hit = jnp.abs(new) > stop
            share = (jnp.sign(new) * stop - angle) / jnp.where(hit, new - angle, 1.0)
            angle, speed = lib.lax.cond(
                hit,
                lambda: (angle + share * (new - angle), -0.4 * speed),
                lambda: (new, speed),
            )
            cost = cost + dt * (error**2 + 1e-3 * force**2)
            settled = jnp.where(jnp.abs(error) < 0.05, settled, k + 1)
            return angle, speed, error, total, cost, hits + hit, settled

        start = (angle, 0.0, goal - angle, 0.0, 0.0, 0, 0)
        angle, _speed, _, _, cost, hits, settled = lib.lax.fori_loop(0, steps, step, start)
        return angle, cost, hits, settled * dt

    def tune(gains, angle, goal):
        """Each lane's run, the best gains, and how the cost changes with each gain."""
        angle, cost, hits, settled = lib.vmap(simulate)(gains, angle, goal)
        order = jnp.argsort(cost)[: lanes // 8]
        return angle, cost, hits, settled, jnp.mean(gains[order], axis=0)

    rng = np.random.default_rng(0)
    gains = rng.uniform([4, 0, 0.2], [40, 10, 4], (lanes, 3)).astype(np.float32)
    angle = rng.uniform(-1, 1, lanes).astype(np.float32)
    goal = rng.uniform(-0.9, 0.9, lanes).astype(np.float32)
    return tune, (gains, angle, goal)
