"""Moving pytrees of arrays to devices and to NumPy, and waiting for them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase
from functrans.array import Array
from functrans.core import tree
from functrans.core.dtypes import KEY_DTYPES
from functrans.core.trace import Tracer
from functrans.device import CPU, Device, find_device, place_of
from functrans.dlpack import from_interface
from functrans.numpy import asarray
from functrans.typing import DeviceLike, PyTree

T = TypeVar("T")

__all__ = ["block_until_ready", "device_get", "device_put"]


def device_put(x: PyTree, device: DeviceLike | None = None, *, src: DeviceLike | None = None,
               donate: bool = False, may_alias: bool | None = None) -> PyTree:
    """The leaves of a pytree as arrays on a device, by default on the default device.

    Arrays that are there stay as they are, or are copied with `may_alias=False`; a GPU computes on
    while data is copied to it. `src` and `donate` only tell more about x. Raises
    BackendError for a device that is not there, NonArrayError for a leaf that is no array.

    >>> import numpy as np
    >>> import functrans as ft
    >>> ft.device_put({"w": np.ones(2)}, "cpu")["w"].device
    cpu:0
    """
    target = find_device(device)
    placed = tree.tree_map(lambda leaf: _put(leaf, target, device is not None), x)
    if may_alias is not False:
        return placed
    return tree.tree_map(
        lambda leaf, old: _own(leaf) if leaf is old and type(leaf) is Array else leaf, placed, x)


def _own(x: Array) -> Array:
    """The same values in memory of their own."""
    return _runtime.place_array(_runtime.wrap(np.array(x), x.weak_type), place_of(x.device))


def _put(leaf: Any, device: Device, asked: bool) -> Any:
    """One leaf; `asked`: the user named the device, so that programs on this array run there."""
    interface = not isinstance(leaf, (ArrayBase, Tracer)) \
        and hasattr(leaf, "__cuda_array_interface__")
    x = from_interface(leaf) if interface and _runtime.cuda_open() else asarray(leaf)
    if type(x) is not Array:  # a tracer
        return x
    if device == CPU and x.device == CPU and not (asked and _runtime.cuda_open()):
        return x  # where there is no other device, it does not matter who put it here
    if not asked and x.device != CPU:
        return x
    return _runtime.place_array(x, place_of(device))


def device_get(x: PyTree) -> PyTree:
    """The array leaves of a pytree as read-only NumPy arrays; from the CPU without a copy.

    An array on a GPU is copied to the host once.

    >>> import functrans as ft
    >>> ft.device_get(ft.numpy.arange(2))
    array([0, 1], dtype=int32)
    """
    return tree.tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, (ArrayBase, Tracer))
                         and leaf.dtype not in KEY_DTYPES else leaf, x)


def block_until_ready(x: T) -> T:
    """The pytree itself, once all its arrays are computed."""
    for leaf in tree.tree_leaves(x):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x
