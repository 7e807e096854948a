"""A table of embeddings by rows: each device has some of the words, and looks up those that it has.

A device gives zeros for words of others, and a sum over the devices has each word once; the
gradient of a row is added up where the row is. The table never lies on one device.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P

WORDS, WIDTH = 32, 6


def lookup(mesh):
    """Rows [words, d] and indices of any shape to vectors."""
    def part(table, indices):
        rows = table.shape[0]
        local = indices - lax.axis_index("x") * rows
        mine = (local >= 0) & (local < rows)
        found = table[jnp.where(mine, local, 0)]
        return lax.psum(jnp.where(mine[..., None], found, 0.0), "x")

    return ft.shard_map(part, mesh, (P("x"), P()), P())


def train(mesh, steps=4):
    rng = np.random.default_rng(0)
    embed = lookup(mesh)

    @ft.jit
    def step(table, indices, y):
        def loss(table):
            return ((embed(table, indices).mean(1) - y) ** 2).mean()

        value, grad = ft.value_and_grad(loss)(table)
        return value, table - 1.0 * grad

    table = ft.device_put(rng.normal(size=(WORDS, WIDTH)), NamedSharding(mesh, P("x")))
    losses = []
    for _ in range(steps):
        indices, y = ft.device_put((rng.integers(0, WORDS, (8, 5)), rng.normal(size=(8, WIDTH))),
                                   NamedSharding(mesh, P()))
        value, table = step(table, indices, y)
        losses.append(float(value))
    return losses, everywhere(table)


if __name__ == "__main__":
    print(train(one_mesh())[0])
