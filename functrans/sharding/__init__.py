"""Meshes of devices, and arrays that are divided over them; JAX's names (jax.sharding)."""

from functrans.core.errors import publish
from functrans.core.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    mesh_scope,
    set_mesh,
)
from functrans.core.sharding import NamedSharding, Sharding, SingleDeviceSharding
from functrans.core.shards import Shard
from functrans.sharding.meshes import create_device_mesh, get_abstract_mesh, get_mesh, make_mesh
from functrans.transforms.constraints import with_sharding_constraint

P = PartitionSpec
reshard = with_sharding_constraint
use_mesh = mesh_scope

__all__ = ["AbstractMesh", "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Shard",
           "Sharding", "SingleDeviceSharding", "create_device_mesh", "get_abstract_mesh",
           "get_mesh", "make_mesh", "reshard", "set_mesh", "use_mesh"]

publish(globals(), __all__)
