"""How long programs take on a GPU, by events of the device, on memory of its pool."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from functrans import _runtime
from functrans.core.errors import BackendError, DeviceMemoryError
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.machine.device import device_program
from functrans.lowering.triton.steps.spec import GPUProgram

__all__ = ["Timer", "seconds_of"]

MILLISECONDS: Final = 3.0
"""What one measurement takes, of several runs back to back."""
ROUNDS: Final = 3
FILL: Final = 60
"""A byte of which numbers of all types are made that are neither 0 nor far from 1."""


def seconds_of(programs: Sequence[GPUProgram], gpu: int, target: Target) -> list[float | None]:
    """The shortest mean time of each, among several rounds, in which they take turns.

    None for one that cannot be compiled, or for which there is no room.
    """
    buffers: dict[tuple[int, int], Any] = {}
    timers = [_timer(p, gpu, target, buffers) for p in programs]
    rounds = [[t() if t is not None else math.inf for t in timers] for _ in range(ROUNDS)]
    return [None if math.isinf(best) else best for best in map(min, zip(*rounds, strict=True))]


class Timer:
    """Mean seconds of a run, of so many that it takes long enough to be told."""

    def __init__(self, run: Any, arrays: Sequence[Any], gpu: int) -> None:
        self.run, self.arrays = run, arrays
        self.begin, self.end = _runtime.CudaEvent(gpu), _runtime.CudaEvent(gpu)
        self.runs = 2
        self()  # loads the kernels
        self.runs = math.ceil(min(300.0, max(2.0, MILLISECONDS / max(1e3 * self(), 1e-3))))

    def __call__(self) -> float:
        self.begin.record()
        for _ in range(self.runs):
            self.run(self.arrays)
        self.end.record()
        return 1e-3 * self.begin.elapsed_ms(self.end) / self.runs


def _timer(program: GPUProgram, gpu: int, target: Target,
           buffers: dict[tuple[int, int], Any]) -> Timer | None:
    """The timer of a program, on buffers that others of these sizes use as well."""
    count: Counter[int] = Counter()
    arrays = []
    try:
        run = device_program(program, gpu, target, name="a candidate")
        for aval in program.inputs:
            nbytes = int(aval.nbytes)
            key = (nbytes, count[nbytes])
            count[nbytes] += 1
            if key not in buffers:
                buffers[key] = _filled(nbytes, gpu)
            arrays.append(buffers[key])
        return Timer(run, arrays, gpu)
    except (BackendError, DeviceMemoryError):
        return None


def _filled(nbytes: int, gpu: int) -> Any:
    fill = ("fill", ("output", 0, 0), nbytes, FILL)
    spec = (np.dtype(np.uint8), (nbytes,))
    return _runtime.CudaProgram([], [fill], [], [spec], [], 0, gpu)([])[0]
