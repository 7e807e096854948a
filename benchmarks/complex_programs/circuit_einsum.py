"""Gradient of a fidelity of a circuit: gates by `einsum` with letters for qubits."""

import string

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(qubits=3, layers=1),
    "small": dict(qubits=10, layers=4),
    "large": dict(qubits=20, layers=2),
}


def make(lib, qubits, layers):
    jnp = lib.numpy
    letters = string.ascii_lowercase[:qubits]

    def rotation(a, b):
        c, s = jnp.cos(a), jnp.sin(a)
        return jnp.stack([jnp.stack([c + 0j, -jnp.exp(-1j * b) * s]),
                          jnp.stack([jnp.exp(1j * b) * s, c + 0j])])

    def infidelity(angles, goal):
        state = jnp.ones((2,) * qubits, "complex64") * 2 ** (-qubits / 2)
        for layer in range(layers):
            for k, q in enumerate(letters):
                gate = rotation(angles[layer, k, 0], angles[layer, k, 1])
                state = jnp.einsum(f"Z{q},{letters}->{letters.replace(q, 'Z')}", gate, state)
            for k, q in enumerate(letters):
                other = letters[(k + 1) % qubits]
                phases = jnp.array([[1, 1], [1, -1]], "complex64")
                state = jnp.einsum(f"{letters},{q}{other}->{letters}", state, phases)
        return 1 - jnp.abs(jnp.vdot(goal, state)) ** 2

    rng = np.random.default_rng(0)
    goal = rng.normal(size=(2,) * qubits) + 1j * rng.normal(size=(2,) * qubits)
    goal = (goal / np.linalg.norm(goal)).astype(np.complex64)
    angles = rng.uniform(0, np.pi, (layers, qubits, 2)).astype(np.float32)
    return lib.value_and_grad(infidelity), (angles, goal)
