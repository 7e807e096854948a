"""Moving pytrees of arrays to devices and to NumPy, and waiting for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.array import Array
from functrans.core import tree
from functrans.core.trace import Tracer
from functrans.device import find_device
from functrans.numpy import asarray

__all__ = ["block_until_ready", "device_get", "device_put"]


def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """The leaves of a pytree as arrays on a device (by default the only one).

    Raises BackendError for a device that is not there, NonArrayError for a leaf that is no array.

    >>> import numpy as np
    >>> import functrans as ft
    >>> ft.device_put({"w": np.ones(2)})["w"].device
    cpu:0
    """
    find_device(device)
    return tree.tree_map(asarray, x)


def device_get(x: Any) -> Any:
    """The array leaves of a pytree as read-only NumPy arrays, without a copy.

    >>> import functrans as ft
    >>> ft.device_get(ft.numpy.arange(2))
    array([0, 1], dtype=int32)
    """
    return tree.tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, (Array, Tracer)) else
                         leaf, x)


def block_until_ready(x: Any) -> Any:
    """The pytree itself, once all its arrays are computed."""
    for leaf in tree.tree_leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
