"""Programs for GPUs on NumPy arrays: Triton's interpreter runs the kernels."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle
from types import ModuleType
from typing import Any, Final

import numpy as np
from triton.runtime.interpreter import InterpretedFunction

from functrans.lowering.triton.emulator.emulation import emulation
from functrans.lowering.triton.kernels.host_math import threads
from functrans.lowering.triton.kernels.source import module_of
from functrans.lowering.triton.steps.spec import (
    CollectiveSteps,
    CopyStep,
    DoubleBufferedSteps,
    GPUProgram,
    HostStep,
    Launch,
    Pointer,
    RepeatedSteps,
    Step,
    WaitStep,
    turning_loops,
)

__all__ = ["InterpretedProgram"]

Memory = dict[str, list[Any]]
"""Arrays by the kind of places and their number; the collectives that have `begun`."""


_one_kernel: Final = threading.Lock()
"""Triton's interpreter changes its language while a kernel runs: devices take turns."""


class Buffer:
    """Bytes as Triton's interpreter takes an array: what it asks of one, and nothing else.

    It copies arrays to the host and back; these are there.
    """

    def __init__(self, data: np.ndarray[Any, Any], dtype: str) -> None:
        self.data = data
        self.dtype = dtype

    def data_ptr(self) -> int:
        return self.data.ctypes.data

    def untyped_storage(self) -> Buffer:
        return self

    def cpu(self) -> Buffer:
        return self

    def copy_(self, other: Buffer) -> None:
        """Already there."""

    def new_empty(self, size: int, device: str) -> Buffer:
        return Buffer(self.data, self.dtype)

    def set_(self, storage: Buffer, offset: int, size: Any, stride: Any) -> None:
        self.data = storage.data

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    def stride(self) -> tuple[int, ...]:
        return (1,)


class InterpretedProgram:
    """Runs a program; arguments and results are NumPy arrays."""

    def __init__(self, program: GPUProgram) -> None:
        self.program = program
        self.modules = [interpreted(module_of(
            text.replace("import device_math as fm", "import host_math as fm")))
            for text in program.sources]
        self.turns: Counter[int] = Counter()  # of loops with predicates, by identity

    @property
    def stats(self) -> dict[str, Any]:
        """What the runtime tells of a program: the turns of each loop with a predicate."""
        return {"turns": [self.turns[id(loop)] for loop in turning_loops(self.program.steps)]}

    def __call__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        p = self.program
        inputs = [np.ascontiguousarray(x) for x in arrays]
        outputs = [np.empty(a.shape, a.dtype) for a in p.outputs]
        for j, k in p.aliases.inputs.items():
            outputs[j] = inputs[k] = inputs[k].copy()
        arena = np.full(p.arena_bytes + 64, 0xCD, np.uint8)  # what nobody wrote is seen
        memory = {"input": inputs, "output": outputs, "constant": p.constants, "arena": [arena],
                  "tickets": [np.zeros(p.arrival_counters, np.int32)], "begun": []}
        self._run(p.steps, memory)
        self._wait(memory)
        return outputs

    def _run(self, steps: Iterable[Step], memory: Memory, done: int = 0) -> None:
        """Steps, in a round of a loop after some others."""
        for step in steps:
            if isinstance(step, Launch):
                self._launch(step, memory, done)
            elif isinstance(step, CopyStep):
                target, source = (_bytes(memory, at, done) for at in (step.target, step.source))
                target[:step.nbytes] = source[:step.nbytes]
            elif isinstance(step, RepeatedSteps):
                for k in range(step.count):
                    self._run(step.steps, memory, k)
            elif isinstance(step, CollectiveSteps):
                memory["begun"] += [step]
            elif isinstance(step, WaitStep):
                self._wait(memory, step.number)
            elif isinstance(step, DoubleBufferedSteps):
                self._run_double_buffered(step, memory)
            else:
                _on_host(step, memory, done)

    def _wait(self, memory: Memory, number: int | None = None) -> None:
        """Collectives up to a number; they run as late as they may, so that a missing wait is seen.
        """
        while memory["begun"] and (number is None or memory["begun"][0].number <= number):
            for part in memory["begun"].pop(0).parts:
                _on_host(part, memory, 0)

    def _run_double_buffered(self, loop: DoubleBufferedSteps, memory: Memory) -> None:
        """As the runtime does it, which may run an iteration too many."""
        for side in cycle(loop.sides):
            self._run(side.holds, memory)
            going = bool(_bytes(memory, side.flag)[0])
            if loop.ahead or going:
                self._run(side.body, memory)
            if not going:
                self._run(side.ends, memory)
                return
            self.turns[id(loop)] += 1

    def _launch(self, step: Launch, memory: Memory, done: int) -> None:
        if 0 in step.grid:
            return
        arguments = [Buffer(_bytes(memory, x, done), kind[1:]) if isinstance(x, Pointer) else x
                     for x, kind in zip(step.arguments, step.types, strict=True)]
        kernel = self.modules[step.module][step.kernel][step.grid]
        text = self.program.sources[step.module]
        with _one_kernel, np.errstate(all="ignore"), emulation():
            for _ in threads(32 * step.warps if "fm.thread_index(" in text else 1):
                kernel(*arguments)


def _bytes(memory: Memory, at: Pointer, done: int = 0) -> np.ndarray[Any, Any]:
    offset = at.offset + done * at.stride
    array: np.ndarray[Any, Any] = memory[at.kind][at.index]
    return array.reshape(-1).view(np.uint8)[offset:]


def _on_host(step: HostStep, memory: Memory, done: int) -> None:
    eqn = step.call.eqn
    arrays = [_bytes(memory, at, done)[:v.aval.nbytes].view(v.aval.dtype).reshape(v.aval.shape)
              for at, v in zip(step.inputs, eqn.invars, strict=True)]
    outs = eqn.primitive.run(*arrays, **eqn.params)
    for at, v, out in zip(step.outputs, eqn.outvars,
                          outs if eqn.primitive.multiple_results else [outs], strict=True):
        data = np.ascontiguousarray(out, v.aval.dtype).reshape(-1).view(np.uint8)
        _bytes(memory, at, done)[:data.size] = data


def interpreted(module: ModuleType) -> dict[str, Any]:
    """The functions of a module as the interpreter runs them."""
    functions = {name: value.fn for name, value in vars(module).items()
                 if hasattr(value, "fn") and callable(value.fn)}
    found = {name: InterpretedFunction(fn) for name, fn in functions.items()}
    vars(module).update(found)  # kernels call folds by their global names
    return found
