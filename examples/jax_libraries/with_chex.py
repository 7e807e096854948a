"""Dataclasses that are trees, assertions about shapes, types and values also inside jit (chexify),
traces counted, and variants of tests with and without jit."""

import chex
import jax
import jax.numpy as jnp

LIBRARIES = ["chex"]


@chex.dataclass
class Particles:
    """Positions and velocities of particles in space."""

    position: chex.Array
    velocity: chex.Array


def energy(particles):
    chex.assert_rank([particles.position, particles.velocity], 2)
    chex.assert_equal_shape([particles.position, particles.velocity])
    chex.assert_tree_all_finite(particles)
    return 0.5 * (particles.velocity ** 2).sum() + 0.5 * (particles.position ** 2).sum()


@chex.assert_max_traces(n=1)
def leapfrog(particles, dt):
    half = particles.velocity - 0.5 * dt * particles.position
    position = particles.position + dt * half
    return particles.replace(position=position, velocity=half - 0.5 * dt * position)


jitted = jax.jit(leapfrog)


def start():
    keys = jax.random.split(jax.random.key(1))
    return Particles(position=jax.random.normal(keys[0], (64, 3)),
                     velocity=jax.random.normal(keys[1], (64, 3)))


def program():
    return jitted, (start(), 0.01)


def refused(fun, *args):
    """Whether an assertion failed."""
    try:
        fun(*args)
    except AssertionError:
        return 1.0
    return 0.0


def results():
    particles = start()
    before = energy(particles)
    for _ in range(100):
        particles = jitted(particles, 0.01)
    checked = chex.chexify(jax.jit(energy), async_check=False)
    broken = particles.replace(velocity=particles.velocity.at[0, 0].set(jnp.nan))
    swapped = particles.replace(velocity=particles.velocity.T)
    return {"energy": before, "after 100 steps": energy(particles), "checked": checked(particles),
            "NaN is refused in jit": refused(checked, broken),
            "a wrong shape is refused": refused(energy, swapped),
            "other trees are refused": refused(chex.assert_trees_all_close, particles, start())}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {float(value):.4f}")
