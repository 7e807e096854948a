"""Parts of a computation on the workers of Dask: chains, a sweep, per-sample statistics.

    python examples/distributed/on_dask.py              # 4 processes of this machine
    python examples/distributed/on_dask.py tcp://scheduler:8786

Dask ships functions by cloudpickle, and jitted ones as well: each worker compiles once, or finds
the program in the disk cache. A part whose worker dies is run again on another one, by Dask.
"""

from __future__ import annotations

import sys

import numpy as np
from dask.distributed import Client, LocalCluster

import functrans as ft
from functrans import numpy as jnp


def log_density(x):
    """Of a banana-shaped distribution."""
    return -0.5 * (x[0] ** 2 + (x[1] - x[0] ** 2) ** 2)


@ft.jit
@ft.vmap
def chain(key):
    """The mean of a Metropolis chain of 500 steps."""
    def step(state, key):
        x, total = state
        move, accept = ft.random.split(key)
        y = x + ft.random.normal(move, (2,))
        taken = jnp.log(ft.random.uniform(accept)) < log_density(y) - log_density(x)
        x = jnp.where(taken, y, x)
        return (x, total + x), None

    keys = ft.random.split(key, 500)
    (_, total), _ = ft.lax.scan(step, (jnp.zeros(2), jnp.zeros(2)), keys)
    return total / 500


def chains(batch, size=125):
    """The means of some chains, numbered across all workers: no two share a key."""
    keys = ft.vmap(lambda k: ft.random.fold_in(ft.random.key(0), k))(
        batch * size + np.arange(size))
    return np.asarray(chain(keys))


def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).sum()


@ft.jit
def trained(rate, w, x, y):
    """The loss after 50 steps of gradient descent."""
    for_one = ft.grad(lambda w: loss(w, x, y) / len(x))
    w = ft.lax.fori_loop(0, 50, lambda _, w: w - rate * for_one(w), w)
    return loss(w, x, y) / len(x)


def sweep(rate, w, x, y):
    return rate, float(trained(rate, w, x, y))


def norms(w, chunk):
    """The norm of the gradient of each sample of a chunk, without the gradients."""
    return np.asarray(ft.per_sample.norms(lambda w, xy: loss(w, xy[0], xy[1]))(w, chunk))


def main(client):
    rng = np.random.default_rng(0)
    w = rng.normal(size=8).astype("float32")
    x = rng.normal(size=(2000, 8)).astype("float32")
    y = np.tanh(x @ rng.normal(size=8)).astype("float32")
    means = np.concatenate(client.gather(client.map(chains, range(8))))
    losses = dict(client.gather(client.map(sweep, np.geomspace(0.01, 10, 12).tolist(),
                                           w=w, x=x[:200], y=y[:200])))
    chunks = [(x[i:i + 250], y[i:i + 250]) for i in range(0, len(x), 250)]
    found = np.concatenate(client.gather(client.map(lambda chunk: norms(w, chunk), chunks)))
    return means, losses, found, (w, x, y)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        engine = Client(sys.argv[1])
    else:
        engine = Client(LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None))
    with engine:
        means, losses, found, _ = main(engine)
    print(f"{len(means)} chains: mean {means.mean(0).round(2)} (the truth is 0 and 1)")
    print(f"best rate: {min(losses, key=losses.get):.2g}")
    print(f"norms of {len(found)} gradients: median {np.median(found):.2g}, "
          f"largest {found.max():.2g}")
