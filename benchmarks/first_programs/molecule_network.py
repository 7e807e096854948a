"""Energies and forces of molecules by continuous-filter convolutions on bonds (Schütt 2017)."""

import numpy as np

FIELD = "chemistry"
SIZES = {
    "tiny": dict(molecules=2, atoms=4, width=8, filters=6, rounds=1),
    "small": dict(molecules=32, atoms=12, width=32, filters=16, rounds=3),
    "large": dict(molecules=1024, atoms=24, width=128, filters=64, rounds=6),
}


def make(lib, molecules, atoms, width, filters, rounds):
    jnp = lib.numpy
    nodes = molecules * atoms
    owner = np.repeat(np.arange(molecules), atoms)
    pairs = [(a, b) for a in range(atoms) for b in range(atoms) if a != b]
    edges = np.concatenate([np.array(pairs) + k * atoms for k in range(molecules)]).T
    source, target = edges.astype(np.int32)
    centres = np.linspace(0.5, 4.0, filters).astype(np.float32)

    def softplus(x):
        return lib.nn.softplus(x) - jnp.log(2.0)

    def energies(params, places, kinds):
        away = places[source] - places[target]
        distance = jnp.sqrt(jnp.sum(away**2, axis=-1) + 1e-6)
        waves = jnp.exp(-4 * (distance[:, None] - centres) ** 2)
        fade = jnp.where(distance < 4, 0.5 * (jnp.cos(jnp.pi * distance / 4) + 1), 0.0)
        h = params["embed"][kinds]
        for p in params["rounds"]:
            filter_ = softplus(waves @ p["f1"]) @ p["f2"] * fade[:, None]
            sent = (h @ p["in"])[source] * filter_
            got = lib.ops.segment_sum(sent, target, num_segments=nodes)
            h = h + softplus(got @ p["mid"]) @ p["out"]
        each = softplus(h @ params["last1"]) @ params["last2"]
        return lib.ops.segment_sum(each[:, 0], owner, num_segments=molecules)

    def loss(params, places, kinds, energy, forces):
        total, push = lib.value_and_grad(lambda x: jnp.sum(energies(params, x, kinds)))(places)
        fit = jnp.mean((energies(params, places, kinds) - energy) ** 2)
        return fit + jnp.mean((forces + push) ** 2), (total, push)

    def train(params, places, kinds, energy, forces):
        rule = lib.value_and_grad(loss, has_aux=True)
        (value, (total, push)), grads = rule(params, places, kinds, energy, forces)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(grads)))
        params = lib.tree.map(lambda p, g: p - 0.01 * g / (1 + norm), params, grads)
        return params, grads, value, total, push

    rng = np.random.default_rng(0)

    def normal(a, b):
        return (rng.standard_normal((a, b)) / a**0.5).astype(np.float32)

    each = [{"f1": normal(filters, width), "f2": normal(width, width), "in": normal(width, width),
             "mid": normal(width, width), "out": normal(width, width)}
            for _ in range(rounds)]  # fmt: skip
    params = {"embed": normal(5, width), "rounds": each, "last1": normal(width, width),
              "last2": normal(width, 1)}  # fmt: skip
    places = rng.uniform(0, 3, (nodes, 3)).astype(np.float32)
    kinds = rng.integers(0, 5, nodes).astype(np.int32)
    energy = rng.standard_normal(molecules).astype(np.float32)
    forces = 0.1 * rng.standard_normal((nodes, 3)).astype(np.float32)
    return train, (params, places, kinds, energy, forces)
