"""The registry of engines: which of them connects the devices of a mesh."""

from __future__ import annotations

from typing import Final

from functrans.core.communicator import Engine
from functrans.core.errors import BackendError
from functrans.core.mesh import Mesh
from functrans.core.source import user_source
from functrans.distributed.gpus import NcclEngine
from functrans.distributed.local import ThreadsEngine
from functrans.distributed.mpi import MpiEngine

__all__ = ["engine_for", "register_engine"]

_engines: Final[list[Engine]] = [ThreadsEngine(), NcclEngine(), MpiEngine()]



def register_engine(engine: Engine) -> None:
    """Ask an engine before those that were registered earlier; one of its name is replaced."""
    _engines[:] = [engine, *[e for e in _engines if e.name != engine.name]]


def engine_for(mesh: Mesh) -> Engine:
    """The engine that connects the devices of a mesh; raises BackendError where there is none."""
    for engine in _engines:
        if engine.takes(mesh):
            return engine
    kinds = ", ".join(sorted({d.platform for d in mesh.ranks}))
    raise BackendError(
        f"nothing connects the devices of {mesh!r} ({kinds}).", where=user_source(),
        why=f"the engines are {', '.join(e.name for e in _engines)}.",
        fix="a mesh of devices of one kind, or an engine for them (docs/guide/distributed.md)")
