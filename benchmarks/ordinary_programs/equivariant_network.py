"""An Adam step of messages between all atoms that also move them (Satorras et al. 2021: EGNN)."""

import numpy as np

FIELD = "molecules"
SIZES = {
    "tiny": dict(molecules=3, atoms=5, kinds=4, width=8, layers=1),
    "small": dict(molecules=8, atoms=9, kinds=5, width=16, layers=2),
    "large": dict(molecules=96, atoms=29, kinds=10, width=128, layers=4),
}
# TensorFloat-32 moves slopes by 0.01
TOLERANCE = {"cpu": 2e-3, "gpu": 2e-2}
# of Adam: with less the first step of a bias that was 0 is nearly the sign of its slope
SLACK = 0.1


def make(lib, molecules, atoms, kinds, width, layers):
    jnp, nn = lib.numpy, lib.nn

    def layer(p, h, x, there):
        away = x[:, None] - x
        squared = jnp.sum(away**2, axis=-1, keepdims=True)
        n = h.shape[0]
        pairs = jnp.concatenate([jnp.broadcast_to(h[:, None], (n, n, width)),
                                 jnp.broadcast_to(h[None], (n, n, width)), squared], axis=-1)
        m = nn.silu(nn.silu(pairs @ p["edge1"] + p["b1"]) @ p["edge2"] + p["b2"])
        m = m * nn.sigmoid(m @ p["gate"])
        m = m * (there[:, None] * there * (1 - jnp.eye(n)))[..., None]
        moves = jnp.tanh(nn.silu(m @ p["move1"]) @ p["move2"])
        x = x + jnp.sum(away / (jnp.sqrt(squared + 1e-6) + 1) * moves, axis=1) / n
        h = h + nn.silu(jnp.concatenate([h, jnp.sum(m, axis=1)], axis=-1) @ p["node1"]) @ p["node2"]
        return h, x

    def energy(params, kind, x, there):
        h = params["embed"][kind]
        for p in params["layers"]:
            h, x = layer(p, h, x, there)
        return jnp.sum(there * (nn.silu(h @ params["out1"]) @ params["out2"])[:, 0])

    def loss(params, kind, x, there, target):
        found = lib.vmap(energy, (None, 0, 0, 0))(params, kind, x, there)
        return jnp.mean(jnp.sqrt((found - target) ** 2 + 1e-2))

    def step(params, first, second, *batch):
        value, slope = lib.value_and_grad(loss)(params, *batch)
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = lib.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, second, slope)
        params = lib.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + SLACK), params, first,
                              second)
        return params, first, value

    rng = np.random.default_rng(0)

    def draw(a, b):
        return (rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)

    def draw_layer():
        return {"edge1": draw(2 * width + 1, width), "b1": np.zeros(width, np.float32),
                "edge2": draw(width, width), "b2": np.zeros(width, np.float32),
                "gate": draw(width, 1), "move1": draw(width, width), "move2": draw(width, 1),
                "node1": draw(2 * width, width), "node2": draw(width, width)}

    params = {"embed": draw(kinds, width), "layers": [draw_layer() for _ in range(layers)],
              "out1": draw(width, width), "out2": draw(width, 1)}
    zeros = lib.tree.map(np.zeros_like, params)
    there = np.arange(atoms) < rng.integers(atoms // 2, atoms + 1, molecules)[:, None]
    return step, (params, zeros, zeros, rng.integers(0, kinds, (molecules, atoms)).astype(np.int32),
                  (2 * rng.standard_normal((molecules, atoms, 3))).astype(np.float32),
                  there.astype(np.float32), rng.standard_normal(molecules).astype(np.float32))
