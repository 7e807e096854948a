"""Iterative LQR for a planar quadrotor, differentiated to its cost (Amos et al. 2018)."""

import numpy as np

FIELD = "control"
SIZES = {
    "tiny": dict(starts=3, horizon=5, iterations=1),
    "small": dict(starts=16, horizon=20, iterations=3),
    "large": dict(starts=512, horizon=30, iterations=3),
}


def make(lib, starts, horizon, iterations):
    jnp = lib.numpy
    dt, gravity, arm = 0.05, 9.81, 0.25

    def dynamics(x, u, mass):
        """State: y, z, angle and their rates; controls: what two rotors add to hovering."""
        thrust = u[0] + u[1] + gravity * mass
        y_dot2 = -jnp.sin(x[2]) * thrust / mass - 0.1 * x[3]
        z_dot2 = jnp.cos(x[2]) * thrust / mass - gravity - 0.1 * x[4]
        angle_dot2 = (u[0] - u[1]) / (mass * arm) - 0.5 * x[5]
        rates = x[3:] + dt * jnp.stack([y_dot2, z_dot2, angle_dot2])
        return jnp.concatenate([x[:3] + dt * rates, rates])

    def stage_cost(x, u, params):
        return 0.5 * dt * (jnp.sum(params["state"] * x**2) + jnp.sum(params["control"] * u**2))

    def follow(x0, xs, us, gains, offsets, mass):
        def step(x, inputs):
            x_old, u_old, gain, offset = inputs
            u = u_old + gain @ (x - x_old) + 0.8 * offset
            return dynamics(x, u, mass), (x, u)

        return lib.lax.scan(step, x0, (xs, us, gains, offsets))

    def improve(x0, xs, us, last, params):
        mass = params["mass"]

        def backward(carry, inputs):
            slope, curvature = carry
            x, u = inputs
            a, b = lib.jacfwd(dynamics, argnums=(0, 1))(x, u, mass)
            q_x, q_u = lib.grad(stage_cost, argnums=(0, 1))(x, u, params)
            q_x, q_u = q_x + a.T @ slope, q_u + b.T @ slope
            q_xx = dt * jnp.diag(params["state"]) + a.T @ curvature @ a
            q_uu = jnp.diag(dt * params["control"] + 0.01) + b.T @ curvature @ b
            q_ux = b.T @ curvature @ a
            gain = -jnp.linalg.solve(q_uu, q_ux)
            offset = -jnp.linalg.solve(q_uu, q_u)
            slope, curvature = q_x + gain.T @ q_u, q_xx + gain.T @ q_ux
            return (slope, 0.5 * (curvature + curvature.T)), (gain, offset)

        end = (params["final"] * last, jnp.diag(params["final"]))
        _, (gains, offsets) = lib.lax.scan(backward, end, (xs, us), reverse=True)
        return follow(x0, xs, us, gains, offsets, mass)

    def plan(x0, params):
        xs, us = jnp.zeros((horizon, 6)), jnp.zeros((horizon, 2))
        gains, offsets = jnp.zeros((horizon, 2, 6)), jnp.zeros((horizon, 2))
        last, (xs, us) = follow(x0, xs, us, gains, offsets, params["mass"])
        for _ in range(iterations):
            last, (xs, us) = improve(x0, xs, us, last, params)
        cost = lib.vmap(stage_cost, in_axes=(0, 0, None))(xs, us, params).sum()
        return cost + 0.5 * jnp.sum(params["final"] * last**2), us

    def imitation(params, x0, expert):
        costs, us = lib.vmap(plan, in_axes=(0, None))(x0, params)
        return jnp.mean((us - expert) ** 2), (costs, us)

    rng = np.random.default_rng(0)
    params = {
        "state": np.array([4, 4, 1, 0.5, 0.5, 0.1], np.float32),
        "control": np.array([0.5, 0.5], np.float32),
        "final": np.array([20, 20, 5, 5, 5, 1], np.float32),
        "mass": np.float32(1.0),
    }
    x0 = 0.5 * rng.standard_normal((starts, 6)).astype(np.float32)
    expert = rng.standard_normal((starts, horizon, 2)).astype(np.float32)
    return lib.value_and_grad(imitation, has_aux=True), (params, x0, expert)
