"""DP-SGD over devices: each clips the gradients of its samples, and noise is drawn once, by key.

Norms of single samples are computed where the samples are, without gathering gradients: they are
algebra on the program (docs/guide/per_sample.md), and only the clipped sum goes over the network.
Noise is added to that sum, drawn by all devices from one key: it is there once, and parameters stay
the same everywhere (Abadi et al. 2016).
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import numpy as jnp
from functrans import per_sample
from functrans.sharding import NamedSharding, P

CLIP, NOISE = 1.0, 0.5


def loss(params, sample):
    x, y = sample
    hidden = jnp.tanh(x @ params["w1"])
    return ((hidden @ params["w2"] - y) ** 2).sum()


@ft.jit
def step(params, batch, key):
    grads, norms = per_sample.clipped_mean_and_norms(loss, CLIP, noise_multiplier=NOISE)(
        params, batch, key=key)
    return norms, ft.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def train(mesh, steps=3):
    rng = np.random.default_rng(0)
    params = ft.device_put({"w1": rng.normal(size=(8, 16)) / 3, "w2": rng.normal(size=(16, 2)) / 4},
                           NamedSharding(mesh, P()))
    medians = []
    for k in range(steps):
        batch = ft.device_put((rng.normal(size=(16, 8)), rng.normal(size=(16, 2))),
                              NamedSharding(mesh, P("x")))
        norms, params = step(params, batch, ft.random.fold_in(ft.random.key(0), k))
        assert mesh.size == 1 or norms.sharding.spec == P("x")
        medians.append(float(jnp.sort(norms)[8]))
    return medians, everywhere(params)


if __name__ == "__main__":
    print(train(one_mesh())[0])
