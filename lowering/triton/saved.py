"""Programs on disk: what spares a known jaxpr its passes, its schedule and its templates.

The steps of a program as a Python literal, under the hash of the jaxpr and of all that the way to
them depends on. What calls Python from within (equations that the host evaluates) is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from functrans.core import config
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.cache import Cache, digest
from functrans.lowering.c.fingerprint import (
    Fingerprint,
    compiler_version,
    constant_key,
    fingerprint,
)
from functrans.lowering.c.manifests import literal, matches
from functrans.lowering.triton.donation import Given
from functrans.lowering.triton.libraries.files import has_function
from functrans.lowering.triton.machine.target import Target
from functrans.lowering.triton.machine.unit import triton_version
from functrans.lowering.triton.spec import (
    Copy,
    HostStep,
    Launch,
    LibraryStep,
    Pointer,
    Program,
    Step,
)

__all__ = ["SavedProgram"]

FORMAT: Final = "2"
SCHEMA: Final = {"sources": [str], "steps": [tuple], "constants": [str], "arena": int,
                 "given": dict, "tickets": int}
SHOWN: Final = frozenset({"progress", "internal_frames", "disable_jit"})
"""Settings that no program depends on."""


class SavedProgram:
    """Where on disk the program of a jaxpr is, or would be.

    `device` is the name of the GPU whose winners were chosen, or empty.
    """

    def __init__(self, jaxpr: Jaxpr, cache: Cache, donated: frozenset[int], any_size: bool,
                 target: Target, device: str) -> None:
        self.jaxpr, self.cache = jaxpr, cache
        self._told = fingerprint(jaxpr)
        version = compiler_version()
        self._name = None if self._told is None or version is None else digest(
            FORMAT, version, triton_version(), _settings(), repr(target), device,
            repr(sorted(donated)), repr(any_size), self._told.text) + ".manifest"

    def read(self) -> Program | None:
        """The program, if it is there and whole."""
        data = None if self._name is None else self.cache.read(self._name)
        if data is None or self._told is None:
            return None
        try:
            told = literal(data)
            if not matches(told, SCHEMA) or not self._told.constants.keys() >= set(
                    told["constants"]):
                return None
            steps = [_step(*step) for step in told["steps"]]
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        if not all(has_function(s.function) for s in steps if isinstance(s, LibraryStep)):
            return None
        return Program(told["sources"], steps, [v.aval for v in self.jaxpr.invars],
                       [v.aval for v in self.jaxpr.outvars],
                       [self._told.constants[key] for key in told["constants"]], told["arena"],
                       [], Given(told["given"]), tickets=told["tickets"])

    def write(self, program: Program) -> None:
        """Keep a program, where all of it can be told."""
        told = None if self._told is None else _told(program, self._told)
        if self._name is not None and told is not None:
            self.cache.write(self._name, repr(told).encode())


def _settings() -> str:
    settings = config.current()
    return repr([(f.name, getattr(settings, f.name)) for f in fields(settings)
                 if f.name not in SHOWN])


def _told(program: Program, told: Fingerprint) -> dict[str, Any] | None:
    if any(type(step) is HostStep for step in program.steps):
        return None
    constants = list(map(constant_key, program.constants))
    steps = list(map(_step_told, program.steps))
    if None in steps or not told.constants.keys() >= set(constants):
        return None
    return {"sources": program.sources, "steps": steps, "constants": constants,
            "arena": program.arena_bytes, "given": dict(program.given.inputs),
            "tickets": program.tickets}


def _step_told(step: Step) -> tuple[Any, ...] | None:
    if isinstance(step, Copy):
        return (_place_told(step.target), _place_told(step.source), step.nbytes)
    if isinstance(step, LibraryStep):
        places = [[*map(_place_told, at)] for at in (step.inputs, step.outputs)]
        return (step.function, step.numbers, *places)
    if not isinstance(step, Launch):
        return None
    arguments = [_place_told(x) if isinstance(x, Pointer) else x for x in step.arguments]
    if not all(type(x) in (tuple, int) or (type(x) is float and math.isfinite(x))
               for x in arguments):
        return None
    return (step.module, step.kernel, tuple(step.grid), arguments, step.types,
            step.divisible, step.warps, step.stages, step.fuses)


def _place_told(at: Pointer) -> tuple[str, int, int]:
    return (at.kind, at.index, at.offset)


def _step(*told: Any) -> Step:
    if len(told) == 3:
        return Copy(Pointer(*told[0]), Pointer(*told[1]), told[2])
    if len(told) == 4:
        function, numbers, ins, outs = told
        return LibraryStep(None, tuple([Pointer(*x) for x in ins]),
                           tuple([Pointer(*x) for x in outs]), function, numbers)
    module, kernel, grid, arguments, *rest = told
    given: Sequence[Any] = [Pointer(*x) if type(x) is tuple else x for x in arguments]
    return Launch(module, kernel, grid, tuple(given), *rest)
