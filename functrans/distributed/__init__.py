"""What connects the devices of a mesh (docs/guide/distributed.md): processes, engines, and their
registry."""

from functrans.core.errors import explain_missing_names
from functrans.distributed.engines import engine_for, register_engine
from functrans.distributed.processes import (
    all_gather_bytes,
    broadcast_bytes,
    is_initialized,
    on_failure,
)
from functrans.distributed.start import initialize, shutdown

__all__ = ["all_gather_bytes", "broadcast_bytes", "engine_for", "initialize", "is_initialized",
           "on_failure", "register_engine", "shutdown"]

explain_missing_names(globals())
