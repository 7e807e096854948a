"""Random bits in the loops of lanes: as many additions as Threefry has."""

import re

import numpy as np

import functrans as ft
from functrans import lax

HASHES = 2  # of an iteration: of a key and a number, and of the bits


def walk(key):
    def step(s):
        x, k = s
        return x + ft.random.uniform(ft.random.fold_in(key, k)) - 0.5, k + 1
    return lax.while_loop(lambda s: (abs(s[0]) < 1) & (s[1] < 100), step, (0.0, 0))


def test_sums_of_hashes_stay_as_they_are():
    """LLVM takes sums of a loop apart, and makes five of each where one key does not change."""
    keys = ft.ShapeDtypeStruct((4096,), ft.random.key(0).dtype)
    compiled = ft.jit(ft.vmap(walk)).lower(keys, target="cuda:90").compile()
    (kernel,) = [k for k in compiled.kernels if "while" in k.text]
    sums = len(re.findall(r"add\.[su]32", kernel.ptx))
    assert HASHES * 20 <= sums <= HASHES * 60


def test_lanes_walk_as_they_do_alone():
    keys = ft.random.split(ft.random.key(1), 33)
    together = ft.vmap(walk)(keys)
    for k in (0, 7, 32):
        for x, y in zip(together, walk(keys[k]), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-6)
