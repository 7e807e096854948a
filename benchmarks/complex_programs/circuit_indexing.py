"""Gradient of a Fourier circuit's output: gates by indexing halves of the state vector."""

import numpy as np

FIELD = "quantum"
SIZES = {
    "tiny": dict(qubits=3, layers=1),
    "small": dict(qubits=10, layers=2),
    "large": dict(qubits=20, layers=1),
}


def make(lib, qubits, layers):
    jnp = lib.numpy

    def hadamard(state, q):
        x = state.reshape(2**q, 2, -1)
        low, high = x[:, 0], x[:, 1]
        return jnp.stack([low + high, low - high], axis=1).reshape(-1) * 2**-0.5

    def controlled_phase(state, control, target, angle):
        low, high = min(control, target), max(control, target)
        x = state.reshape(2**low, 2, 2 ** (high - low - 1), 2, -1)
        return x.at[:, 1, :, 1].multiply(jnp.exp(1j * angle)).reshape(-1)

    def turned(state, q, angle):
        x = state.reshape(2**q, 2, -1)
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], 1).reshape(-1)

    def loss(angles, weights):
        state = jnp.zeros(2**qubits, "complex64").at[0].set(1)
        for layer in range(layers):
            for q in range(qubits):
                state = turned(state, q, angles[layer, q])
            for q in range(qubits):
                state = hadamard(state, q)
                for k in range(q + 1, qubits):
                    state = controlled_phase(state, k, q, angles[layer, k] * np.pi / 2 ** (k - q))
        return jnp.sum(weights * jnp.abs(state) ** 2)

    rng = np.random.default_rng(0)
    angles = rng.uniform(0, np.pi, (layers, qubits)).astype(np.float32)
    return lib.value_and_grad(loss), (angles, rng.normal(size=2**qubits).astype(np.float32))
