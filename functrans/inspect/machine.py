"""What a machine can do at most, measured: bytes moved and arithmetic in a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from functrans.core import config
from functrans.placement import block_until_ready, device_put
from functrans.transforms.jit.api import jit

__all__ = ["Machine", "machine", "stable_minimum"]

ELEMENTS = {"cpu": 1 << 24, "gpu": 1 << 26}  # 64 and 256 MB: more than caches hold
SIZE = {"cpu": 512, "gpu": 8192}  # of square matrices: 1 to 10 ms
LEAST, MOST, SECONDS = 10, 400, 1.0
"""Rounds, and seconds, of a measurement: until it is stable."""
STABLE = 8
"""So many rounds in a row that are not faster by more than ..."""
GAIN = 0.01
"""... this part make a measurement stable."""


@dataclass(frozen=True)
class Machine:
    """Bytes and floating-point operations of float32 in a second.

    `stable` says whether further rounds were no faster: not on a machine that is busy.
    """

    bandwidth: float
    flops: float
    stable: bool = True


@cache
def machine(device: str = "cpu") -> Machine:
    """The rates of a copy and of a product of matrices on `cpu` or a GPU; measured once."""
    kind = device.partition(":")[0]
    x = device_put(np.ones(ELEMENTS[kind], np.float32), None if kind == "cpu" else device)
    a = device_put(np.ones((SIZE[kind], SIZE[kind]), np.float32),
                   None if kind == "cpu" else device)
    copy, product = jit(lambda x: -x), jit(lambda a: a @ a)
    with config.scope(backend="auto"):  # the machine, whatever backend is measured on it
        copied, first = _shortest(copy, x)
        multiplied, second = _shortest(product, a)
    return Machine(2 * 4 * ELEMENTS[kind] / copied, 2 * SIZE[kind] ** 3 / multiplied,
                   first and second)


def _shortest(run: Callable[[Any], Any], x: Any) -> tuple[float, bool]:
    """The shortest time of a run, and whether it was found again and again."""
    block_until_ready(run(x))

    def once() -> float:
        begin = time.perf_counter()
        block_until_ready(run(x))
        return time.perf_counter() - begin

    return stable_minimum(once)


def stable_minimum(once: Callable[[], float], clock: Callable[[], float] = time.perf_counter
                   ) -> tuple[float, bool]:
    """The least of measurements, repeated until it is stable or takes long, and whether it is."""
    end = clock() + SECONDS
    best, since = once(), 0
    for count in range(1, MOST):
        if count >= LEAST and since >= STABLE:
            return best, True
        if count >= LEAST and clock() > end:
            break
        taken = once()
        since = 0 if taken < best * (1 - GAIN) else since + 1
        best = min(best, taken)
    return best, since >= STABLE
