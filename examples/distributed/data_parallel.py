"""Data parallel: each device has the parameters and a part of the batch; gradients are averaged.

    mpiexec -n 4 python examples/distributed/data_parallel.py
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P


def init(rng):
    return {"w1": rng.normal(size=(8, 16)) / 3, "w2": rng.normal(size=(16, 1)) / 4}


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


@ft.jit
def step(params, x, y):
    value, grads = ft.value_and_grad(loss)(params, x, y)  # the compiler adds up over the devices
    return value, ft.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def train(mesh, steps=5):
    rng = np.random.default_rng(0)
    params = ft.device_put(init(rng), NamedSharding(mesh, P()))
    losses = []
    for _ in range(steps):
        x, y = rng.normal(size=(16, 8)), rng.normal(size=(16, 1))
        x, y = ft.device_put((x, y), NamedSharding(mesh, P("x")))
        value, params = step(params, x, y)
        losses.append(float(value))
    return losses, everywhere(params)


if __name__ == "__main__":
    print(train(one_mesh())[0])
