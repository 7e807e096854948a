"""Parts of a computation on the workers of Ray: jitted functions, and a program from a file.

    python examples/distributed/on_ray.py               # processes of this machine
    RAY_ADDRESS=ray://head:10001 python examples/distributed/on_ray.py

Ray ships functions by cloudpickle, and jitted ones as well: each worker compiles once, or finds
the program in the disk cache. An exported program is bytes, which Ray's store keeps once for all
workers of a host. A part whose worker dies is run again on another one, by Ray; an actor is not
unless it is told to.
"""

from __future__ import annotations

import numpy as np
import ray

import functrans as ft
from functrans import numpy as jnp


@ft.jit
@ft.vmap
def estimate(key):
    """The share of 1,000 points of a square that lie in its circle."""
    points = ft.random.uniform(key, (1000, 2), minval=-1, maxval=1)
    return ((points ** 2).sum(-1) < 1).mean()


def estimates(part, size=100):
    """Those of some keys, numbered across all workers: no two share one."""
    keys = ft.vmap(lambda k: ft.random.fold_in(ft.random.key(0), k))(part * size + np.arange(size))
    return np.asarray(estimate(keys))


def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


@ray.remote
def part(number):
    return estimates(number)


@ray.remote
class Worker:
    """Holds a program that was exported elsewhere, and its share of the data."""

    def __init__(self, program, x, y):
        self.gradient = ft.export.deserialize(program)
        self.x, self.y = x, y

    def gradient_of(self, w):
        return np.asarray(self.gradient.call(w, self.x, self.y))


def trained(x, y, workers=2, steps=60, rate=1.0):
    """Gradient descent; the gradients of the parts of the data come from workers."""
    n, width = len(x) // workers, x.shape[1]
    shapes = [ft.ShapeDtypeStruct(s, "float32") for s in ((width,), (n, width), (n,))]
    program = ray.put(ft.export.export(ft.jit(ft.grad(loss)))(*shapes).serialize())
    group = [Worker.remote(program, x[k * n:][:n], y[k * n:][:n]) for k in range(workers)]
    w = np.zeros(width, np.float32)
    for _ in range(steps):
        gradients = ray.get([worker.gradient_of.remote(w) for worker in group])
        w = w - rate * np.mean(gradients, axis=0)
    return w


def main(parts=8):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)).astype("float32")
    y = np.tanh(x @ np.array([0.5, -1, 0.25, 2], "float32"))
    shares = np.concatenate(ray.get([part.remote(k) for k in range(parts)]))
    return shares, trained(x, y), (x, y)


if __name__ == "__main__":
    ray.init(include_dashboard=False)
    shares, w, _ = main()
    print(f"pi is about {4 * shares.mean():.4f} by {shares.size} estimates")
    print(f"weights {w.round(2)} (the truth is 0.5, -1, 0.25 and 2)")
    ray.shutdown()
