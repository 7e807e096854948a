"""Compiled kernels that travel with a program: made at export, and checked when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.dtypes import float0
from functrans.core.errors import ExportError, FunctransError
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import substitute_jaxpr
from functrans.export.plain import damaged, from_bytes
from functrans.lowering.backend import Backend, backend_for, get_backend, reader_of
from functrans.lowering.portable import NotPortableError, PortableProgram
from functrans.lowering.portable import PortableKernel as Kernel

__all__ = ["Kernel", "TargetProgram", "compile_targets", "kernels_plain", "read_kernels",
           "settings_now"]


@dataclass(frozen=True, eq=False)
class TargetProgram:
    """A program compiled for a target, for these values of its symbolic sizes or for all.

    `portable` runs it, on what it was compiled for; None where a part of it is Python's.
    """

    sizes: Mapping[str, int]
    settings: Sequence[Any]
    kernels: tuple[Kernel, ...]
    portable: PortableProgram | None


def settings_now() -> list[Any]:
    """The settings that decide what compiled programs compute."""
    settings = config.current()
    return [settings.algebra, settings.matmul_precision or "default", settings.deterministic]


def compile_targets(jaxpr: Jaxpr, name: str, targets: Mapping[str, Sequence[Mapping[str, int]]]
                    ) -> dict[str, list[TargetProgram]]:
    """The programs of a jaxpr for targets, and for GPUs for each of some sets of sizes.

    Raises BackendError for an unknown target, ExportError where there is nothing to compile.
    """
    found = {}
    for target, sets in targets.items():
        backend = get_backend(backend_for(target))
        sizes = sets if backend.exports_numbers and sets else [{}]
        with config.scope(backend=backend.name):
            found[backend.target] = [_compiled(jaxpr, name, backend, known) for known in sizes]
    return found


def _compiled(jaxpr: Jaxpr, name: str, backend: Backend,
              sizes: Mapping[str, int]) -> TargetProgram:
    target = backend.target
    _need_numbers(jaxpr, name, target)
    unknown = sorted(jaxpr.size_names - jaxpr.decided_names - sizes.keys())
    if backend.exports_numbers and unknown:
        raise ExportError(
            f"the kernels of {name} for {target} need sizes: {', '.join(unknown)} "
            f"{'is' if len(unknown) == 1 else 'are'} symbolic.",
            why="programs for GPUs are made for numbers; calls with other sizes compile their own.",
            fix=f'targets={{"{target}": [{{"{unknown[0]}": 64}}]}}')
    known = substitute_jaxpr(jaxpr, sizes) if sizes else jaxpr
    program = backend.inspectable(known, frozenset(), lambda: backend.compile(known))
    try:
        portable, kernels = program.portable(name)
    except NotPortableError as error:
        raise _nothing(name, target, error.why) from None
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
    stored = None if portable is None else portable.to_plain()
    constants = [] if portable is None or stored is None else [*map(array, portable.arrays())]
    kernels = [[k.name, k.source, k.ptx, k.code, None if k.resources is None else [*k.resources]]
               for k in program.kernels]
    sizes = [[k, v] for k, v in program.sizes.items()]
    return [sizes, program.settings, kernels, stored, constants]


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
        backend = _reader(target)
        found[target] = tuple([_program(p, jaxpr, arrays, backend)
                               for p in _list(programs, "the programs of a target are no list")])
    return found


def _reader(target: str) -> Backend:
    try:
        backend = reader_of(target)
    except FunctransError:
        backend = None
    if backend is None:
        raise damaged(f"there is no target {target!r:.50}")
    return backend


def _program(plain: Any, jaxpr: Jaxpr, arrays: Callable[[Any], Any],
             backend: Backend) -> TargetProgram:
    sizes, settings, kernels, stored, numbers = _list(plain, "a compiled program is not whole", 5)
    known = _sizes(sizes, jaxpr)
    if not isinstance(settings, list) or [type(s) for s in settings] != [str, str, bool]:
        raise damaged("the settings of a compiled program are not whole")
    read = [_kernel(k) for k in _list(kernels, "the kernels of a program are no list")]
    if stored is None:
        return TargetProgram(known, settings, tuple(read), None)
    try:
        portable = backend.read_portable(stored, read, [np.asarray(arrays(n)) for n in _list(
            numbers, "the arrays of a program are no list")], jaxpr, known)
    except ValueError as error:
        raise damaged(f"{error}, in a compiled program") from None
    return TargetProgram(known, settings, tuple(read), portable)


def _sizes(plain: Any, jaxpr: Jaxpr) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in _list(plain, "the sizes of a compiled program are no list"):
        name, value = _list(entry, "a size of a compiled program is no name and number", 2)
        if not isinstance(name, str) or name not in jaxpr.size_names or name in found \
                or type(value) is not int or not 0 <= value < 2**31:
            raise damaged(f"a compiled program is of a size {name!r:.50} that there is not")
        found[name] = value
    return found


def _kernel(plain: Any) -> Kernel:
    name, source, ptx, code, resources = _list(plain, "a kernel is not whole", 5)
    if [type(p) for p in (name, source, ptx, code)] != [str, str, str, bytes]:
        raise damaged("a kernel is no list of three texts, its machine code and its numbers")
    if resources is None:
        return Kernel(name, source, ptx, code)
    if not isinstance(resources, list) or not {*map(type, resources)} <= {str, int}:
        raise damaged("the numbers of a kernel are not whole")
    return Kernel(name, source, ptx, code, tuple(resources))


def _list(plain: Any, why: str, count: int | None = None) -> list[Any]:
    if not isinstance(plain, list) or (count is not None and len(plain) != count):
        raise damaged(why)
    return plain
