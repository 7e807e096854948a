"""Three bodies in a plane with their variational equations: Lyapunov exponents (Benettin 1980)."""

import numpy as np

FIELD = "celestial mechanics"
SIZES = {
    "tiny": dict(lanes=32, steps=4),
    "small": dict(lanes=2**10, steps=40),
    "large": dict(lanes=2**14, steps=400),
}


def make(lib, lanes, steps):
    jnp = lib.numpy
    dt = 0.005

    def field(state, masses):
        """Speeds and accelerations of three bodies."""
        place, speed = state[:6].reshape(3, 2), state[6:].reshape(3, 2)
        pulls = []
        for i in range(3):
            pull = jnp.zeros(2)
            for j in range(3):
                if i != j:
                    gap = place[j] - place[i]
                    pull = pull + masses[j] * gap / (gap @ gap + 0.01) ** 1.5
            pulls.append(pull)
        return jnp.concatenate([speed.ravel(), jnp.stack(pulls).ravel()])

    def runge_kutta(state, masses):
        k1 = field(state, masses)
        k2 = field(state + dt / 2 * k1, masses)
        k3 = field(state + dt / 2 * k2, masses)
        k4 = field(state + dt * k3, masses)
        return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def exponent(state, masses, direction):
        def step(carry, _):
            state, direction, total = carry
            state, moved = lib.jvp(lambda s: runge_kutta(s, masses), (state,), (direction,))
            size = jnp.sqrt(moved @ moved)
            return (state, moved / size, total + jnp.log(size)), None

        start = (state, direction / jnp.sqrt(direction @ direction), 0.0)
        (state, direction, total), _ = lib.lax.scan(step, start, None, length=steps)
        return state, total / (steps * dt)

    def ensemble(state, masses, direction):
        last, exponents = lib.vmap(exponent)(state, masses, direction)
        flow = lib.jacfwd(lambda s: runge_kutta(s, masses[0]))(state[0])
        return last, exponents, flow

    rng = np.random.default_rng(0)
    place = np.array([1, 0, -0.5, 0.8, -0.5, -0.8]) + 0.1 * rng.standard_normal((lanes, 6))
    speed = np.array([0, 0.8, -0.7, -0.4, 0.7, -0.4]) + 0.1 * rng.standard_normal((lanes, 6))
    masses = rng.uniform(0.8, 1.2, (lanes, 3))
    direction = rng.standard_normal((lanes, 12))
    arrays = (np.concatenate([place, speed], 1), masses, direction)
    return ensemble, tuple(x.astype(np.float32) for x in arrays)
