"""What a machine can do at most, measured: bytes moved and arithmetic in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from functrans.placement import block_until_ready, device_put
from functrans.transforms.jit.api import jit

__all__ = ["Machine", "machine"]

ELEMENTS = {"cpu": 1 << 24, "gpu": 1 << 26}  # 64 and 256 MB: more than caches hold
SIZE = {"cpu": 512, "gpu": 8192}  # of square matrices: 1 to 10 ms
ROUNDS = 20


@dataclass(frozen=True)
class Machine:
    """Bytes and floating-point operations of float32 in a second."""

    bandwidth: float
    flops: float


@cache
def machine(device: str = "cpu") -> Machine:
    """The rates of a copy and of a product of matrices on `cpu` or a GPU; measured once."""
    kind = device.partition(":")[0]
    x = device_put(np.ones(ELEMENTS[kind], np.float32), None if kind == "cpu" else device)
    a = device_put(np.ones((SIZE[kind], SIZE[kind]), np.float32),
                   None if kind == "cpu" else device)
    copy, product = jit(lambda x: -x), jit(lambda a: a @ a)
    return Machine(2 * 4 * ELEMENTS[kind] / _shortest(copy, x),
                   2 * SIZE[kind] ** 3 / _shortest(product, a))


def _shortest(run: Callable[[Any], Any], x: Any) -> float:
    block_until_ready(run(x))
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        block_until_ready(run(x))
        times.append(time.perf_counter() - begin)
    return min(times)
