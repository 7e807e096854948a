"""jax.sharding, and what else spreads arrays and processes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import ModuleEntry

__all__ = ["MODULES"]

MODULES: Final[Mapping[str, ModuleEntry]] = MappingProxyType({
    "jax.sharding": ModuleEntry(("functrans.sharding",), {
        "use_abstract_mesh": "functrans.as_jax.parts.pmap:use_abstract_mesh"},
        hidden=frozenset({"meshes", "create_device_mesh", "use_mesh"})),
    "jax.experimental.shard_map": ModuleEntry((), {"shard_map": "functrans:shard_map"}),
    "jax.experimental.mesh_utils": ModuleEntry((), {
        "create_device_mesh": "functrans.sharding:create_device_mesh"}),
    "jax.experimental.multihost_utils": ModuleEntry((), {
        name: f"functrans.experimental.multihost_utils:{name}" for name in (
            "broadcast_one_to_all", "process_allgather", "sync_global_devices")}),
})
