"""Fully sharded: each device keeps a part of the parameters and of the optimiser's state.

The layout of the parameters is all that says so: a weight is gathered where it is used, and its
gradient is added up into parts (ZeRO-3, or FSDP; Rajbhandari et al. 2020). No device ever has the
whole state of the optimiser.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

SPECS = {"w1": P("x"), "b1": P("x"), "w2": P("x")}


def init(rng):
    return {"w1": rng.normal(size=(8, 16)) / 3, "b1": np.zeros(16), "w2": rng.normal(size=(16, 1))}


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


def adam(params, moments, grads, t, rate=0.01):
    """One step of Adam (Kingma and Ba 2015): elementwise, so each device does its part."""
    m = ft.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments["m"], grads)
    v = ft.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments["v"], grads)
    new = ft.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9 ** t)) / (
        jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), params, m, v)
    return new, {"m": m, "v": v}


def train(mesh, steps=5):
    layout = {k: NamedSharding(mesh, spec) for k, spec in SPECS.items()}

    @ft.jit(donate_argnums=(0, 1), out_shardings=(None, layout, {"m": layout, "v": layout}))
    def step(params, moments, x, y, t):
        value, grads = ft.value_and_grad(loss)(params, x, y)
        return value, *adam(params, moments, grads, t)

    rng = np.random.default_rng(0)
    params = ft.device_put(init(rng), layout)
    moments = {k: ft.tree.map(jnp.zeros_like, params) for k in ("m", "v")}
    losses = []
    for t in range(1, steps + 1):
        x, y = rng.normal(size=(16, 8)), rng.normal(size=(16, 1))
        x, y = ft.device_put((x, y), NamedSharding(mesh, P("x")))
        value, params, moments = step(params, moments, x, y, float(t))
        losses.append(float(value))
    parts = {k: v.addressable_shards[0].data.shape for k, v in params.items()}
    assert mesh.size == 1 or all(np.prod(parts[k]) * mesh.size == params[k].size for k in parts)
    return losses, everywhere((params, moments))


if __name__ == "__main__":
    print(train(one_mesh())[0])
