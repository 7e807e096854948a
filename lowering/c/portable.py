"""Programs for the CPU with their machine code, which run on other machines without compiling."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.c.executable import CExecutable
from functrans.lowering.c.interface import runtime_program
from functrans.lowering.c.isa import host_isa
from functrans.lowering.c.lower import compiled, lower
from functrans.lowering.c.toolchain import compiled_isa
from functrans.lowering.portable import PortableProgram
from functrans.lowering.store.cache import FORMAT, HASH_BYTES, Cache, Schema, digest, matches

__all__ = ["PortableCProgram", "portable"]

SCHEMA: Final[Sequence[Schema]] = (str, str, [str], int, [[int]], [str], bool)
MOST_ARENA: Final = 1 << 46


class PortableCProgram(Record, PortableProgram, eq=False):
    """A shared object, the machines that it runs on, and what the runtime must know to run it.

    `interface` is the version of that between programs and the runtime, `machine` and `flags` are
    the processor's family and instruction sets as the C compiler names them.
    """

    interface: str
    machine: str
    flags: list[str]
    arena_bytes: int
    sizes: list[list[int]]
    libs: list[str]
    heavy: bool
    constants: Sequence[np.ndarray[Any, Any]]
    shared_object: bytes

    def to_plain(self) -> list[Any]:
        """What it is as plain values, without arrays and the shared object."""
        return [self.interface, self.machine, self.flags, self.arena_bytes, self.sizes, self.libs,
                self.heavy]

    def arrays(self) -> Sequence[np.ndarray[Any, Any]]:
        return self.constants

    @classmethod
    def read(cls, plain: Any, constants: Sequence[np.ndarray[Any, Any]], shared_object: bytes,
                   jaxpr: Jaxpr) -> PortableCProgram:
        """The program that `to_plain` wrote. Raises ValueError where they do not fit."""
        if not isinstance(plain, list) or len(plain) != len(SCHEMA) \
                or not all(map(matches, plain, SCHEMA)):
            raise ValueError("a program for CPUs is not whole")
        found = cls(*[*plain, constants, shared_object])
        inputs = jaxpr.in_avals
        if not 0 <= found.arena_bytes < MOST_ARENA or not all(
                len(at) == 2 and 0 <= at[0] < len(inputs)
                and 0 <= at[1] < len(inputs[at[0]].shape) for at in found.sizes):
            raise ValueError("a program for CPUs does not fit its types")
        return found

    @property
    def runs_here(self) -> bool:
        """Whether this machine has the instructions, and this functrans the interface."""
        return (self.interface == FORMAT and self.machine == os.uname().machine
                and set(self.flags) <= set(host_isa().flags))

    def executable(self, jaxpr: Jaxpr, cache: Cache) -> CExecutable:
        """What runs it; raises OSError where the loader refuses the shared object."""
        # by its content: no program compiled here is found under this name
        key = digest("portable", self.shared_object)
        path = cache.find(key) or cache.write(f"{key}.so", self.shared_object)
        program = runtime_program(jaxpr, path, list(self.constants), [-1] * len(jaxpr.outvars),
                                  self.arena_bytes, self.sizes, self.libs, [], self.heavy)
        return CExecutable(jaxpr, frozenset(), program)


def portable(jaxpr: Jaxpr, cache: Cache) -> tuple[PortableCProgram, str] | None:
    """The program of a jaxpr for this machine, and its C; None where NumPy computes a part of it.

    Raises CompilerMissing without a C compiler.
    """
    lowered = lower(jaxpr, frozenset())
    if lowered is None or lowered.hosts:
        return None
    shared_object = compiled(lowered, False, cache).read_bytes()[:-HASH_BYTES]
    text = lowered.text
    arena = text.arena_bytes if isinstance(text.arena_bytes, int) else 0
    made = PortableCProgram(FORMAT, os.uname().machine, list(compiled_isa().flags), arena,
                            [list(at) for at in lowered.sizes], text.libs, text.heavy,
                            text.constants, shared_object)
    return made, text.text
