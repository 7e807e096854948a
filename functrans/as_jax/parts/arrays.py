"""Attributes of JAX's arrays that are about places, which arrays have while it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from functrans._runtime import ArrayBase
from functrans.array import Array
from functrans.as_jax.parts.sharding import SingleDeviceSharding
from functrans.core.avals import ShapedArray
from functrans.core.trace import Tracer
from functrans.device import Device, current_device
from functrans.foreign import ForeignAttribute

__all__ = ["attach", "detach"]


class Shard(NamedTuple):
    """The part of an array on one device: all of it."""

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: Any


def _sharding(x: Any) -> SingleDeviceSharding:
    return SingleDeviceSharding(x.device if isinstance(x, ArrayBase) else current_device())


def _shards(x: Any) -> list[Shard]:
    return [Shard(x.device, (slice(None),) * x.ndim, 0, x)]


_OF_ALL: Final[Mapping[str, Any]] = MappingProxyType({
    "sharding": property(_sharding, doc="Where the array is: on one device."),
    "committed": property(lambda x: False),
    "is_fully_addressable": property(lambda x: True),
    "is_fully_replicated": property(lambda x: True),
})
_OF_ARRAYS: Final[Mapping[str, Any]] = MappingProxyType({
    "addressable_shards": property(_shards),
    "global_shards": property(_shards),
    "addressable_data": lambda self, index: self,
    "copy_to_host_async": lambda self: None,
    "delete": lambda self: None,
    "is_deleted": lambda self: self._donated,
    "is_ready": lambda self: True,
    "on_device_size_in_bytes": lambda self: self.nbytes,
})
_ABSENT: Final = object()


def attach() -> list[tuple[type, str, Any]]:
    """Give arrays and tracers the attributes that they do not have; what was there before."""
    before = []
    for cls, given in ((Array, {**_OF_ALL, **_OF_ARRAYS}), (Tracer, _OF_ALL),
                       (ShapedArray, {"sharding": _OF_ALL["sharding"]})):
        for name, value in given.items():
            old = cls.__dict__.get(name, _ABSENT)
            if old is _ABSENT or isinstance(old, ForeignAttribute):
                before.append((cls, name, old))
                setattr(cls, name, value)
    return before


def detach(before: list[tuple[type, str, Any]]) -> None:
    """Undo `attach`."""
    for cls, name, old in before:
        if old is _ABSENT:
            delattr(cls, name)
        else:
            setattr(cls, name, old)
