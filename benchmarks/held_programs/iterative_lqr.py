"""Iterative LQR for a double pendulum on a cart, with a parallel line search (Tassa 2012)."""

import numpy as np

FIELD = "control"
SIZES = {
    "tiny": dict(horizon=8, iterations=2, trials=3),
    "small": dict(horizon=80, iterations=5, trials=8),
    "large": dict(horizon=200, iterations=20, trials=64),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, horizon, iterations, trials):
    jnp, lax = lib.numpy, lib.lax
    dt, gravity = 0.03, -9.8  # they hang

    def dynamics(x, u):
        q, v = x[:3], x[3:]
        s1, c1, s2, c2 = jnp.sin(q[1]), jnp.cos(q[1]), jnp.sin(q[2]), jnp.cos(q[2])
        c12, s12 = jnp.cos(q[1] - q[2]), jnp.sin(q[1] - q[2])
        mass = jnp.array([[3.0, 2 * c1, c2], [2 * c1, 2.0, c12], [c2, c12, 1.0]])
        force = jnp.array([u[0] + 2 * v[1] ** 2 * s1 + v[2] ** 2 * s2,
                           2 * gravity * s1 - v[2] ** 2 * s12, gravity * s2 + v[1] ** 2 * s12])
        acceleration = jnp.linalg.solve(mass, force - 0.1 * v)
        v = v + dt * acceleration
        return jnp.concatenate([q + dt * v, v])

    def cost(x, u):
        return 0.5 * jnp.sum(jnp.array([1.0, 4.0, 4.0, 0.1, 0.1, 0.1]) * x**2) + 0.01 * u @ u

    def final_cost(x):
        return 20.0 * jnp.sum(x**2)

    def rollout(x0, us):
        def advance(x, u):
            return dynamics(x, u), x

        last, xs = lax.scan(advance, x0, us)
        total = jnp.sum(lib.vmap(cost)(xs, us)) + final_cost(last)
        return jnp.concatenate([xs, last[None]]), total

    def backward(xs, us):
        fx, fu = lib.vmap(lib.jacfwd(dynamics, argnums=(0, 1)))(xs[:-1], us)
        lx, lu = lib.vmap(lib.grad(cost, argnums=(0, 1)))(xs[:-1], us)
        (lxx, _), (lux, luu) = lib.vmap(lib.hessian(cost, argnums=(0, 1)))(xs[:-1], us)
        vx, vxx = lib.grad(final_cost)(xs[-1]), lib.hessian(final_cost)(xs[-1])

        def riccati(carry, at):
            vx, vxx = carry
            fx, fu, lx, lu, lxx, lux, luu = at
            qx, qu = lx + fx.T @ vx, lu + fu.T @ vx
            qxx, quu = lxx + fx.T @ vxx @ fx, luu + fu.T @ vxx @ fu + 1e-3 * jnp.eye(1)
            qux = lux + fu.T @ vxx @ fx
            k, gain = -jnp.linalg.solve(quu, qu), -jnp.linalg.solve(quu, qux)
            vx = qx + gain.T @ quu @ k + gain.T @ qu + qux.T @ k
            vxx = qxx + gain.T @ quu @ gain + gain.T @ qux + qux.T @ gain
            return (vx, 0.5 * (vxx + vxx.T)), (k, gain)

        _, gains = lax.scan(riccati, (vx, vxx), (fx, fu, lx, lu, lxx, lux, luu), reverse=True)
        return gains

    def apply(xs, us, gains, size):
        def advance(x, at):
            x_old, u_old, k, gain = at
            u = u_old + size * k + gain @ (x - x_old)
            return dynamics(x, u), u

        _, new = lax.scan(advance, xs[0], (xs[:-1], us, *gains))
        return new

    def step(x0, us):
        sizes = 0.6 ** jnp.arange(trials)

        def iterate(us, _):
            xs, old = rollout(x0, us)
            gains = backward(xs, us)
            candidates = lib.vmap(lambda size: apply(xs, us, gains, size))(sizes)
            costs = lib.vmap(lambda us: rollout(x0, us)[1])(candidates)
            best = jnp.argmin(costs)
            better = costs[best] < old
            return jnp.where(better, candidates[best], us), jnp.minimum(costs[best], old)

        return lax.scan(iterate, us, None, length=iterations)

    rng = np.random.default_rng(0)
    x0 = np.array([0.5, 0.2, -0.15, 0, 0, 0], np.float32)
    return step, (x0, (0.01 * rng.standard_normal((horizon, 1))).astype(np.float32))
