"""Networks on graphs: a GraphNetwork, attention and convolutions over edges, trained on batches of
padded graphs to tell how many triangles a graph has."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

LIBRARIES = ["jraph"]
WIDTH = 8


def ring(n, chords):
    """A ring of n nodes with chords to the second next, as a graph."""
    nodes = np.arange(n)
    senders = np.concatenate([nodes, nodes[:chords]])
    receivers = np.concatenate([(nodes + 1) % n, (nodes[:chords] + 2) % n])
    return jraph.GraphsTuple(
        nodes=np.ones((n, WIDTH), np.float32), edges=np.ones((len(senders), WIDTH), np.float32),
        senders=senders, receivers=receivers, n_node=np.array([n]), n_edge=np.array([len(senders)]),
        globals=np.zeros((1, WIDTH), np.float32))


GRAPHS = jraph.pad_with_graphs(
    jraph.batch([ring(n, chords) for n, chords in ((5, 0), (6, 2), (7, 7), (8, 3))]), 32, 48, 6)
TRIANGLES = jnp.array([0.0, 2.0, 7.0, 3.0, 0.0, 0.0])


def weights(key):
    shapes = {"edge": 4, "node": 4, "global": 3}
    return {name: jax.random.normal(k, (n * WIDTH, WIDTH)) / (n * WIDTH) ** 0.5
            for (name, n), k in zip(shapes.items(), jax.random.split(key, 3), strict=True)}


def network(params):
    def update(name):
        return lambda *inputs: jnp.tanh(jnp.concatenate(inputs, 1) @ params[name])
    return jraph.GraphNetwork(update("edge"), update("node"), update("global"))


def loss(params):
    graphs = network(params)(network(params)(GRAPHS))
    errors = graphs.globals.sum(1) - TRIANGLES / 7
    return jnp.where(jraph.get_graph_padding_mask(graphs), errors**2, 0).sum()


@jax.jit
def step(params):
    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


def results():
    params = weights(jax.random.key(0))
    losses = []
    for _ in range(20):
        params, value = step(params)
        losses.append(value)
    query = params["node"][:WIDTH]
    convolved = jraph.GraphConvolution(lambda n: n @ query, add_self_edges=True)(GRAPHS)
    attended = jraph.GAT(lambda n: n @ query,
                         lambda s, r, e: (s * r).sum(-1, keepdims=True))(GRAPHS)
    return {"losses": jnp.stack(losses), "convolution": convolved.nodes,
            "attention": attended.nodes,
            "softmax": jraph.segment_softmax(jnp.arange(48.0), GRAPHS.receivers, 32)}


def program():
    return step, (weights(jax.random.key(0)),)
