"""What jax.experimental has of the kind: errors as values, derivatives along curves, odeint,
sparse arrays, and names that have moved since, by their old ones."""

from functrans.callbacks import io_callback
from functrans.core.errors import explain_missing_names
from functrans.experimental import (
    checkify,
    jet,
    layout,
    mesh_utils,
    multihost_utils,
    ode,
    pjit,
    shard_map,
    sparse,
)
from functrans.settings import disable_x64, enable_x64

__all__ = ["checkify", "disable_x64", "enable_x64", "io_callback", "jet", "layout", "mesh_utils",
           "multihost_utils", "ode", "pjit", "shard_map", "sparse"]

explain_missing_names(globals())
