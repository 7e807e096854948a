"""Expert parallel: each device has an expert, and tokens travel to the one that a router chooses.

Two exchanges by all_to_all: there, to the experts, and back (Lepikhin et al. 2021, GShard). Each
device keeps places for `capacity` tokens for each expert; tokens without a place pass by.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import lax, nn
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

WIDTH = 6


def route(router, x, experts, capacity):
    """Who goes where: of each token a weight for each place of each expert, [t, e, c]."""
    gates = nn.softmax(x @ router)
    chosen = jnp.argmax(gates, -1)
    onehot = nn.one_hot(chosen, experts)
    place = (jnp.cumsum(onehot, 0) - 1) * onehot  # how many of this expert came before
    seats = nn.one_hot(place.sum(-1).astype(int), capacity)
    return onehot[:, :, None] * seats[:, None, :], gates.max(-1)


def expert(w, x):
    return nn.relu(x @ w["up"]) @ w["down"]


def mixture(mesh, experts, capacity=16):
    """The function of experts [e, ...], a router, and tokens [t, d] that lie on the devices."""
    def part(w, router, x):
        to, gate = route(router, x, experts, capacity)
        sent = jnp.einsum("tec,td->ecd", to, x)
        came = lax.all_to_all(sent, "x", 0, 1, tiled=True)  # [experts here, n c, d]
        done = ft.vmap(expert)(w, came)
        back = lax.all_to_all(done, "x", 1, 0, tiled=True)
        return x + gate[:, None] * jnp.einsum("tec,ecd->td", to, back)

    return ft.shard_map(part, mesh, (P("x"), P(), P("x")), P("x"))


def train(mesh, steps=3, experts=4):
    rng = np.random.default_rng(0)
    apply = mixture(mesh, experts)

    @ft.jit
    def step(params, x, y):
        def loss(p):
            return ((apply(p["experts"], p["router"], x) - y) ** 2).mean()

        value, grads = ft.value_and_grad(loss)(params)
        return value, ft.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    params = {"experts": {"up": rng.normal(size=(experts, WIDTH, 12)) / 2,
                          "down": rng.normal(size=(experts, 12, WIDTH)) / 3},
              "router": rng.normal(size=(WIDTH, experts))}
    params = ft.device_put(params, {"experts": NamedSharding(mesh, P("x")),
                                    "router": NamedSharding(mesh, P())})
    losses = []
    for _ in range(steps):
        x, y = ft.device_put((rng.normal(size=(16, WIDTH)), rng.normal(size=(16, WIDTH))),
                             NamedSharding(mesh, P("x")))
        value, params = step(params, x, y)
        losses.append(float(value))
    return losses, everywhere(params)


if __name__ == "__main__":
    mesh = one_mesh()
    print(train(mesh, experts=mesh.size)[0])
