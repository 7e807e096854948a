"""`jax.experimental.mesh_utils`: devices in the shape of a mesh."""

from functrans.core.errors import explain_missing_names
from functrans.sharding import create_device_mesh

__all__ = ["create_device_mesh"]

explain_missing_names(globals())
