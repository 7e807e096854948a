"""Compiled kernels that travel with a program: made at export, and checked when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from functrans.core import config
from functrans.core.dtypes import float0
from functrans.core.errors import ExportError, FunctransError
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import substitute, substitute_jaxpr
from functrans.export.plain import damaged, from_bytes
from functrans.lowering.backend import backend_for, get_backend
from functrans.lowering.c import portable as for_cpus
from functrans.lowering.c.cache import program_cache
from functrans.lowering.triton import portable as for_gpus
from functrans.lowering.triton.backend import TritonExecutable
from functrans.lowering.triton.machine.target import Target, target_named
from functrans.lowering.triton.machine.unit import Binary

__all__ = ["CPU", "Kernel", "TargetProgram", "compile_targets", "kernels_plain", "read_kernels",
           "settings_now"]

CPU: Final = "cpu"
Runs: TypeAlias = "for_cpus.PortableCProgram | for_gpus.PortableTritonProgram"
RESOURCES: Final = {
    "kinds": str, **dict.fromkeys(("warps", "stages", "shared", "scratch", "scratch_alignment",
                                   "registers", "spills"), int)}
"""What is told of a kernel for GPUs besides its texts: fields of `Binary`."""


@dataclass(frozen=True)
class Kernel:
    """One kernel: its name, its source and machine code, and for a GPU its PTX.

    For the CPU a program is one kernel, whose machine code is a shared object.
    """

    name: str
    source: str
    ptx: str = ""
    code: bytes = b""


@dataclass(frozen=True, eq=False)
class TargetProgram:
    """A program compiled for a target, for these values of its symbolic sizes or for all.

    `portable` runs it, on what it was compiled for; None where a part of it is Python's.
    """

    sizes: Mapping[str, int]
    settings: Sequence[Any]
    kernels: tuple[Kernel, ...]
    portable: Runs | None


def settings_now() -> list[Any]:
    """The settings that decide what compiled programs compute."""
    settings = config.current()
    return [settings.algebra, settings.matmul_precision, settings.deterministic]


def compile_targets(jaxpr: Jaxpr, name: str, targets: Mapping[str, Sequence[Mapping[str, int]]]
                    ) -> dict[str, list[TargetProgram]]:
    """The programs of a jaxpr for targets, and for GPUs for each of some sets of sizes.

    Raises BackendError for an unknown target, ExportError where there is nothing to compile.
    """
    found = {}
    for target, sets in targets.items():
        backend = backend_for(target)
        with config.scope(backend=backend):
            if backend == "c":
                found[CPU] = [_for_cpus(jaxpr, name)]
            else:
                found[backend] = [_for_gpus(jaxpr, name, backend, sizes) for sizes in sets or [{}]]
    return found


def _for_cpus(jaxpr: Jaxpr, name: str) -> TargetProgram:
    _need_numbers(jaxpr, name, CPU)
    made = for_cpus.portable(jaxpr, program_cache())
    if made is None:
        raise _nothing(name, CPU, "it computes nothing, decides the sizes of its results, or "
                                  "needs Python for a part of it.")
    portable, text = made
    return TargetProgram({}, settings_now(),
                         (Kernel(name, text, "", portable.shared_object),),
                         portable)


def _for_gpus(jaxpr: Jaxpr, name: str, target: str, sizes: Mapping[str, int]) -> TargetProgram:
    _need_numbers(jaxpr, name, target)
    if unknown := sorted(jaxpr.size_names - jaxpr.decided_names - sizes.keys()):
        raise ExportError(
            f"the kernels of {name} for {target} need sizes: {', '.join(unknown)} "
            f"{'is' if len(unknown) == 1 else 'are'} symbolic.",
            why="programs for GPUs are made for numbers; calls with other sizes compile their own.",
            fix=f'targets={{"{target}": [{{"{unknown[0]}": 64}}]}}')
    known = substitute_jaxpr(jaxpr, sizes) if jaxpr.size_names else jaxpr
    executable = get_backend(target).compile(known)
    if not isinstance(executable, TritonExecutable):
        raise _nothing(name, target, "the host computes all of it, or it decides sizes as it "
                                     "runs.")
    portable = for_gpus.portable(executable.program, target_named(target))
    kernels = tuple([Kernel(k.name, source, k.ptx, k.cubin)
                     for k, source in zip(portable.kernels, portable.program.sources, strict=True)])
    return TargetProgram(dict(sizes), settings_now(), kernels, portable)


def _need_numbers(jaxpr: Jaxpr, name: str, target: str) -> None:
    if any(a.dtype == float0 for a in (*jaxpr.in_avals, *jaxpr.out_avals)):
        raise _nothing(name, target, "it takes or gives arrays of float0, which have no numbers.")


def _nothing(name: str, target: str, why: str) -> ExportError:
    return ExportError(f"{name} has no kernels for {target}.", where=None, why=why,
                       fix="leave out the target")


def kernels_plain(targets: Mapping[str, Sequence[TargetProgram]],
                  array: Callable[[Any], int]) -> list[Any]:
    """Compiled programs as plain values; `array` gives the numbers of the arrays of the file."""
    return [[target, [_program_plain(p, array) for p in programs]]
            for target, programs in targets.items()]


def _program_plain(program: TargetProgram, array: Callable[[Any], int]) -> list[Any]:
    portable = program.portable
    binaries: Sequence[Binary | None] = [None] * len(program.kernels)
    constants: Sequence[Any] = ()
    told = None if portable is None else portable.to_plain()
    if isinstance(portable, for_gpus.PortableTritonProgram):
        binaries, constants = portable.kernels, portable.program.constants
    elif portable is not None:
        constants = portable.constants
    kernels = [[k.name, k.source, k.ptx, k.code, b and [getattr(b, n) for n in RESOURCES]]
               for k, b in zip(program.kernels, binaries, strict=True)]
    return [[[k, v] for k, v in program.sizes.items()], program.settings, kernels,
            told, [] if told is None else [*map(array, constants)]]


def read_kernels(data: bytes, jaxpr: Jaxpr,
                 arrays: Callable[[Any], Any]) -> dict[str, tuple[TargetProgram, ...]]:
    """The programs of every target, checked against the jaxpr that they are of.

    `arrays` gives those of the file by number. Raises ExportError where the section holds
    something else.
    """
    found: dict[str, tuple[TargetProgram, ...]] = {}
    for entry in _list(from_bytes(data), "its kernels are no list"):
        target, programs = _list(entry, "the kernels of a target are no list", 2)
        if not isinstance(target, str) or target in found:
            raise damaged("the kernels of a target are there twice, or of none")
        gpu = None if target == CPU else _target(target)
        found[target] = tuple([_program(p, jaxpr, arrays, gpu)
                               for p in _list(programs, "the programs of a target are no list")])
    return found


def _target(name: str) -> Target:
    try:
        return target_named(name)
    except FunctransError:
        raise damaged(f"there is no target {name!r:.50}") from None


def _program(plain: Any, jaxpr: Jaxpr, arrays: Callable[[Any], Any],
             gpu: Target | None) -> TargetProgram:
    sizes, settings, kernels, told, numbers = _list(plain, "a compiled program is not whole", 5)
    known = _sizes(sizes, jaxpr)
    if not isinstance(settings, list) or [type(s) for s in settings] != [str, str, bool]:
        raise damaged("the settings of a compiled program are not whole")
    read = [_kernel(k) for k in _list(kernels, "the kernels of a program are no list")]
    shown = tuple([kernel for kernel, _ in read])
    if told is None:
        return TargetProgram(known, settings, shown, None)
    try:
        portable = _portable(told, read, [np.asarray(arrays(n)) for n in _list(
            numbers, "the arrays of a program are no list")], jaxpr, known, gpu)
    except ValueError as error:
        raise damaged(f"{error}, in a compiled program") from None
    return TargetProgram(known, settings, shown, portable)


def _portable(told: Any, kernels: Sequence[tuple[Kernel, Binary | None]],
              constants: list[Any],
              jaxpr: Jaxpr, sizes: Mapping[str, int], gpu: Target | None) -> Runs:
    if gpu is None:
        if len(kernels) != 1:
            raise ValueError("a program for CPUs is one kernel")
        return for_cpus.PortableCProgram.read(told, constants, kernels[0][0].code, jaxpr)
    binaries = [b for _, b in kernels if b is not None]
    if len(binaries) != len(kernels):
        raise ValueError("a kernel for GPUs is without its numbers")
    inputs, outputs = ([substitute(a, sizes) for a in avals]
                       for avals in (jaxpr.in_avals, jaxpr.out_avals))
    return for_gpus.PortableTritonProgram.read(told, [k.source for k, _ in kernels], binaries,
                                               constants,
                                               inputs, outputs, gpu)


def _sizes(plain: Any, jaxpr: Jaxpr) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in _list(plain, "the sizes of a compiled program are no list"):
        name, value = _list(entry, "a size of a compiled program is no name and number", 2)
        if not isinstance(name, str) or name not in jaxpr.size_names or name in found \
                or type(value) is not int or not 0 <= value < 2**31:
            raise damaged(f"a compiled program is of a size {name!r:.50} that there is not")
        found[name] = value
    return found


def _kernel(plain: Any) -> tuple[Kernel, Binary | None]:
    *parts, resources = _list(plain, "a kernel is not whole", 5)
    if [type(p) for p in parts] != [str, str, str, bytes]:
        raise damaged("a kernel is no list of three texts, its machine code and its numbers")
    kernel = Kernel(*parts)
    if resources is None:
        return kernel, None
    if not isinstance(resources, list) or [*map(type, resources)] != [*RESOURCES.values()]:
        raise damaged("the numbers of a kernel are not whole")
    numbers: dict[str, Any] = dict(zip(RESOURCES, resources, strict=True))
    return kernel, Binary(name=kernel.name, ptx=kernel.ptx, cubin=kernel.code, **numbers)


def _list(plain: Any, why: str, count: int | None = None) -> list[Any]:
    if not isinstance(plain, list) or (count is not None and len(plain) != count):
        raise damaged(why)
    return plain
