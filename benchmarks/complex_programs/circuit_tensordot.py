"""Gradient of an expectation of a circuit: gates of one and of two qubits by `tensordot`."""

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(qubits=3, layers=1),
    "small": dict(qubits=10, layers=4),
    "large": dict(qubits=20, layers=2),
}


def make(lib, qubits, layers):
    jnp = lib.numpy

    def turn(angle):
        c, s = jnp.cos(angle / 2), jnp.sin(angle / 2)
        return jnp.array([[c, -1j * s], [-1j * s, c]]).astype("complex64")

    def entangle(angle):
        phase = jnp.exp(1j * angle)
        return jnp.diag(jnp.array([1, 1, 1, phase])).astype("complex64").reshape(2, 2, 2, 2)

    def energy(angles):
        state = jnp.zeros(2**qubits, "complex64").at[0].set(1.0).reshape((2,) * qubits)
        for layer in range(layers):
            for q in range(qubits):
                state = jnp.tensordot(turn(angles[layer, 0, q]), state, [[1], [q]])
                state = jnp.moveaxis(state, 0, q)
            for q in range(qubits - 1):
                state = jnp.tensordot(entangle(angles[layer, 1, q]), state, [[2, 3], [q, q + 1]])
                state = jnp.moveaxis(state, (0, 1), (q, q + 1))
        odds = jnp.abs(state) ** 2
        return sum(jnp.take(odds, 0, axis=q).sum() - jnp.take(odds, 1, axis=q).sum()
                   for q in range(qubits))

    angles = np.random.default_rng(0).uniform(0, np.pi, (layers, 2, qubits)).astype(np.float32)
    return lib.value_and_grad(energy), (angles,)
