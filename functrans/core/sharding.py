"""Shardings: which part of an array lies on which device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from functrans.core.errors import ArgumentError, shown
from functrans.core.mesh import (
    AbstractMesh,
    DimAxes,
    Mesh,
    PartitionSpec,
    current_mesh,
    dims_of,
    spec_of,
)

__all__ = ["NamedSharding", "Sharding", "SingleDeviceSharding", "same_parts"]

Index = tuple[slice, ...]


class Sharding(ABC):
    """Which part of an array lies on which device; immutable and hashable.

    >>> x = ft.device_put(jnp.ones((2, 3)), ft.devices("cpu")[0])
    >>> isinstance(x.sharding, ft.sharding.Sharding), x.sharding.is_fully_replicated
    (True, True)
    >>> x.sharding.device_set, x.sharding.shard_shape(x.shape)
    ({cpu:0}, (2, 3))
    >>> x.sharding.devices_indices_map(x.shape)
    {cpu:0: (slice(None, None, None), slice(None, None, None))}
    >>> x.sharding.is_equivalent_to(jnp.ones((2, 3)).sharding, 2)
    True
    """

    @property
    @abstractmethod
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""

    @property
    @abstractmethod
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""

    @abstractmethod
    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        """For each device the part of an array of that shape that it holds, as slices."""

    @abstractmethod
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each part; raises ShardingError where an axis does not divide."""

    @property
    def num_devices(self) -> int:
        return len(self.device_set)

    @property
    def memory_kind(self) -> None:
        return None

    @property
    def addressable_devices(self) -> set[Any]:
        return {d for d in self.device_set if d.is_local}

    @property
    def is_fully_addressable(self) -> bool:
        return all(d.is_local for d in self.device_set)

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d.is_local}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of arrays of that many axes on the same devices."""
        probe = (self.num_devices * other.num_devices,) * ndim
        return dict(self.devices_indices_map(probe)) == dict(other.devices_indices_map(probe))


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    >>> import functrans as ft
    >>> ft.sharding.SingleDeviceSharding(ft.devices("cpu")[0])
    SingleDeviceSharding(cpu:0)
    """

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device

    @property
    def device_set(self) -> set[Any]:
        return {self._device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        return {self._device: (slice(None),) * len(global_shape)}

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device == other._device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding({self._device!r})"


class NamedSharding(Sharding):
    """Arrays divided along the axes of a mesh, as a PartitionSpec says.

    Raises AxisNameError for an axis that the mesh has not, ShardingError for one that is there
    twice.

    >>> import functrans as ft
    >>> mesh = ft.make_mesh((1,), ("x",), devices=ft.devices("cpu"))
    >>> NamedSharding(mesh, PartitionSpec("x"))
    NamedSharding(mesh=Mesh('x': 1), spec=PartitionSpec('x'))
    >>> rows = NamedSharding(mesh, PartitionSpec("x"))
    >>> rows.dims((4, 2)), rows.rank_indices((4, 2))
    ((('x',), ()), ((slice(None, None, None), slice(None, None, None)),))
    >>> rows.is_equivalent_to(NamedSharding(mesh, PartitionSpec("x", None)), 2)
    True
    """

    def __init__(self, mesh: Mesh | AbstractMesh, spec: Any, *,
                 memory_kind: str | None = None) -> None:
        if isinstance(mesh, AbstractMesh):  # of the scope, as get_abstract_mesh() tells it
            scope = current_mesh()
            mesh = scope if scope is not None and scope.abstract_mesh == mesh else mesh
        if not isinstance(mesh, Mesh):
            raise ArgumentError(f"NamedSharding: the mesh is {shown(mesh)}.",
                                why="it has devices, or is the abstract one of the scope.",
                                fix='NamedSharding(ft.make_mesh((4,), ("x",)), P("x"))')
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(f"NamedSharding: the spec is {shown(spec)}.",
                                why="a PartitionSpec says which axes are divided.",
                                fix='P("x"), or P() for an array that each device has')
        self.mesh = mesh
        self.spec = spec
        dims_of(spec, mesh, (0,) * len(spec), "NamedSharding")
        self._hash = hash((mesh, spec))

    def dims(self, shape: Sequence[Any], what: str = "NamedSharding") -> DimAxes:
        """The axes of the mesh along each axis of an array of that shape."""
        return dims_of(self.spec, self.mesh, shape, what)

    @property
    def device_set(self) -> set[Any]:
        return set(self.mesh.ranks)

    @cached_property
    def is_fully_replicated(self) -> bool:
        axes = [a for d in self.dims((0,) * len(self.spec)) for a in d]
        return self.mesh.size_of(axes) == 1

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        dims = self.dims(global_shape)
        return tuple([n // self.mesh.size_of(d) for n, d in zip(global_shape, dims, strict=True)])

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[Any, Index]:
        indices = self.rank_indices(tuple(global_shape))
        return dict(zip(self.mesh.ranks, indices, strict=True))

    def rank_indices(self, shape: tuple[int, ...]) -> tuple[Index, ...]:
        """The part of each rank."""
        return _rank_indices(self.mesh, self.dims(shape), shape)

    def with_spec(self, spec: Any) -> NamedSharding:
        return NamedSharding(self.mesh, spec if isinstance(spec, PartitionSpec)
                             else PartitionSpec(*spec))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NamedSharding) and self.spec == other.spec
                                 and self.mesh == other.mesh)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


@lru_cache(maxsize=4096)
def _rank_indices(mesh: Mesh, dims: DimAxes, shape: tuple[int, ...]) -> tuple[Index, ...]:
    found = []
    for rank in range(mesh.size):
        at = mesh.coordinates(rank)
        index = []
        for n, axes in zip(shape, dims, strict=True):
            sizes = [mesh.shape[a] for a in axes]
            if set(sizes) <= {1}:
                index.append(slice(None))
                continue
            place = int(np.ravel_multi_index([at[a] for a in axes], sizes))
            part = n // mesh.size_of(axes)
            index.append(slice(place * part, (place + 1) * part))
        found.append(tuple(index))
    return tuple(found)


def same_parts(a: Sharding, b: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether ranks have the same parts of an array by two shardings, in the same order.

    P("x", None) and P("x") are not equal, as in JAX, and give the same parts.
    """
    return a == b or (isinstance(a, NamedSharding) and isinstance(b, NamedSharding)
                      and a.mesh.ranks == b.mesh.ranks
                      and a.rank_indices(shape) == b.rank_indices(shape))


ALONE = "_device"
"""The name of the one axis of a mesh that stands for one device."""


@lru_cache(maxsize=512)
def mesh_alone(device: Any) -> Mesh:
    """The mesh of one device, on which programs of arrays run that were put there."""
    return Mesh([device], (ALONE,))


def sharding_on(mesh: Mesh, dims: DimAxes) -> Sharding:
    """The sharding of arrays whose axes are divided so."""
    if mesh.axis_names == (ALONE,):
        return SingleDeviceSharding(mesh.ranks[0])
    return _named(mesh, spec_of(dims))


_named = lru_cache(maxsize=4096)(NamedSharding)
