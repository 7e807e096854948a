"""Programs on a GPU: kernels are compiled, and the runtime runs the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans import _runtime
from functrans.core.avals import ShapedArray
from functrans.core.errors import BackendError
from functrans.core.jaxpr import Equation
from functrans.core.source import user_source
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.store.cache import Cache, program_cache
from functrans.lowering.triton.kernels.source import alone
from functrans.lowering.triton.machine.kernel_cache import compiled_units
from functrans.lowering.triton.machine.unit import Binary, Unit
from functrans.lowering.triton.steps.spec import (
    LANES,
    CollectiveSteps,
    CopyStep,
    DoubleBufferedSteps,
    GPUProgram,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    RepeatedSteps,
    Step,
    WaitStep,
    launch_key,
    launches_in,
)

__all__ = ["MissingDeviceProgram", "binaries", "device_program", "unit_of"]


Compile = Callable[[Sequence[Unit], Cache], list[Binary]]


def binaries(program: GPUProgram, target: Target = HOPPER,
             compiled: Compile = compiled_units) -> dict[tuple[Any, ...], Binary]:
    """The machine code of the kernels of a program, each once."""
    launches = {launch_key(step): step for step in launches_in(program.steps)}
    units = [unit_of(program, step, target) for step in launches.values()]
    return dict(zip(launches, compiled(units, program_cache()), strict=True))


def unit_of(program: GPUProgram, step: Launch, target: Target) -> Unit:
    """The kernel of a launch as it is compiled."""
    return Unit(alone(program.sources[step.module], step.kernel), step.kernel, step.types,
                step.divisible, step.warps, step.stages, step.fuses, target.capability,
                target.shared)


def device_program(program: GPUProgram, device: int, target: Target,
                   donated: frozenset[int] = frozenset(), name: str = "a program",
                   machine_code: Mapping[tuple[Any, ...], Binary] | None = None) -> Any:
    """What runs a program on a device: a call with a list of arrays, which gives one.

    Errors tell its `name`; the memory of `donated` inputs is free for others after the call.
    Kernels without `machine_code` are compiled.
    """
    compiled = binaries(program, target) if machine_code is None else machine_code
    numbers = {key: k for k, key in enumerate(compiled)}
    # a kernel that is launched early has the multiprocessors that collectives wait for: without, a
    # step of a transformer on two H100 took 22.3 ms instead of 23.5
    early = not any(isinstance(step, CollectiveSteps) for step in program.steps)
    kernels = [(b.name, b.cubin, b.shared, b.warps, b.kinds, b.scratch,
                early and "griddepcontrol.wait" in b.ptx, b.name == LANES)
               for b in compiled.values()]
    steps = _described(program.steps, numbers, len(program.constants))
    # the runtime copies constants to the device once, and runs all programs of it on one stream
    arrival_counters = [np.zeros(program.arrival_counters,
                                 np.int32)] if program.arrival_counters else []
    return _runtime.CudaProgram(kernels, steps, [_spec(a) for a in program.inputs],
                                [(*_spec(a), program.aliases.inputs.get(j, -1))
                                 for j, a in enumerate(program.outputs)],
                                [*program.constants, *arrival_counters], program.arena_bytes,
                                device,
                                tuple(sorted(donated)), name)


def _described(program: Iterable[Step], kernels: dict[tuple[Any, ...], int],
               arrival_counters: int) -> list[tuple[Any, ...]]:
    """Steps as the runtime reads them; `kernels` are their numbers by their keys.

    `arrival_counters` is the number of the constant that they are.
    """
    steps: list[tuple[Any, ...]] = []
    for step in program:
        if isinstance(step, Launch):
            if 0 not in step.grid:
                steps.append(("launch", kernels[launch_key(step)], step.grid,
                              tuple([_place(x, arrival_counters) if isinstance(x, Pointer) else x
                                     for x in step.arguments])))
        elif isinstance(step, CopyStep):
            steps.append(("copy", _place(step.target), _place(step.source), step.nbytes))
        elif isinstance(step, RepeatedSteps):
            steps.append(("rounds", step.count, _described(step.steps, kernels, arrival_counters)))
        elif isinstance(step, DoubleBufferedSteps):
            steps.append(("until", step.ahead, [
                (_place(s.flag), *[_described(part, kernels, arrival_counters)
                                   for part in (s.holds, s.body, s.ends)])
                for s in step.sides]))
        elif isinstance(step, CollectiveSteps):
            steps.append(("collective", step.number, [
                (part.numbers, _place(part.inputs[0]), _place(part.outputs[0]))
                for part in step.parts]))
        elif isinstance(step, WaitStep):
            steps.append(("wait", step.number))
        elif isinstance(step, LibraryStep):
            steps.append(("library", step.function, step.numbers,
                          [_place(at) for at in (*step.inputs, *step.outputs)]))
        else:
            steps.append(_host(step))
    return steps


def _place(at: Pointer, arrival_counters: int = 0) -> tuple[str, int, int, int]:
    if at.kind == "tickets":
        return ("constant", arrival_counters, at.offset, at.stride)
    return (at.kind, at.index, at.offset, at.stride)


def _spec(aval: ShapedArray) -> tuple[Any, ...]:
    return (aval.dtype, aval.shape)


def _host(step: HostStep) -> tuple[Any, ...]:
    eqn = step.call.eqn
    ins = [(_place(at), *_spec(v.aval)) for at, v in zip(step.inputs, eqn.invars, strict=True)]
    outs = [(_place(at), *_spec(v.aval)) for at, v in zip(step.outputs, eqn.outvars, strict=True)]
    return ("host", partial(_evaluate, eqn), ins, outs)


def _evaluate(eqn: Equation, *arrays: np.ndarray[Any, Any]) -> Sequence[np.ndarray[Any, Any]]:
    out = eqn.primitive.run(*arrays, **eqn.params)
    outs = out if eqn.primitive.multiple_results else [out]
    return [np.asarray(o, v.aval.dtype) for o, v in zip(outs, eqn.outvars, strict=True)]


class MissingDeviceProgram:
    """What runs instead of a program that was compiled for GPUs that are not here."""

    def __init__(self, target: Target, here: Target | None) -> None:
        self.target, self.here = target, here

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        found = "no GPU" if self.here is None else f"a {self.here.name}"
        raise BackendError(f"this program is compiled for {self.target.name}.", where=user_source(),
                           why=f"there is {found} here, and machine code runs on GPUs of its kind.",
                           fix="ft.jit(f)(...) compiles for what is here; the kernels, their cost "
                               "and memory can be looked at anywhere")
