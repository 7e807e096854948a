"""The CPU backend: a jaxpr becomes one C program in a shared object.

A program that the disk cache knows by its fingerprint is loaded without a look at the passes, the
rules and the C compiler; they are imported when a program has to be made, or to show one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from functrans._runtime import Program
from functrans.core import config
from functrans.core.errors import MemoryLimitError
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.executable import CExecutable
from functrans.lowering.c.interface import runtime_program
from functrans.lowering.c.isa import COMMON_FLAGS
from functrans.lowering.c.toolchain import compiled_isa
from functrans.lowering.defects import warn_of_fallback
from functrans.lowering.executable import Backend, Executable
from functrans.lowering.progress import watched
from functrans.lowering.reference import ReferenceBackend
from functrans.lowering.store.cache import (
    Cache,
    Schema,
    find_manifest,
    program_cache,
    store_manifest,
)
from functrans.lowering.store.fingerprint import Fingerprint, constant_key, fingerprint

if TYPE_CHECKING:
    from functrans.lowering.c.lower import LoweredToC
    from functrans.lowering.portable import PortableKernel, PortableProgram, StandaloneProgram

__all__ = ["CBackend", "CExecutable", "options_of"]

MANIFEST: Final[Schema] = {"constants": [str], "aliases": [int], "arena": int, "sizes": [[int]],
                           "libs": [str], "heavy": bool, "baseline": bool}


class CBackend(Backend):
    """Compiles to C with explicit vectors; without a C compiler, NumPy evaluates instead."""

    name = "c"
    target = "cpu"
    limits_memory = True
    instruction_sets = ("generic", "avx2", "avx512", "neon", "host")

    def __init__(self) -> None:
        self._fallback = ReferenceBackend()
        self._has_compiler = True

    def compile(self, jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                require_inplace: bool = False) -> Executable:
        prints, cache = fingerprint(jaxpr), program_cache()
        key = None if prints is None else prints.key(*options_of(donated, require_inplace))
        if prints is not None and key is not None:
            known = find_manifest(cache, key, MANIFEST)
            program = known and _loaded(jaxpr, prints, *known, cache)
            if known is not None and program is not None:
                executable = CExecutable(jaxpr, donated, program)
                if known[0]["baseline"]:
                    self._watch(executable, cache, prints, key, None)
                return executable
        made = self._made(jaxpr, donated, require_inplace, cache) if self._has_compiler else None
        if made is None:
            if jaxpr.eqns and config.current().memory_limit is not None:
                raise MemoryLimitError("a program that NumPy evaluates has no limit of memory.",
                                       fix="jit without memory_limit; functrans.explain says what "
                                           "of it is not compiled")
            return self._fallback.compile(jaxpr, donated, require_inplace)
        executable, path, is_baseline = made
        # another process would not be told of what could not be written as planned
        if prints is not None and key is not None and not executable.lowered.text.is_fallback:
            manifest = _manifest(executable.lowered, prints, is_baseline)
            if manifest is not None:
                store_manifest(cache, key, manifest, path)
        if is_baseline:
            self._watch(executable, cache, prints, key, executable.lowered)
        return executable

    def _watch(self, executable: CExecutable, cache: Cache, prints: Fingerprint | None,
               key: str | None, lowered: LoweredToC | None) -> None:
        """Have the full build of a program made once it has run for a while, and kept.

        A program from the cache is lowered again for that.
        """
        # later: most programs of most processes are full builds in the cache
        from functrans.lowering.c.baseline import in_background  # noqa: PLC0415

        jaxpr, donated, context = executable.jaxpr, executable.donated, copy_context()

        def make() -> Path:
            from functrans.lowering.c.lower import build_fully, lower  # noqa: PLC0415  as above

            made = lowered or context.run(lower, jaxpr, donated)
            assert made is not None
            path = build_fully(made.text, cache)
            manifest = None if prints is None else _manifest(made, prints, False)
            if manifest is not None and key is not None:
                store_manifest(cache, key, manifest, path)
            return path

        program = executable.run
        assert isinstance(program, Program)
        in_background(program, make)

    def inspectable(self, jaxpr: Jaxpr, donated: frozenset[int],
                    compiled: Callable[[], Executable]) -> Executable:
        """The program as text, which needs no C compiler before it is called."""
        # later: only who looks at a program needs it
        from functrans.lowering.c.inspected import InspectedCProgram  # noqa: PLC0415

        return InspectedCProgram(jaxpr, donated, compiled)

    def standalone(self, jaxpr: Jaxpr, isa: str) -> StandaloneProgram | None:
        # later: only who exports C needs it
        from functrans.lowering.c.standalone import standalone  # noqa: PLC0415

        return standalone(jaxpr, isa)

    def read_portable(self, plain: Any, kernels: Sequence[PortableKernel],
                      constants: list[np.ndarray[Any, Any]], jaxpr: Jaxpr,
                      sizes: Mapping[str, int]) -> PortableProgram:
        from functrans.lowering.c.portable import PortableCProgram  # noqa: PLC0415  who reads files

        if len(kernels) != 1:
            raise ValueError("a program for CPUs is one kernel")
        return PortableCProgram.read(plain, constants, kernels[0].code, jaxpr)

    def load(self, programs: Sequence[PortableProgram], jaxpr: Jaxpr,
             name: str) -> Executable | None:
        from functrans.lowering.c.portable import PortableCProgram  # noqa: PLC0415  who reads files

        for program in programs:
            if isinstance(program, PortableCProgram) and program.runs_here:
                return program.executable(jaxpr, program_cache())
        return None

    def _made(self, jaxpr: Jaxpr, donated: frozenset[int], require_inplace: bool,
              cache: Cache) -> tuple[CExecutable, Path, bool] | None:
        """A program compiled now, or found by its C text, and whether that is a baseline build.

        None where NumPy must evaluate.
        """
        # later: most programs of most processes are in the cache
        from functrans.lowering.c.lower import (  # noqa: PLC0415
            CompilerError,
            CompilerMissing,
            baseline_units,
            compiled,
            lower,
        )

        count = f"{len(jaxpr.eqns)} equation{'s' if len(jaxpr.eqns) > 1 else ''}"
        what = f"compiling {jaxpr.name} ({count})"
        try:
            with watched(f"{what}: planning its kernels") as progress:
                lowered = lower(jaxpr, donated)
                if lowered is None:
                    return None
                progress.doing = (f"{what}: the C compiler has {_kernels_text(lowered)}, which "
                                  "stay on the disk")
                try:
                    baseline = baseline_units(lowered.text)
                    path = compiled(lowered, require_inplace, cache, baseline)
                except CompilerError as refused:
                    baseline = None
                    plain = lower(jaxpr, donated, plain=True)  # its kernels have other texts
                    if plain is None:
                        raise
                    try:
                        path = compiled(plain, require_inplace, cache)
                    except CompilerError:
                        raise refused from None
                    lowered = plain
                    warn_of_fallback(jaxpr.name, "each of its values has a kernel of its own",
                                     refused, None)
        except CompilerMissing as error:
            self._has_compiler = False
            warnings.warn(f"{error} Until then NumPy evaluates compiled functions, slowly.",
                          RuntimeWarning, stacklevel=2)
            return None
        try:
            program = _program_of(jaxpr, lowered, path)
        except OSError as error:
            cache.disown(path.stem, error)
            path = compiled(lowered, require_inplace, cache, baseline)
            program = _program_of(jaxpr, lowered, path)
        executable = CExecutable(jaxpr, donated, program)
        executable.lowered = lowered
        return executable, path, baseline is not None


def options_of(donated: frozenset[int], require_inplace: bool) -> list[str]:
    """What a program depends on besides its jaxpr and the version of the compiler."""
    isa, settings = compiled_isa(), config.current()
    return [os.environ.get("CC", ""), isa.name, *COMMON_FLAGS, *isa.flags, repr(sorted(donated)),
            repr(require_inplace), settings.float_dtype.str, settings.int_dtype.str,
            settings.algebra, repr((settings.memory_limit, settings.chunks_batches))]


def _program_of(jaxpr: Jaxpr, lowered: LoweredToC, path: Path) -> Program:
    text = lowered.text
    arena = text.arena_bytes if isinstance(text.arena_bytes, int) else 0
    return runtime_program(jaxpr, path, text.constants, text.aliases, arena, lowered.sizes,
                           text.libs, lowered.hosts, text.heavy)


def _kernels_text(lowered: LoweredToC) -> str:
    kernels, size = len(lowered.text.kernels), len(lowered.text.text) // 1024 + 1
    return f"{kernels} kernel{'s' * (kernels != 1)} ({size} KiB)"


def _manifest(lowered: LoweredToC, prints: Fingerprint, is_baseline: bool) -> dict[str, Any] | None:
    """What another process must know to run the program; None where it cannot know it.

    Calls of Python are made from equations of the simplified jaxpr, and some constants by passes.
    """
    text = lowered.text
    constants = list(map(constant_key, text.constants))
    if text.hosts or not prints.constants.keys() >= set(constants):
        return None
    return {"constants": constants, "aliases": text.aliases,
            "arena": text.arena_bytes if isinstance(text.arena_bytes, int) else 0,
            "sizes": list(map(list, lowered.sizes)), "libs": text.libs, "heavy": text.heavy,
            "baseline": is_baseline}


def _loaded(jaxpr: Jaxpr, prints: Fingerprint, manifest: dict[str, Any],
            path: Path, cache: Cache) -> Program | None:
    """The program that a manifest describes; None where the two do not fit together, or the object
    does not load."""
    inputs = len(jaxpr.invars)
    aliases, sizes, keys = manifest["aliases"], manifest["sizes"], manifest["constants"]
    if len(aliases) != len(jaxpr.outvars) or not all(-1 <= a < inputs for a in aliases) \
            or not all(len(at) == 2 and 0 <= at[0] < inputs for at in sizes) \
            or not prints.constants.keys() >= set(keys):
        return None
    try:
        return runtime_program(jaxpr, path, [prints.constants[key] for key in keys], aliases,
                               manifest["arena"], sizes, manifest["libs"], [], manifest["heavy"])
    except OSError as error:
        cache.disown(path.stem, error)
        return None
