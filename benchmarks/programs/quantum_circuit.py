"""Energy of an Ising chain under a variational circuit, and its gradient (Peruzzo et al. 2014)."""

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(qubits=3, layers=1),
    "small": dict(qubits=10, layers=2),
    "large": dict(qubits=18, layers=4),
}


def make(lib, qubits, layers):
    jnp = lib.numpy
    cnot = np.eye(4, dtype=np.complex64)[[0, 1, 3, 2]].reshape(2, 2, 2, 2)
    field = 0.7

    def rotation(angles):
        """RZ(c) RY(b) RZ(a)"""
        a, b, c = angles
        cos, sin = jnp.cos(b / 2), jnp.sin(b / 2)
        plus, minus = jnp.exp(0.5j * (a + c)), jnp.exp(0.5j * (a - c))
        return jnp.array([[cos / plus, -sin * minus], [sin / minus, cos * plus]])

    def apply_one(state, gate, qubit):
        state = jnp.tensordot(gate, state, axes=((1,), (qubit,)))
        return jnp.moveaxis(state, 0, qubit)

    def apply_two(state, gate, control, target):
        state = jnp.tensordot(gate, state, axes=((2, 3), (control, target)))
        return jnp.moveaxis(state, (0, 1), (control, target))

    def run(angles):
        state = jnp.zeros((2,) * qubits, "complex64").at[(0,) * qubits].set(1.0)
        for layer in range(layers):
            for q in range(qubits):
                state = apply_one(state, rotation(angles[layer, q]), q)
            for q in range(qubits):
                state = apply_two(state, cnot, q, (q + 1) % qubits)
        return state

    def energy(angles, couplings):
        state = run(angles)
        probabilities = jnp.abs(state) ** 2
        total = 0.0
        for q in range(qubits - 1):
            others = tuple(k for k in range(qubits) if k not in (q, q + 1))
            pair = jnp.sum(probabilities, axis=others)
            total -= couplings[q] * (pair[0, 0] + pair[1, 1] - pair[0, 1] - pair[1, 0])
        for q in range(qubits):
            flipped = jnp.flip(state, axis=q)
            total -= field * jnp.sum(jnp.conj(state) * flipped).real
        return total

    rng = np.random.default_rng(0)
    angles = rng.uniform(0, np.pi, (layers, qubits, 3)).astype(np.float32)
    couplings = rng.uniform(0.5, 1.5, qubits - 1).astype(np.float32)
    return lib.value_and_grad(energy), (angles, couplings)
