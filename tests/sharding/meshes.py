"""Meshes of virtual devices for tests, and random ways to divide arrays over them."""

import itertools
from functools import cache

import numpy as np

import functrans as ft
from functrans.core.sharding import sharding_on

NAMES = ("a", "b", "c")


@cache
def mesh_of(*shape):
    """A mesh of that shape of virtual devices of the CPU, whose axes are called a, b, c."""
    count = int(np.prod(shape))
    with ft.config.cpu_devices(count):
        devices = ft.devices("cpu")
    return ft.make_mesh(shape, NAMES[:len(shape)], devices=devices)


def random_dims(rng, mesh, shape):
    """Axes of the mesh for each axis of an array, at random among those that divide it."""
    free = list(mesh.axis_names)
    dims = []
    for n in shape:
        choices = [()]
        for count in (1, 2):
            choices += [c for c in itertools.permutations(free, count)
                        if n and n % mesh.size_of(c) == 0]
        chosen = choices[rng.integers(len(choices))]
        free = [f for f in free if f not in chosen]
        dims.append(chosen)
    return tuple(dims)


def divided(rng, mesh, x):
    """An array divided over a mesh at random."""
    return ft.device_put(x, sharding_on(mesh, random_dims(rng, mesh, np.shape(x))))
