"""Programs whose loops record each iteration: room for so many, and more where that was too little.

The device runs the whole program, and says how many iterations there were when it is done. Where
they did not fit, the program runs again with more room; what later calls get follows from the last
ones. So a call waits for the device once, and an iteration never does.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import _runtime
from functrans.core.dims import Size
from functrans.core.errors import HostStepWarning
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import known_sizes, substitute_jaxpr
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.executable import HOST_COMPUTES, Executable
from functrans.lowering.host_driven import HostDrivenProgram
from functrans.lowering.passes.bounded_loops import bounded, record_bytes
from functrans.lowering.triton.host_steps import leave_to_host
from functrans.primitives.control_flow.while_loop import while_p

if TYPE_CHECKING:
    from functrans.lowering.report import Report, TracedProgram
    from functrans.lowering.timing import StepTimes

__all__ = ["CapacityRetryExecutable", "capacity_retry_program"]

FIRST_CAPACITY, FIRST_BYTES = 64, 1 << 28
"""Iterations that a first call has room for, unless their records take more bytes than that."""
LEAST_CAPACITY = 4
GROWTH = 4
"""A program that is compiled for nothing costs more than one that is too large."""
REMEMBERED = 8
"""Calls whose iterations the next one has room for."""
KEPT = 64
"""Sets of sizes whose programs are kept: those that were used last."""

Compile = Callable[[Jaxpr], Executable]


class CapacityRetryProgram(HostDrivenProgram):
    """Runs a program on arrays, with as much room as its loops need."""

    def __init__(self, jaxpr: Jaxpr, compile_: Compile) -> None:
        self.jaxpr = jaxpr
        self._compile = compile_
        nbytes = record_bytes(jaxpr)
        self.capacities = {name: capacity_for(min(FIRST_CAPACITY,
                                                  FIRST_BYTES // max(nbytes.get(name, 1), 1)))
                           for name in sorted(jaxpr.decided_names)}
        self._known: dict[tuple[int, ...], Executable] = {}
        self._counts = {name: deque[int](maxlen=REMEMBERED) for name in self.capacities}

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        capacities = self.capacities
        while True:
            *outs, needed = self.with_capacities(capacities).run(arrays)
            counts = dict(zip(capacities, np.asarray(needed).tolist(), strict=True))
            if all(counts[name] <= capacity for name, capacity in capacities.items()):
                break
            capacities = {name: capacity * (GROWTH if counts[name] > capacity else 1)
                          for name, capacity in capacities.items()}
        for name, count in counts.items():
            self._counts[name].append(count)
        self.capacities = {name: capacity_for(max(self._counts[name])) for name in capacities}
        return outs

    def with_capacities(self, capacities: dict[str, int]) -> Executable:
        """The program with such rooms."""
        key = tuple(capacities.values())
        if key not in self._known:
            self._known[key] = self._compile(bounded(self.jaxpr, capacities))
        return self._known[key]

    @property
    def known(self) -> list[Executable]:
        return list(self._known.values())


def capacity_for(count: int) -> int:
    """The least of 4, 6, 8, 12, 16, 24 ... that has room for so many."""
    capacity = LEAST_CAPACITY
    while capacity < count:
        if capacity * 3 // 2 >= count:
            return capacity * 3 // 2
        capacity *= 2
    return capacity


class CapacityRetryExecutable(Executable):
    """A program whose loops record, as jit knows it; `first` is what a first call runs."""

    why_not_portable = HOST_COMPUTES
    run: CapacityRetryProgram

    def __init__(self, jaxpr: Jaxpr, compile_: Compile) -> None:
        self._compile = compile_
        self._for_shapes = lru_cache(maxsize=KEPT)(self._at_shapes)
        self.run = CapacityRetryProgram(jaxpr, compile_)
        self.first = self.run.with_capacities(self.run.capacities)
        first: Any = self.first.run
        if isinstance(first, _runtime.CudaProgram):
            self.run.device, self.run.host_calls = first.device, first.host_calls

    @property
    def latest(self) -> Executable:
        """What the next call runs first: the program with the room that the last ones needed."""
        return self.run.with_capacities(self.run.capacities)

    def on(self, gpu: int) -> CapacityRetryExecutable:
        """The same program on another GPU."""
        return CapacityRetryExecutable(self.run.jaxpr, partial(_on, self._compile, gpu))

    def at(self, shapes: Sequence[tuple[int, ...]]) -> CapacityRetryExecutable:
        """The program for inputs of these shapes: itself where it has no named sizes."""
        if all(a.is_static for a in self.run.jaxpr.in_avals):
            return self
        return self._for_shapes(tuple(map(tuple, shapes)))

    def _at_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> CapacityRetryExecutable:
        jaxpr = self.run.jaxpr
        sizes = known_sizes(jaxpr.in_avals, shapes)
        return CapacityRetryExecutable(substitute_jaxpr(jaxpr, sizes), self._compile)

    @property
    def specialized(self) -> str:
        """Why its kernels are for its sizes alone, where those of all sizes were asked for."""
        return self.first.specialized

    @property
    def kernels(self) -> tuple[Any, ...]:
        """Those of the program with its first room."""
        return self.first.kernels

    def as_text(self) -> str:
        """The program with each room that was needed."""
        return "\n\n".join([e.as_text() for e in self.run.known])

    def cost_analysis(self) -> dict[str, Size]:
        return self.first.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return self.first.memory_analysis()

    def report(self, traced: TracedProgram) -> Report:
        """That of the program that the next call runs first."""
        return self.latest.report(traced)

    def timed_steps(self, inputs: Sequence[Any], gpu: int | None) -> StepTimes:
        self.run(inputs)  # finds how much room its loops need
        return self.latest.timed_steps(inputs, gpu)


def _on(compile_: Compile, gpu: int, jaxpr: Jaxpr) -> Executable:
    return compile_(jaxpr).on(gpu)


def capacity_retry_program(jaxpr: Jaxpr, compile_: Compile) -> CapacityRetryExecutable | None:
    """The program with rooms for its records; None, with a warning, where the CPU computes it."""
    try:
        return CapacityRetryExecutable(jaxpr, compile_)
    except UnsupportedKernel as error:
        source = next((e.source for e in jaxpr.eqns if e.primitive is while_p), None)
        leave_to_host("the whole program", str(error), source)
        warnings.warn(f"functrans: {f'{source}: ' if source else ''}the CPU computes the whole "
                      f"program, because of {error}.", HostStepWarning, stacklevel=2)
        return None
