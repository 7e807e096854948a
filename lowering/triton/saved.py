"""Programs on disk: what spares a known jaxpr its passes, its schedule and its templates.

The steps of a program as a Python literal, under the hash of the jaxpr and of all that the way to
them depends on. What calls Python from within (equations that the host evaluates) is not kept.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from functrans.core import config
from functrans.core.cuda_libraries import has_function
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.memory.aliasing import InputOutputAliases
from functrans.lowering.schedule.target import Target
from functrans.lowering.store.cache import Cache, literal, matches
from functrans.lowering.store.fingerprint import (
    Fingerprint,
    constant_key,
    fingerprint,
)
from functrans.lowering.triton.machine.unit import triton_version
from functrans.lowering.triton.steps.serialize import (
    deserialize_steps,
    library_functions,
    serialize_steps,
)
from functrans.lowering.triton.steps.spec import GPUProgram

__all__ = ["SavedProgram"]

STEPS_FORMAT: Final = "triton 4"
SCHEMA: Final = {"sources": [str], "steps": tuple, "constants": [str], "arena": int,
                 "given": dict, "specialized": str, "tickets": int}
SHOWN: Final = frozenset({"host_steps", "progress", "internal_frames", "disable_jit"})
"""Settings that no program depends on."""


class SavedProgram:
    """Where on disk the program of a jaxpr is, or would be.

    `device` is the name of the GPU whose winners were chosen, or empty.
    """

    def __init__(self, jaxpr: Jaxpr, cache: Cache, donated: frozenset[int], any_size: bool,
                 target: Target, device: str) -> None:
        self.jaxpr, self.cache = jaxpr, cache
        self._prints = fingerprint(jaxpr)
        key = None if self._prints is None else self._prints.key(
            STEPS_FORMAT, triton_version(), _settings(), repr(target), device,
            repr(sorted(donated)), repr(any_size))
        self._name = None if key is None else f"{key}.manifest"

    def read(self) -> GPUProgram | None:
        """The program, if it is there and whole."""
        data = None if self._name is None else self.cache.read(self._name)
        if data is None or self._prints is None:
            return None
        try:
            prints = literal(data)
            if not matches(prints, SCHEMA) or not self._prints.constants.keys() >= set(
                    prints["constants"]):
                return None
            steps = deserialize_steps(prints["steps"])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        if not all(map(has_function, library_functions(steps))):
            return None
        return GPUProgram(prints["sources"], steps, [v.aval for v in self.jaxpr.invars],
                          [v.aval for v in self.jaxpr.outvars],
                          [self._prints.constants[key] for key in prints["constants"]],
                          prints["arena"],
                          [], InputOutputAliases(prints["given"]),
                          specialized=prints["specialized"],
                          arrival_counters=prints["tickets"])

    def write(self, program: GPUProgram) -> None:
        """Keep a program, where all of it can be told."""
        prints = None if self._prints is None else _to_plain(program, self._prints)
        if self._name is not None and prints is not None:
            self.cache.keep(self._name, repr(prints).encode())


def _settings() -> str:
    settings = config.current()
    return repr([(f.name, getattr(settings, f.name)) for f in fields(settings)
                 if f.name not in SHOWN])


def _to_plain(program: GPUProgram, prints: Fingerprint) -> dict[str, Any] | None:
    constants = list(map(constant_key, program.constants))
    steps = serialize_steps(program.steps)
    if steps is None or not prints.constants.keys() >= set(constants):
        return None
    return {"sources": program.sources, "steps": steps, "constants": constants,
            "arena": program.arena_bytes, "given": dict(program.aliases.inputs),
            "specialized": program.specialized, "tickets": program.arrival_counters}
