"""The registry of backends: which there are, and which compiles for a device.

The interface of a backend is in `executable.py`. Names of backends stand here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans.core import config
from functrans.core.dtypes import float0
from functrans.core.errors import BackendError, MemoryLimitError
from functrans.core.jaxpr import Jaxpr
from functrans.core.mesh import DimAxes, Mesh
from functrans.lowering.defects import reporting
from functrans.lowering.executable import Backend, Executable, WrapperExecutable
from functrans.lowering.host_driven import HostDrivenProgram
from functrans.lowering.keys import has_keys, without_keys

if TYPE_CHECKING:
    from functrans.lowering.report import CollectiveNote
    from functrans.lowering.spmd.partition import Partitioned

__all__ = [
    "AUTO",
    "Backend",
    "Executable",
    "HostDrivenProgram",
    "WrapperExecutable",
    "backend_for",
    "compile_for",
    "compile_for_any_size",
    "compile_on_mesh",
    "computes_on_gpus",
    "default_backend",
    "divided_on_mesh",
    "get_backend",
    "inspect_on_mesh",
    "is_built_in",
    "makes_machine_code",
    "reader_of",
    "register_backend",
    "reporting",
    "runs_on_mesh",
]

ENTRY_POINTS = "functrans.backends"


_backends: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Make a backend known under its name; a later one of the same name replaces it."""
    if not isinstance(backend, Backend):
        raise BackendError(f"{type(backend).__name__} is no backend.",
                           why="it does not inherit the interface, whose defaults explain, profile "
                               "and export ask.",
                           fix=f"class {type(backend).__name__}("
                               "functrans.lowering.backend.Backend): ...")
    _backends[backend.name] = backend


def _c() -> Backend:
    from functrans.lowering.c.backend import CBackend  # noqa: PLC0415

    return CBackend()


def _triton() -> Backend:
    from functrans.lowering.triton.backend import TritonBackend  # noqa: PLC0415

    return TritonBackend(get_backend(default_backend(None)))


def _triton_for(target: str) -> Backend:
    from functrans.lowering.schedule.target import target_named  # noqa: PLC0415
    from functrans.lowering.triton.backend import TritonBackend  # noqa: PLC0415

    return TritonBackend(get_backend(default_backend(None)), target_named(target))


def _reference() -> Backend:
    from functrans.lowering.reference import ReferenceBackend  # noqa: PLC0415

    return ReferenceBackend()


AUTO: Final = "auto"
"""The setting that stands for the default backend of the device of the arguments."""
_BUILT_IN: Final[dict[str, Callable[[], Backend]]] = {
    "c": _c, "reference": _reference, "triton": _triton}
"""Our own backends, each imported by the first program that it compiles."""
_DEFAULTS: Final = {"cpu": "c", "gpu": "triton"}
_GPU_TARGETS: Final = "cuda:"
"""How the names of backends begin that compile for GPUs that need not be here, as in `cuda:90`."""


def is_built_in(name: str) -> bool:
    """Whether a backend is ours, or `auto`; the others are of other distributions."""
    return name == AUTO or name in _BUILT_IN or name.startswith(_GPU_TARGETS)


def default_backend(gpu: int | None) -> str:
    """The name of the backend that compiles for a GPU, or for the CPU."""
    return _DEFAULTS["cpu" if gpu is None else "gpu"]


def computes_on_gpus(name: str) -> bool:
    """Whether the programs of a backend, or of some that `auto` stands for, run on GPUs."""
    return name == AUTO or "gpu" in get_backend(name).devices


def makes_machine_code(name: str) -> bool:
    """Whether programs of a backend are machine code, and not interpreted."""
    return name == AUTO or get_backend(name).makes_machine_code


def compile_for(backend: Backend, jaxpr: Jaxpr, donated: frozenset[int],
                require_inplace: bool) -> Executable:
    """The compiled form of a jaxpr, which may have keys, and inputs and outputs of float0.

    No backend has. Raises DefectError where a compiler fails.
    """
    if config.current().memory_limit is not None and not backend.limits_memory:
        raise MemoryLimitError(f"programs of the backend {backend.name!r} have no limit of memory.",
                               fix="jit without memory_limit; on a CPU the backend 'c' has one")
    with reporting(jaxpr, backend.name):
        if has_keys(jaxpr):
            jaxpr = without_keys(jaxpr)
        if all(a.dtype != float0 for a in (*jaxpr.in_avals, *jaxpr.out_avals)):
            return backend.compile(jaxpr, donated, require_inplace)
        from functrans.lowering.float0 import compile_without_float0  # noqa: PLC0415

        return compile_without_float0(backend.compile, jaxpr, donated, require_inplace)


def compile_on_mesh(backend: Backend, jaxpr: Jaxpr, mesh: Mesh, in_dims: Sequence[DimAxes],
                    donated: frozenset[int] = frozenset()) -> Executable:
    """The program of a mesh of devices, for arguments whose axes are divided as `in_dims` say.

    The memory of `donated` inputs may be reused; they are gone in any case.

    What it runs takes Arrays, and gives Arrays in shards. Raises DefectError where a compiler
    fails.
    """
    from functrans.lowering.spmd.executable import compile_for_mesh  # noqa: PLC0415  who has one

    return compile_for_mesh(jaxpr, mesh, in_dims, donated,
                            lambda parts, given: compile_for(backend, parts, given, False))


def divided_on_mesh(jaxpr: Jaxpr, mesh: Mesh, in_dims: Sequence[DimAxes]) -> Partitioned:
    """The program of each device of a mesh."""
    from functrans.lowering.spmd.partition import partition  # noqa: PLC0415  as above

    return partition(jaxpr, mesh, in_dims)


def inspect_on_mesh(backend: Backend, jaxpr: Jaxpr, mesh: Mesh, in_dims: Sequence[DimAxes]
                    ) -> tuple[Jaxpr, Sequence[CollectiveNote], Executable]:
    """The program of each device of a mesh, its collectives, and that program to look at."""
    parts = divided_on_mesh(jaxpr, mesh, in_dims)
    return parts.jaxpr, parts.notes, backend.inspectable(
        parts.jaxpr, frozenset(), lambda: compile_for(backend, parts.jaxpr, frozenset(), False))


def runs_on_mesh(execute: Any) -> bool:
    """Whether what runs a program takes Arrays, and gives Arrays in shards."""
    from functrans.lowering.spmd.executable import MeshProgram  # noqa: PLC0415  as above

    return isinstance(execute, MeshProgram)


def compile_for_any_size(backend: Backend, jaxpr: Jaxpr) -> Executable:
    """The compiled form of a jaxpr whose machine code is also that of other sizes.

    Raises DefectError where a compiler fails.
    """
    with reporting(jaxpr, backend.name):
        return backend.compile_for_sizes(without_keys(jaxpr) if has_keys(jaxpr) else jaxpr)


def backend_for(target: str) -> str:
    """The name of the backend that compiles for `cpu` or GPUs of a capability, as in `cuda:90`.

    A backend of another distribution is a target by its name. Raises BackendError where there is
    none.
    """
    if target == "cuda":
        target += ":90"
    if target in ("cpu", default_backend(None)):
        return default_backend(None)
    if target.startswith(_GPU_TARGETS):
        return get_backend(target).name
    if is_built_in(target) or _found(target) is None:
        raise BackendError(f"there is no target {target!r}.",
                           why='targets are "cpu" and "cuda:" with a compute capability.',
                           fix='target="cuda:90"')
    return target


def reader_of(target: str) -> Backend | None:
    """The backend that reads the portable programs of a target; None where it is not known here.

    A file says the target: no other distribution is asked, and nothing is registered. Raises
    BackendError for GPUs that there are none of.
    """
    if target == "cpu":
        return get_backend(default_backend(None))
    if target in _backends:
        return _backends[target]
    return _triton_for(target) if target.startswith(_GPU_TARGETS) else None


def get_backend(name: str) -> Backend:
    """The backend of that name: ours, or registered by an entry point of another distribution.

    Raises BackendError when there is none.
    """
    found = _found(name)
    if found is None:
        known = ", ".join(sorted({*_backends, *_BUILT_IN}))
        raise BackendError(f"there is no backend {name!r} (known: {known}).",
                           fix=f"register one through the entry point group {ENTRY_POINTS!r}")
    return found


def _found(name: str) -> Backend | None:
    if name in _backends:
        return _backends[name]
    if name in _BUILT_IN:
        register_backend(_BUILT_IN[name]())
    elif name.startswith(_GPU_TARGETS):
        register_backend(_triton_for(name))
    else:
        # lazy: an eighth of the time of `import functrans`, for those who ask for another backend
        from importlib.metadata import entry_points  # noqa: PLC0415

        for entry in entry_points(group=ENTRY_POINTS, name=name):
            register_backend(entry.load()())
    return _backends.get(name)
