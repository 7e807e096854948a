"""What is computed: a transformer in bfloat16 with float32 parameters, and sums over devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

RATE = 1e-3


@dataclasses.dataclass(frozen=True)
class Sizes:
    layers: int = 12
    width: int = 1024
    heads: int = 16
    batch: int = 8
    """Sequences for each GPU."""
    length: int = 1024
    sums: tuple[int, ...] = (1, 16, 256)
    """MB for each GPU."""
    steps: int = 20
    rounds: int = 5


FULL = Sizes()
SMALL = Sizes(2, 128, 2, 2, 64, (1,), 2, 2)


def parameters(sizes: Sizes) -> list[dict[str, np.ndarray]]:
    """The weights of the layers, float32."""
    rng = np.random.default_rng(0)
    d = sizes.width

    def matrix(m: int, n: int) -> np.ndarray:
        return (rng.standard_normal((m, n), np.float32) / np.float32(m ** 0.5)) * np.float32(0.3)

    return [{"qkv": matrix(d, 3 * d), "out": matrix(d, d), "up": matrix(d, 4 * d),
             "down": matrix(4 * d, d), "first": np.ones(d, np.float32),
             "second": np.ones(d, np.float32)} for _ in range(sizes.layers)]


def tokens(sizes: Sizes, devices: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets, float32, of all devices."""
    rng = np.random.default_rng(1)
    shape = (sizes.batch * devices, sizes.length, sizes.width)
    return rng.standard_normal(shape, np.float32), rng.standard_normal(shape, np.float32)


def median_seconds(call: Callable[[], Any], wait: Callable[[Any], None], steps: int, rounds: int,
                   clock: Callable[[], float]) -> float:
    """Of a call among `steps` in a row, which are waited for at the end; the median of rounds."""
    found = []
    for _ in range(rounds):
        start, out = clock(), None
        for _ in range(steps):
            out = call()
        wait(out)
        found.append((clock() - start) / steps)
    return float(np.median(found))
