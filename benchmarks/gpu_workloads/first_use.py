"""Operations outside of `jit` that are new: compiled, read from the disk, or of another shape.

Run as a script it is the process that is measured: it prints, for a library, the median seconds of
a first use and of a first use with another shape.
"""

from __future__ import annotations

import functools
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHAPES = (64, 128), (80, 240)
OPERATIONS: dict[str, Callable] = {
    "x + y": lambda xp, x, y: x + y,
    "x * 2.5": lambda xp, x, y: x * 2.5,
    "x + row": lambda xp, x, y: x + y[0],
    "sin": lambda xp, x, y: xp.sin(x),
    "sum of rows": lambda xp, x, y: x.sum(1),
    "sum": lambda xp, x, y: x.sum(),
    "product": lambda xp, x, y: x @ y.T,
    "where": lambda xp, x, y: xp.where(x > 0, x, y),
    "concatenate": lambda xp, x, y: xp.concatenate([x, y]),
    "cumsum": lambda xp, x, y: xp.cumsum(x, 1),
}
FIRST = "without jit: first use of an operation"
KEPT = "without jit: first use, from the disk cache"
SHAPE = "without jit: first use of a shape"
TITLES = (FIRST, KEPT, SHAPE)


def first_uses(library: Any) -> tuple[float, float]:
    """Medians over the operations: of the first use, and of the first one of another shape."""
    medians = []
    for rows, columns in SHAPES:
        x, y = (library.numpy.asarray(a) for a in values(rows, columns))
        library.block_until_ready((x, y))
        times = []
        for operation in OPERATIONS.values():
            start = time.perf_counter()
            library.block_until_ready(operation(library.numpy, x, y))
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return medians[0], medians[1]


def values(rows: int, columns: int) -> list[Any]:
    numpy = importlib.import_module("numpy")
    rng = numpy.random.default_rng(0)
    return [rng.normal(size=(rows, columns)).astype("float32") for _ in range(2)]


@functools.cache
def measured(
    module: str, rounds: int, caches: Callable[[str], dict[str, str]]
) -> dict[str, list[float]]:
    """Samples of a library by title, each from a process of its own; RuntimeError if it fails."""
    samples: dict[str, list[float]] = {title: [] for title in TITLES}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for title in (FIRST, KEPT):
                done = subprocess.run([sys.executable, __file__, module], capture_output=True,
                                      text=True, env=caches(folder))  # fmt: skip
                if done.returncode:
                    raise RuntimeError(done.stderr.strip().splitlines()[-1])
                first, shape = json.loads(done.stdout.splitlines()[-1])
                samples[title].append(first)
            samples[SHAPE].append(shape)  # the kernels are known, and this process knows no shape
    return samples


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    print(json.dumps(first_uses(importlib.import_module(sys.argv[1]))))
