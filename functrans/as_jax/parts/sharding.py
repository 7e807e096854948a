"""Meshes and shardings over one device: every array is where all of them are."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

import functrans
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.tree import known_leaf, tree_leaves, tree_map
from functrans.device import Device, current_device

__all__ = ["AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
           "SingleDeviceSharding", "create_device_mesh", "device_put", "get_abstract_mesh",
           "get_mesh", "make_mesh", "pmap", "reshard", "set_mesh", "shard_map", "use_abstract_mesh",
           "with_sharding_constraint"]


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


@known_leaf
class PartitionSpec(tuple[Any, ...]):
    """For each axis of an array the name of the axis of a mesh that it lies along, or None."""

    UNCONSTRAINED: Final = object()

    def __new__(cls, *partitions: Any, **of_axes: Any) -> PartitionSpec:
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec{super().__repr__()}"


class AbstractMesh:
    """The axes of a mesh: their sizes and names."""

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[Hashable],
                 axis_types: Sequence[AxisType] | None = None) -> None:
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = tuple(axis_names)
        self.axis_types = tuple(axis_types or [AxisType.Auto] * len(self.axis_names))

    @property
    def shape(self) -> dict[Any, int]:
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{n!r}: {s}" for n, s in self.shape.items())
        return f"{type(self).__name__}({axes})"


class Mesh(AbstractMesh):
    """An array of devices with names for its axes; a context manager that makes it the current one.

    Raises ArgumentError for more than one device.
    """

    def __init__(self, devices: Any, axis_names: Any,
                 axis_types: Sequence[AxisType] | None = None) -> None:
        self.devices = np.asarray(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.size > 1 or self.devices.ndim != len(names):
            raise ArgumentError(
                f"a mesh of shape {self.devices.shape} with the axes {names}.",
                where=user_source(), why="a mesh has a name for each axis, and one device here.")
        super().__init__(self.devices.shape, names, axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        self._token = _mesh.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _mesh.reset(self._token)


_EMPTY: Final = Mesh(np.empty((), object), ())
_mesh: ContextVar[Mesh] = ContextVar("functrans_as_jax_mesh", default=_EMPTY)


class Sharding:
    """Where the parts of an array are: all on one device."""

    memory_kind = "device"
    device: Device

    @property
    def device_set(self) -> set[Device]:
        return {self.device}

    addressable_devices = device_set
    is_fully_replicated = True
    is_fully_addressable = True

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        return isinstance(other, Sharding) and self.device == other.device

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)


@known_leaf
class SingleDeviceSharding(Sharding):
    """Of an array on one device."""

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None:
        self.device = device

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device})"


@known_leaf
class NamedSharding(Sharding):
    """Along the axes of a mesh, by their names."""

    def __init__(self, mesh: AbstractMesh, spec: PartitionSpec, *,
                 memory_kind: str | None = None) -> None:
        self.mesh = mesh
        self.spec = spec
        devices = mesh.devices.ravel() if isinstance(mesh, Mesh) else ()
        self.device = devices[0] if len(devices) else current_device()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (
            other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str],
              axis_types: Sequence[AxisType] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of devices, in which each axis has one."""
    found = list(devices) if devices is not None else [current_device()]
    if math.prod(axis_shapes) > len(found):
        raise ArgumentError(f"a mesh of shape {tuple(axis_shapes)} needs "
                            f"{math.prod(axis_shapes)} devices, and there are {len(found)}.",
                            where=user_source())
    return Mesh(create_device_mesh(axis_shapes, found), axis_names, axis_types)


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Device] | None = None,
                       **how: Any) -> Any:
    """The devices as an array of a shape."""
    found = np.empty(len(devices) if devices is not None else 1, object)
    found[:] = list(devices) if devices is not None else [current_device()]
    return found.reshape(tuple(mesh_shape))


class _MeshScope:
    """What `set_mesh` gives: the mesh is set at once, until the end of a `with`."""

    def __init__(self, mesh: Mesh) -> None:
        self._token = _mesh.set(mesh)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        _mesh.reset(self._token)


def set_mesh(mesh: Mesh) -> _MeshScope:
    """Make a mesh the current one."""
    return _MeshScope(mesh)


def get_mesh() -> Mesh:
    """The current mesh, which may have no axes."""
    return _mesh.get()


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh."""
    return _mesh.get().abstract_mesh


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Context manager that changes nothing: one device has one way to spread arrays."""
    yield


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x: it is on the one device."""
    return x


def reshard(xs: Any, out_shardings: Any) -> Any:
    """xs: they are on the one device."""
    return xs


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False,
               may_alias: Any = None) -> Any:
    """`functrans.device_put`, to the device of a sharding as well."""
    places = {_device_of(leaf) for leaf in tree_leaves(device)}
    if len(places) == 1:
        return functrans.device_put(x, places.pop())
    return functrans.device_put(x) if not places else tree_map(
        lambda d, part: functrans.device_put(part, _device_of(d)), device, x)


def _device_of(place: Any) -> Any:
    return place.device if isinstance(place, Sharding) else place


def shard_map(f: Callable[..., Any] | None = None, /, *, mesh: AbstractMesh | None = None,
              **specs: Any) -> Callable[..., Any]:
    """The function itself, in which collectives see the axes of the mesh: each has one part."""
    if f is None:
        return functools.partial(shard_map, mesh=mesh, **specs)

    @functools.wraps(f)
    def on_one_device(*args: Any) -> Any:
        names = (mesh if mesh is not None else get_mesh()).axis_names
        inner = f
        for name in names:
            inner = functrans.vmap(inner, None, axis_name=name, axis_size=1)
        return tree_map(lambda x: x[(0,) * len(names)], inner(*args))

    return on_one_device


def pmap(fun: Callable[..., Any], axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Sequence[int] = (), devices: Any = None,
         backend: Any = None, axis_size: int | None = None,
         donate_argnums: int | Sequence[int] = ()) -> Callable[..., Any]:
    """`jit(vmap(fun))` over an axis that is as long as there are devices: of one.

    Raises ShapeError for a longer axis, as JAX does where there are too few devices.
    """
    static = (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) \
        else tuple(static_broadcasted_argnums)
    available = len(devices) if devices is not None else functrans.local_device_count()

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        sizes = {np.shape(leaf)[0] for i, (a, axis) in enumerate(zip(args, axes, strict=False))
                 if i not in static and axis is not None for leaf in tree_leaves(a)
                 if np.ndim(leaf)}
        if any(size > available for size in sizes):
            raise ShapeError(f"pmap over an axis of size {max(sizes)} needs as many devices, and "
                             f"there are {available}.", where=user_source(),
                             fix="jax.vmap(fun), on one device")
        return run(*args, **kwargs)

    def over_axes(*args: Any, **kwargs: Any) -> Any:
        axes = [None if i in static else (in_axes[i] if isinstance(in_axes, (tuple, list))
                                          else in_axes) for i in range(len(args))]
        given = [_Held(a) if i in static else a for i, a in enumerate(args)]

        def body(*inner: Any, **more: Any) -> Any:
            return fun(*[x.value if isinstance(x, _Held) else x for x in inner], **more)

        return functrans.vmap(body, axes, out_axes, axis_name=axis_name,
                              axis_size=axis_size)(*given, **kwargs)

    run = functrans.jit(over_axes, static_argnums=static)
    mapped.lower = run.lower  # type: ignore[attr-defined]
    return mapped


@functrans.tree_util.register_static
class _Held:
    """An argument that is not mapped and not an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)
