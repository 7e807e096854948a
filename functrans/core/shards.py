"""Arrays in shards: the parts of an array on the devices of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from functrans._runtime import ArrayBase, get_shards, place_array, sharded_array, wrap
from functrans.core.cuda import PUT_ON_CPU, SHARDED
from functrans.core.errors import BackendError
from functrans.core.mesh import DimAxes, Mesh
from functrans.core.sharding import NamedSharding, Sharding, SingleDeviceSharding
from functrans.core.source import user_source

__all__ = ["Shard", "Shards", "cut", "in_shards", "is_sharded", "mesh_dims", "on_device",
           "place_part", "sharding_of", "shards_everywhere", "shards_here", "shards_of"]

ELSEWHERE: Final = frozenset((0, PUT_ON_CPU, SHARDED))
"""Places that are no GPU."""


class Shards:
    """The parts of an array that this process has, in the order of the ranks of the devices.

    Each is an Array, on the CPU or on the GPU that it is for.
    """

    __slots__ = ("dtype", "parts", "shape", "sharding")

    def __init__(self, sharding: Sharding, shape: tuple[int, ...], dtype: np.dtype[Any],
                 parts: Sequence[Any]) -> None:
        self.sharding = sharding
        self.shape = shape
        self.dtype = dtype
        self.parts = tuple(parts)

    @property
    def devices(self) -> list[Any]:
        """The device of each part."""
        if isinstance(self.sharding, NamedSharding):
            return self.sharding.mesh.local_devices
        return list(self.sharding.device_set)

    @property
    def indices(self) -> list[tuple[slice, ...]]:
        """Which elements each part has."""
        places = self.sharding.devices_indices_map(self.shape)
        return [places[d] for d in self.devices]

    def gather(self) -> np.ndarray[Any, Any]:
        """The whole array; raises BackendError where parts of it are in other processes."""
        if self.sharding.is_fully_replicated:
            return _data(self.parts[0])
        if not self.sharding.is_fully_addressable:
            raise BackendError(
                "parts of this array are in other processes.", where=user_source(),
                why=f"it is divided as {self.sharding!r}.",
                fix="[s.data for s in x.addressable_shards], or replicate it by "
                    "jit(lambda x: x, out_shardings=NamedSharding(mesh, P()))")
        whole = np.empty(self.shape, self.dtype)
        for index, part in zip(self.indices, self.parts, strict=True):
            whole[index] = _data(part)
        return whole


def _data(part: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = part._np
    return found


class Shard:
    """One part of an array: its device, its place in the array, its data.

    >>> x = ft.device_put(jnp.arange(3.0), ft.devices("cpu")[0])
    >>> shard, = x.addressable_shards
    >>> shard.index, shard.data
    ((slice(None, None, None),), Array([0., 1., 2.], dtype=float32))
    """

    __slots__ = ("_array", "data", "device", "index", "replica_id")

    def __init__(self, device: Any, index: tuple[slice, ...], replica_id: int, data: Any) -> None:
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data = data

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, "
                f"replica_id={self.replica_id}, data={self.data!r})")


def shards_of(x: Any) -> Shards | None:
    """The shards of an array; None of one that is whole."""
    found: Shards | None = get_shards(x)
    return found


def is_sharded(x: Any) -> bool:
    """Whether x is an Array in shards."""
    return isinstance(x, ArrayBase) and x._place == SHARDED


def in_shards(sharding: Sharding, shape: Sequence[Any], dtype: np.dtype[Any],
              parts: Sequence[Any], weak_type: bool = False) -> Any:
    """The Array of some parts, which are Arrays, one for each device of this process."""
    shape = tuple(shape)
    return sharded_array(shape, dtype, weak_type, Shards(sharding, shape, dtype, parts))


def cut(x: Any, sharding: Sharding) -> list[Any]:
    """The parts of an array that is whole, or known to be the same in all processes.

    What is contiguous in its memory is not copied, and all devices of the CPU share it.
    """
    if sharding.is_fully_replicated and isinstance(x, ArrayBase) and x._place not in ELSEWHERE:
        return [x] * len(sharding.addressable_devices)  # from one GPU to the others
    whole = x._np if isinstance(x, ArrayBase) else np.asarray(x)
    weak = isinstance(x, ArrayBase) and x.weak_type
    if sharding.is_fully_replicated:
        part = wrap(whole, weak)
        return [part] * len(sharding.addressable_devices)
    assert isinstance(sharding, NamedSharding)
    indices = sharding.rank_indices(whole.shape)
    return [wrap(np.ascontiguousarray(whole[indices[r]]).reshape(
        [len(range(*s.indices(n))) for s, n in zip(indices[r], whole.shape, strict=True)]), weak)
        for r in sharding.mesh.local_ranks]


def mesh_dims(x: Any) -> tuple[Mesh, DimAxes] | None:
    """The mesh of an array in shards, and how its axes lie on it; None of others."""
    shards = shards_of(x)
    if shards is None or not isinstance(shards.sharding, NamedSharding):
        return None
    return shards.sharding.mesh, shards.sharding.dims(shards.shape)


def sharding_of(x: Any, device_at: Any) -> Sharding:
    """The sharding of an array; `device_at(place)` is the device of one that is whole."""
    shards = shards_of(x)
    return SingleDeviceSharding(device_at(x._place)) if shards is None else shards.sharding


def shards_here(x: Any, device_at: Any) -> list[Shard]:
    """The parts of an array that this process has, each with its place."""
    shards = shards_of(x)
    if shards is None:
        return [Shard(device_at(x._place), (slice(None),) * x.ndim, 0, x)]
    indices = shards.indices
    seen: dict[str, int] = {}
    found = []
    everywhere = list(shards.sharding.devices_indices_map(shards.shape).items())
    replicas = {}
    for device, index in everywhere:
        replicas[device] = seen.get(str(index), 0)
        seen[str(index)] = replicas[device] + 1
    for device, index, part in zip(shards.devices, indices, shards.parts, strict=True):
        found.append(Shard(device, index, replicas[device], on_device(part, device)))
    return found


def shards_everywhere(x: Any, device_at: Any) -> list[Shard]:
    """All parts of an array; those of other processes have no data."""
    here = {s.device: s for s in shards_here(x, device_at)}
    places = sharding_of(x, device_at).devices_indices_map(x.shape)
    return [here.get(d) or Shard(d, i, 0, None) for d, i in places.items()]


def on_device(part: Any, device: Any) -> Any:
    """A part as an array that lies on its device: one of the CPU beside the first is noted."""
    if device.platform != "cpu" or device.id == 0:
        return part
    return in_shards(SingleDeviceSharding(device), part.shape, part.dtype, [part], part.weak_type)


def place_part(part: Any, device: Any) -> Any:
    """A part in the memory of the device that it is for."""
    return place_array(part, device.id + 1) if device.platform == "gpu" else part
