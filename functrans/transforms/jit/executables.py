"""Compiled jaxprs: for which backend and device a program is, each made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, wrap
from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.guards import sizes_decided
from functrans.core.jaxpr import Jaxpr
from functrans.core.mesh import Mesh
from functrans.core.recording import recorded
from functrans.core.trace import run_in
from functrans.lowering.backend import (
    AUTO,
    Executable,
    HostDrivenProgram,
    compile_for,
    compile_for_any_size,
    compile_on_mesh,
    computes_on_gpus,
    default_backend,
    get_backend,
    makes_machine_code,
    runs_on_mesh,
)
from functrans.primitives.check import has_checks
from functrans.transforms.checks.checked_run import CheckedRun
from functrans.transforms.jit.shown import compilation_logged
from functrans.transforms.meshes import dims_on, mesh_of

__all__ = ["constants_for", "executable_of", "forget_executables", "is_compiled_within",
           "is_on_gpu", "limits_memory", "operation_on_gpu", "provide", "takes_arrays",
           "to_machine_code", "wrapped"]


def to_machine_code() -> bool:
    """Whether programs become machine code, by the settings of now."""
    return makes_machine_code(config.current().backend)


_compiled_jaxprs: WeakSet[Jaxpr] = WeakSet()
_provided: WeakKeyDictionary[Jaxpr, Callable[[Jaxpr, str], Executable | None]] = (
    WeakKeyDictionary())


def provide(jaxpr: Jaxpr, ready: Callable[[Jaxpr, str], Executable | None]) -> None:
    """Ask `ready` for what runs a jaxpr by a backend; where it has None, that is compiled."""
    _provided[jaxpr] = ready


def _executables_of(jaxpr: Jaxpr) -> dict[Any, Executable]:
    """What a jaxpr is compiled to: its own, since programs refer to it and would keep it alive."""
    known: dict[Any, Executable] | None = vars(jaxpr).get("executables")
    if known is None:
        known = vars(jaxpr).setdefault("executables", {})
        _compiled_jaxprs.add(jaxpr)
    return known


def executable_of(jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                  require_inplace: bool = False, values: Sequence[Any] = ()) -> Executable:
    """The compiled form of a jaxpr for the device of some values, made once."""
    known = _executables_of(jaxpr)
    settings = config.current()
    backend = settings.backend
    mesh = mesh_of(jaxpr.meshes, values)
    if mesh is not None:
        return _on_mesh(jaxpr, mesh, values, donated)
    gpu = gpu_of(values) if computes_on_gpus(backend) else None
    if backend == AUTO:
        backend = default_backend(gpu)
    key = (backend, settings.algebra, settings.matmul_precision, settings.deterministic,
           settings.autotune, settings.host_steps == "error", settings.checks, donated,
           require_inplace, settings.memory_limit, settings.chunks_batches)
    if key not in known:
        with recorded(jaxpr.name, "compile", backend=backend), \
                compilation_logged(jaxpr.name, backend), \
                sizes_decided(None):  # sizes of other programs are not those of a trace that runs
            ready = None if donated or settings.checks else _provided.get(jaxpr)
            known[key] = (ready and ready(jaxpr, backend)) or _compiled(
                backend, jaxpr, donated, require_inplace, settings.checks)
    if not gpu:
        return known[key]
    if (key, gpu) not in known:
        known[key, gpu] = known[key].on(gpu)
    return known[key, gpu]


def _on_mesh(jaxpr: Jaxpr, mesh: Mesh, values: Sequence[Any],
             donated: frozenset[int]) -> Executable:
    """The program of a mesh of devices for values as they lie on it."""
    known = _executables_of(jaxpr)
    settings = config.current()
    backend = settings.backend
    if backend == AUTO:
        backend = default_backend(0 if mesh.ranks[0].platform == "gpu" else None)
    # the constants of a trace come first, and are not always among the values
    extra = len(jaxpr.invars) - len(values)
    dims = (*[((),) * a.ndim for a in jaxpr.in_avals[:extra]],
            *[dims_on(mesh, x) for x in values])
    key = (mesh, dims, backend, settings.algebra, settings.matmul_precision,
           settings.deterministic, settings.autotune, donated)
    if key not in known:
        with recorded(jaxpr.name, "compile", backend=backend), sizes_decided(None):
            known[key] = run_in(None, compile_on_mesh, get_backend(backend), jaxpr, mesh, dims,
                                donated)
    return known[key]


def limits_memory(values: Sequence[Any]) -> bool:
    """Whether programs for the device of some values can be told how much memory they may need."""
    backend = config.current().backend
    if backend == AUTO:
        backend = default_backend(gpu_of(values))
    return get_backend(backend).limits_memory


def _compiled(backend: str, jaxpr: Jaxpr, donated: frozenset[int], require_inplace: bool,
              checks: frozenset[str]) -> Executable:
    if not checks and not has_checks(jaxpr):
        return compile_for(get_backend(backend), jaxpr, donated, require_inplace)
    # what is donated is not reused: the inputs are needed to find out what went wrong
    from functrans.transforms.checks.program import checked_executable  # noqa: PLC0415
    return checked_executable(jaxpr, checks, lambda flagged: compile_for(
        get_backend(backend), flagged, frozenset(), False))


def forget_executables() -> None:
    """Let all compiled programs go that no function holds."""
    for jaxpr in list(_compiled_jaxprs):
        _executables_of(jaxpr).clear()


def operation_on_gpu(jaxpr: Jaxpr, gpu: int) -> Executable:
    """A program on a GPU whose machine code is also that of other sizes; the caller keeps it."""
    executable = compile_for_any_size(get_backend(default_backend(gpu)), jaxpr)
    return executable.on(gpu) if gpu else executable


def takes_arrays(execute: Any) -> bool:
    """Whether what runs a program takes Arrays that are elsewhere than on the host, and gives them.
    """
    return is_on_gpu(execute) or (callable(execute) and type(execute).__name__ == "MeshProgram"
                                  and runs_on_mesh(execute))


def is_on_gpu(execute: Any) -> bool:
    """Whether what runs a program takes Arrays that are on a GPU, and gives them."""
    return isinstance(execute, _runtime.CudaProgram) or (
        isinstance(execute, (HostDrivenProgram, CheckedRun)) and execute.device is not None)


def is_compiled_within(execute: Any) -> bool:
    """Whether what runs a program from Python has its results from one that is compiled."""
    return isinstance(execute, CheckedRun) and execute.is_compiled


def constants_for(execute: Any, consts: Sequence[Any]) -> list[Any]:
    """The constants of a trace where the program is: they go to a device once, not at each call."""
    if not is_on_gpu(execute) and takes_arrays(execute):
        return list(consts)
    if is_on_gpu(execute):
        return [_runtime.place_array(x if isinstance(x, ArrayBase) else wrap(np.array(x)),
                                     execute.device + 1) for x in consts]
    return [x._np if isinstance(x, ArrayBase) else np.asarray(x) for x in consts]


def wrapped(out: Any, weak: bool) -> Any:
    """A result as an Array; on a GPU it is one, but for the weak type."""
    if isinstance(out, ArrayBase):
        return _runtime.with_weak_type(out, weak)
    return wrap(out, weak)
