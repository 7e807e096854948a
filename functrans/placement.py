"""Moving pytrees of arrays to devices and to NumPy, and waiting for them."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase
from functrans.array import Array
from functrans.core import tree
from functrans.core.dtypes import KEY_DTYPES
from functrans.core.mesh import PartitionSpec
from functrans.core.sharding import NamedSharding, Sharding, SingleDeviceSharding
from functrans.core.shards import cut, in_shards, on_device, place_part, shards_of
from functrans.core.trace import Tracer
from functrans.device import CPU, Device, find_device, place_of
from functrans.dlpack import from_interface
from functrans.numpy import asarray
from functrans.transforms.constraints import as_sharding, with_sharding_constraint
from functrans.typing import ArrayLike, DeviceLike, PyTree

T = TypeVar("T")

__all__ = ["block_until_ready", "device_get", "device_put"]


@overload
def device_put(x: ArrayLike, device: DeviceLike | Sharding | PyTree | None = None, *,
               src: DeviceLike | None = None, donate: bool = False,
               may_alias: bool | None = None) -> Array: ...


@overload
def device_put(x: T, device: DeviceLike | Sharding | PyTree | None = None, *,
               src: DeviceLike | None = None, donate: bool = False,
               may_alias: bool | None = None) -> T: ...


def device_put(x: PyTree, device: DeviceLike | Sharding | PyTree | None = None, *,
               src: DeviceLike | None = None, donate: bool = False,
               may_alias: bool | None = None) -> PyTree:
    """The leaves of a pytree as arrays on a device, by default on the default device.

    In place of a device there may be a sharding (`functrans.sharding`), which divides arrays over
    the devices of a mesh, or a pytree of devices and shardings that is a prefix of x.

    Arrays that are there stay as they are, or are copied with `may_alias=False`; a GPU computes on
    while data is copied to it. `src` and `donate` only tell more about x. Raises
    BackendError for a device that is not there, NonArrayError for a leaf that is no array.

    >>> import numpy as np
    >>> import functrans as ft
    >>> ft.device_put({"w": np.ones(2)}, "cpu")["w"].device
    cpu:0
    """
    placed: PyTree
    if device is None or isinstance(device, (Device, str)):
        target = find_device(device)
        placed = tree.tree_map(lambda leaf: _put(leaf, target, device is not None), x)
    else:
        leaves, structure = tree.tree_flatten(x)
        wanted = tree.broadcast_prefix(device, x, lambda d: d is None or isinstance(
            d, (Device, Sharding, str, PartitionSpec)), what="device_put: the devices")
        placed = tree.tree_unflatten(structure, [
            _put(leaf, find_device(d), d is not None) if d is None or isinstance(d, (Device, str))
            else _divided(leaf, as_sharding(d, "device_put"))
            for leaf, d in zip(leaves, wanted, strict=True)])
    if may_alias is not False:
        return placed
    return tree.tree_map(
        lambda leaf, old: _own(leaf) if leaf is old and type(leaf) is Array else leaf, placed, x)


def _divided(leaf: Any, sharding: Sharding | None) -> Any:
    """One leaf in shards."""
    x = asarray(leaf)
    if type(x) is not Array or sharding is None:
        return x if sharding is None else with_sharding_constraint(x, sharding)
    if isinstance(sharding, SingleDeviceSharding):
        return _put(x, next(iter(sharding.device_set)), True)
    assert isinstance(sharding, NamedSharding)
    sharding.dims(x.shape, "device_put")
    shards = shards_of(x)
    if shards is not None:
        if shards.sharding == sharding:
            return x
        if isinstance(shards.sharding, NamedSharding) and shards.sharding.mesh == sharding.mesh:
            return with_sharding_constraint(x, sharding)
    parts = [place_part(part, device) for part, device in
             zip(cut(x, sharding), sharding.mesh.local_devices, strict=True)]
    return in_shards(sharding, x.shape, x.dtype, parts, x.weak_type)


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
    shards = shards_of(x)
    if shards is not None:
        if not asked or shards.sharding == SingleDeviceSharding(device):
            return x
        x = _runtime.wrap(x._np, x.weak_type)
    if device.platform == "cpu" and device != CPU:
        return on_device(_runtime.wrap(x._np, x.weak_type), device)
    if device == CPU and x.device == CPU and not (asked and _runtime.cuda_open()):
        return x  # where there is no other device, it does not matter who put it here
    if not asked and x.device != CPU:
        return x
    return _runtime.place_array(x, place_of(device))


@overload
def device_get(x: Array) -> np.ndarray: ...


@overload
def device_get(x: PyTree) -> PyTree: ...


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
    """The pytree itself, once all its arrays are computed.

    >>> ft.block_until_ready({"a": jnp.ones(2)})["a"]
    Array([1., 1.], dtype=float32)
    """
    for leaf in tree.tree_leaves(x):
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x
