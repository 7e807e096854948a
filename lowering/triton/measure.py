"""How long a program takes on a GPU, by events of the device, on memory of its pool."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from functrans import _runtime
from functrans.lowering.triton.device import device_program
from functrans.lowering.triton.spec import Program
from functrans.lowering.triton.target import Target

__all__ = ["seconds_of"]

MILLISECONDS: Final = 3.0
"""What one measurement takes, of several runs back to back."""
ROUNDS: Final = 3
FILL: Final = 60
"""A byte of which numbers of all types are made that are neither 0 nor far from 1."""


def seconds_of(program: Program, gpu: int, target: Target) -> float:
    """The shortest mean time of a run, among several rounds."""
    run = device_program(program, gpu, target, name="a candidate")
    arrays = [_filled(a.nbytes, gpu) for a in program.inputs]
    begin, end = _runtime.CudaEvent(gpu), _runtime.CudaEvent(gpu)

    def spent(runs: int) -> float:
        begin.record()
        for _ in range(runs):
            run(arrays)
        end.record()
        return begin.elapsed_ms(end)

    spent(2)  # loads the kernels
    runs = math.ceil(min(300.0, max(2.0, MILLISECONDS / max(spent(3) / 3, 1e-3))))
    return min(spent(runs) for _ in range(ROUNDS)) / runs * 1e-3


def _filled(nbytes: Any, gpu: int) -> Any:
    fill = ("fill", ("output", 0, 0), nbytes, FILL)
    spec = (np.dtype(np.uint8), (nbytes,))
    return _runtime.CudaProgram([], [fill], [], [spec], [], 0, gpu)([])[0]
