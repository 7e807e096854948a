"""Tensor parallel: heads of attention and hidden units of a transformer lie on different devices.

Megatron's layout (Shoeybi et al. 2019): the first matrix of each pair is divided by columns, the
second by rows, so that a layer needs one sum over devices after attention and one after the
multilayer perceptron. Only the layout of the weights says so.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import nn
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

HEADS, WIDTH, HIDDEN, LENGTH = 4, 16, 32, 6
SPECS = {"qkv": P(None, None, "x"), "out": P("x"), "up": P(None, "x"), "down": P("x")}


def init(rng, layers=2):
    def normal(*shape):
        return rng.normal(size=shape) / np.sqrt(shape[0])

    return [{"qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS), "out": normal(HEADS, WIDTH // HEADS,
                                                                         WIDTH),
             "up": normal(WIDTH, HIDDEN), "down": normal(HIDDEN, WIDTH)} for _ in range(layers)]


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def layer(p, x):
    q, k, v = jnp.einsum("bld,dshe->sbhle", normed(x), p["qkv"])
    scores = jnp.einsum("bhle,bhme->bhlm", q, k) / np.sqrt(WIDTH // HEADS)
    x = x + jnp.einsum("bhlm,bhme,hed->bld", nn.softmax(scores), v, p["out"])
    return x + nn.gelu(normed(x) @ p["up"]) @ p["down"]


def loss(params, x, y):
    for p in params:
        x = layer(p, x)
    return ((x - y) ** 2).mean()


@ft.jit
def step(params, x, y):
    value, grads = ft.value_and_grad(loss)(params, x, y)
    return value, ft.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def train(mesh, steps=3):
    rng = np.random.default_rng(0)
    layout = {k: NamedSharding(mesh, spec) for k, spec in SPECS.items()}
    params = [ft.device_put(p, layout) for p in init(rng)]
    losses = []
    for _ in range(steps):
        x, y = ft.device_put((rng.normal(size=(2, LENGTH, WIDTH)),
                              rng.normal(size=(2, LENGTH, WIDTH))), NamedSharding(mesh, P()))
        value, params = step(params, x, y)
        losses.append(float(value))
    return losses, everywhere(params)


if __name__ == "__main__":
    print(train(one_mesh())[0])
