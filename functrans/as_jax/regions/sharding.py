"""jax.sharding and what else spreads arrays: here over one device."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from functrans.as_jax.table import Module

__all__ = ["MODULES"]

_SHARDING: Final = "functrans.as_jax.parts.sharding"

MODULES: Final[Mapping[str, Module]] = MappingProxyType({
    "jax.sharding": Module((), {name: f"{_SHARDING}:{name}" for name in (
        "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
        "SingleDeviceSharding", "get_abstract_mesh", "get_mesh", "reshard", "set_mesh",
        "use_abstract_mesh")}),
    "jax.experimental.shard_map": Module((), {"shard_map": f"{_SHARDING}:shard_map"}),
    "jax.experimental.mesh_utils": Module((), {
        "create_device_mesh": f"{_SHARDING}:create_device_mesh"}),
    "jax.experimental.multihost_utils": Module((), {
        name: f"functrans.as_jax.parts.processes:{name}" for name in (
            "broadcast_one_to_all", "process_allgather", "sync_global_devices")}),
})
