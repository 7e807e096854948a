"""Programs on a GPU: kernels are compiled, and the runtime runs the steps."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from functrans import _runtime
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation
from functrans.lowering.triton.compile import Binary, compile_kernel
from functrans.lowering.triton.source import module_of
from functrans.lowering.triton.spec import Copy, HostStep, Launch, Pointer, Program

__all__ = ["binaries", "device_program"]

MOST_WORKERS = 8
MOST_SHARED = 227 << 10  # bytes of a program's shared memory on Hopper


def binaries(program: Program, capability: int = 90) -> dict[tuple[Any, ...], Binary]:
    """The machine code of the kernels of a program, each once.

    Kernels are compiled side by side: most of the time is spent outside of Python.
    """
    modules = [module_of(text) for text in program.sources]
    launches = {_key(step): step for step in program.steps if isinstance(step, Launch)}

    def compiled(step: Launch) -> Binary:
        function = getattr(modules[step.module], step.kernel)
        for stages in range(step.stages, 0, -1):  # what a layout needs besides is not foreseen
            binary = compile_kernel(function, step.types, step.divisible, step.warps, stages,
                                    capability, step.fuses)
            if binary.shared <= MOST_SHARED:
                break
        return binary

    with ThreadPoolExecutor(MOST_WORKERS) as workers:
        return dict(zip(launches, workers.map(compiled, launches.values()), strict=True))


def _key(step: Launch) -> tuple[Any, ...]:
    return (step.module, step.kernel, step.types, step.divisible, step.warps, step.stages)


def device_program(program: Program, device: int, capability: int,
                   donated: frozenset[int] = frozenset(), name: str = "a program") -> Any:
    """What runs a program on a device: a call with a list of arrays, which gives one.

    Errors tell its `name`; the memory of `donated` inputs is free for others after the call.
    """
    compiled = binaries(program, capability)
    numbers = {key: k for k, key in enumerate(compiled)}
    kernels = [(b.name, b.cubin, b.shared, b.warps, b.kinds, b.scratch)
               for b in compiled.values()]
    steps: list[tuple[Any, ...]] = []
    for step in program.steps:
        if isinstance(step, Launch):
            if 0 not in step.grid:
                steps.append(("launch", numbers[_key(step)], step.grid,
                              tuple([_place(x) if isinstance(x, Pointer) else x
                                     for x in step.arguments])))
        elif isinstance(step, Copy):
            steps.append(("copy", _place(step.target), _place(step.source), step.nbytes))
        else:
            steps.append(_host(step))
    return _runtime.CudaProgram(kernels, steps, [_spec(a) for a in program.inputs],
                                [_spec(a) for a in program.outputs], program.constants,
                                program.arena_bytes, device, tuple(sorted(donated)), name)


def _place(at: Pointer) -> tuple[str, int, int]:
    return (at.kind, at.index, at.offset)


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
