"""`jax.experimental.multihost_utils` for one process."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.errors import explain_missing_names
from functrans.core.tree import tree_map

__all__ = ["broadcast_one_to_all", "process_allgather", "sync_global_devices"]


def sync_global_devices(name: str) -> None:
    """Nothing: there is no other process to wait for."""


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The tree itself, as arrays of NumPy: this process is all."""
    return tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, along a new axis of size 1 unless `tiled`."""
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


explain_missing_names(globals())
