"""Pipeline: each device has one layer, and micro-batches go from device to device.

A scan over time: in each step all devices apply their layer to what the one before gave them
(GPipe, Huang et al. 2019). Of m micro-batches on n devices m + n - 1 steps are made; the backward
part is the derivative of the scan, and runs the pipeline in the other direction.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

WIDTH = 8


def layer(w, x):
    return jnp.tanh(x @ w) + x


def pipelined(mesh):
    """The function of all layers [n, d, d] and all micro-batches [m, b, d]."""
    n = mesh.size
    forward = [(i, i + 1) for i in range(n - 1)]

    def stages(w, batches):
        here = lax.axis_index("x")
        m = batches.shape[0]

        def tick(state, t):
            fed = batches[jnp.minimum(t, m - 1)]
            out = layer(w[0], jnp.where(here == 0, fed, state))
            return lax.ppermute(out, "x", forward), out

        _, outs = lax.scan(tick, jnp.zeros_like(batches[0]), jnp.arange(m + n - 1))
        last = jnp.where(here == n - 1, outs[n - 1:], 0.0)
        return lax.psum(last, "x")  # the others have nothing to give

    return ft.shard_map(stages, mesh, (P("x"), P()), P())


def train(mesh, steps=3, layers=4):
    assert layers == mesh.size or mesh.size == 1
    rng = np.random.default_rng(0)
    apply = pipelined(mesh) if mesh.size > 1 else in_order

    @ft.jit
    def step(w, x, y):
        value, grad = ft.value_and_grad(lambda w: ((apply(w, x) - y) ** 2).mean())(w)
        return value, w - 0.1 * grad

    w = ft.device_put(rng.normal(size=(layers, WIDTH, WIDTH)) / 3, NamedSharding(mesh, P("x")))
    losses = []
    for _ in range(steps):
        x, y = ft.device_put((rng.normal(size=(6, 2, WIDTH)), rng.normal(size=(6, 2, WIDTH))),
                             NamedSharding(mesh, P()))
        value, w = step(w, x, y)
        losses.append(float(value))
    return losses, everywhere(w)


def in_order(w, x):
    """The same on one device."""
    for k in range(w.shape[0]):
        x = layer(w[k], x)
    return x


if __name__ == "__main__":
    mesh = one_mesh()
    print(train(mesh, layers=mesh.size)[0])
