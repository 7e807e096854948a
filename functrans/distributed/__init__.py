"""What connects the devices of a mesh (docs/guide/distributed.md): engines, and their registry."""

from functrans.core.errors import explain_missing_names
from functrans.distributed.engines import engine_for, register_engine

__all__ = ["engine_for", "register_engine"]

explain_missing_names(globals())
