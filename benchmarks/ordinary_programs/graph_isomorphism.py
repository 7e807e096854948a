"""An Adam step of sums over neighbours with batch norms, for many small graphs (Xu et al. 2019)."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(graphs=4, nodes=40, edges=120, features=5, width=16, layers=2),
    "small": dict(graphs=16, nodes=400, edges=1600, features=10, width=32, layers=3),
    "large": dict(graphs=4096, nodes=100_000, edges=400_000, features=40, width=128, layers=4),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # batch norms and relus one after another


def make(lib, graphs, nodes, edges, features, width, layers):
    jnp, nn, ops = lib.numpy, lib.nn, lib.ops

    def norm(x, p):
        mean, var = jnp.mean(x, axis=0), jnp.var(x, axis=0)
        return (x - mean) / jnp.sqrt(var + 1e-5) * p["scale"] + p["shift"]

    def loss(params, x, sender, receiver, graph, target):
        h, pooled = x @ params["lift"], 0.0
        for p in params["layers"]:
            received = ops.segment_sum(h[sender], receiver, nodes)
            y = (1 + p["self"]) * h + received
            y = nn.relu(norm(y @ p["first"], p["norm"]))
            h = nn.relu(y @ p["second"])
            pooled = pooled + ops.segment_sum(h, graph, graphs) @ p["read"]
        return jnp.mean(jnp.square(pooled[:, 0] - target))

    def step(params, moments, x, sender, receiver, graph, target):
        value, slope = lib.value_and_grad(loss)(params, x, sender, receiver, graph, target)
        first = lib.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
        second = lib.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, moments[1], slope)
        params = lib.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-3), params, first,
                              second)
        return params, (first, second), value

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def draw_layer():
        return {"self": np.float32(0.1), "first": draw(width, 2 * width),
                "second": draw(2 * width, width),
                "norm": {"scale": np.ones(2 * width, np.float32),
                         "shift": np.zeros(2 * width, np.float32)}, "read": draw(width, 1) * 0.05}

    params = {"lift": draw(features, width), "layers": [draw_layer() for _ in range(layers)]}
    moments = tuple(lib.tree.map(np.zeros_like, params) for _ in range(2))
    graph = np.sort(rng.integers(0, graphs, nodes)).astype(np.int32)
    ends = rng.integers(0, nodes, (2, edges)).astype(np.int32)
    return step, (params, moments, draw(nodes, features) * 8, ends[0], ends[1], graph,
                  rng.standard_normal(graphs).astype(np.float32))
