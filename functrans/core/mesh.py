"""Meshes of devices, and how the axes of an array lie on them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from functrans.core.errors import ArgumentError, AxisNameError, ShapeError, ShardingError, shown
from functrans.core.source import user_source

__all__ = ["UNCONSTRAINED", "AbstractMesh", "AxisType", "DimAxes", "Mesh", "PartitionSpec",
           "current_mesh", "dims_of", "mesh_scope", "set_mesh", "spec_of"]


class AxisType(Enum):
    """What decides how values lie along an axis of a mesh: the compiler (Auto) or shard_map.

    JAX's `Explicit`, shardings as a part of types, means `Auto` here: nothing is refused that the
    compiler can place.

    >>> mesh = ft.sharding.make_mesh((1,), ("x",), axis_types=(ft.sharding.AxisType.Auto,))
    >>> mesh.axis_types
    (Auto,)
    """

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return self.name


class _Axes:
    """What a mesh says of the types of its axes."""

    axis_types: tuple[AxisType, ...]

    def _all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        return self._all(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        return self._all(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        return self._all(AxisType.Manual)


class Mesh(_Axes):
    """An array of devices whose axes have names.

    `devices` is an array of them, or nested lists. Raises ShardingError where the names do not fit
    the axes, or a device is there twice.

    >>> import functrans as ft
    >>> with ft.config.cpu_devices(4):
    ...     mesh = ft.sharding.Mesh(np.reshape(ft.devices("cpu"), (2, 2)), ("x", "y"))
    >>> mesh
    Mesh('x': 2, 'y': 2)
    >>> mesh.size_of(["x", "y"]), mesh.coordinates(3), mesh.group(0, ["y"])
    (4, {'x': 1, 'y': 1}, (0, 1))
    >>> dict(mesh.shape), mesh.local_ranks
    ({'x': 2, 'y': 2}, (0, 1, 2, 3))
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        self.devices: np.ndarray[Any, Any] = np.asarray(devices, object)
        self.axis_names: tuple[str, ...] = (
            (axis_names,) if isinstance(axis_names, str) else tuple(axis_names))
        if self.devices.ndim != len(self.axis_names):
            raise ShardingError(
                f"a mesh of devices of shape {self.devices.shape} has {len(self.axis_names)} "
                f"names: {self.axis_names}.", why="there is a name for each axis.",
                fix='Mesh(np.reshape(ft.devices(), (2, 2)), ("x", "y"))')
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ShardingError(f"the axes of a mesh are called {self.axis_names}.",
                                why="names are distinct.")
        ordered = tuple(self.devices.flat)
        if len(set(ordered)) != len(ordered):
            raise ShardingError("a device is in the mesh twice.", why="each device has one place.",
                                fix="ft.config.cpu_devices(n)  # n virtual devices of the CPU")
        self.devices.setflags(write=False)
        self.axis_types = (AxisType.Auto,) * self.devices.ndim if axis_types is None \
            else tuple(axis_types)
        if len(self.axis_types) != self.devices.ndim:
            raise ShardingError(f"a mesh of {self.devices.ndim} axes has {len(self.axis_types)} "
                                "axis_types.", why="there is a type for each axis.")
        self._key = (ordered, self.devices.shape, self.axis_names, self.axis_types)
        self._hash = hash(self._key)

    @cached_property
    def shape(self) -> OrderedDict[str, int]:
        """The sizes of the axes by their names."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(map(int, self.devices.shape))

    @property
    def size(self) -> int:
        return self.devices.size

    @property
    def empty(self) -> bool:
        return self.devices.ndim == 0

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        return tuple(self.shape.items())

    @cached_property
    def ranks(self) -> tuple[Any, ...]:
        """The devices in order: the rank of each in programs."""
        return tuple(self.devices.flat)

    @cached_property
    def local_ranks(self) -> tuple[int, ...]:
        """The ranks of the devices of this process."""
        return tuple([r for r, d in enumerate(self.ranks) if d.is_local])

    @property
    def local_devices(self) -> list[Any]:
        return [self.ranks[r] for r in self.local_ranks]

    @property
    def is_multi_process(self) -> bool:
        return len(self.local_ranks) != self.size

    @cached_property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self.devices.shape, self.axis_names, self.axis_types)

    def size_of(self, axes: Sequence[str]) -> int:
        """The product of the sizes of some axes."""
        return math.prod([self.shape[a] for a in axes])

    def coordinates(self, rank: int) -> dict[str, int]:
        """The place of a rank along each axis."""
        at = np.unravel_index(rank, self.devices.shape)
        return {n: int(i) for n, i in zip(self.axis_names, at, strict=True)}

    def group(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The ranks that differ from `rank` along `axes` alone, in the order of their places."""
        at = self.coordinates(rank)
        index = [at[n] for n in self.axis_names]
        found = []
        for places in np.ndindex(*[self.shape[a] for a in axes]):
            for a, i in zip(axes, places, strict=True):
                index[self.axis_names.index(a)] = i
            found.append(int(np.ravel_multi_index(index, self.devices.shape)))
        return tuple(found)

    def __enter__(self) -> Mesh:
        _entered.set((*_entered.get(), _mesh.set(self)))
        return self

    def __exit__(self, *error: object) -> None:
        *rest, token = _entered.get()
        _entered.set(tuple(rest))
        _mesh.reset(token)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Mesh, (np.array(self.devices), self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{n!r}: {s}' for n, s in self.shape.items())})"


class AbstractMesh(_Axes):
    """The names and sizes of the axes of a mesh, without devices.

    >>> ft.sharding.AbstractMesh((2, 4), ("x", "y")).shape
    OrderedDict([('x', 2), ('y', 4)])
    """

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[str],
                 axis_types: Any = None) -> None:
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = tuple(axis_names)
        self.axis_types = (AxisType.Auto,) * len(self.axis_names) if axis_types is None \
            else tuple(axis_types)

    @property
    def shape(self) -> OrderedDict[str, int]:
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and (
            self.axis_sizes, self.axis_names, self.axis_types) == (
            other.axis_sizes, other.axis_names, other.axis_types)

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names))

    def __repr__(self) -> str:
        return f"AbstractMesh({', '.join(f'{n!r}: {s}' for n, s in self.shape.items())})"


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED: Final = _Unconstrained()


class PartitionSpec(tuple[Any, ...]):
    """For each axis of an array the axis of a mesh that divides it, or several, or None.

    Axes that are not mentioned are not divided.

    >>> PartitionSpec("x", None, ("y", "z"))
    PartitionSpec('x', None, ('y', 'z'))
    """

    __slots__ = ()
    UNCONSTRAINED: Final = UNCONSTRAINED

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, [
            None if p == () else p[0] if isinstance(p, (tuple, list)) and len(p) == 1
            else tuple(p) if isinstance(p, list) else p for p in partitions])

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*tuple(self), *tuple(other))


DimAxes: TypeAlias = tuple[tuple[str, ...], ...]
"""For each axis of an array those of the mesh that divide it, the slowest one first."""


def dims_of(spec: Sequence[Any], mesh: Mesh, shape: Sequence[Any], what: str) -> DimAxes:
    """The axes of the mesh that divide each axis of an array.

    Raises ShardingError for a spec that is longer than the shape, or divides an axis by an axis of
    the mesh that does not divide its size, or mentions one twice; AxisNameError for one that there
    is not.
    """
    if len(spec) > len(shape):
        raise ShardingError(
            f"{what}: {PartitionSpec(*spec)!r} has {len(spec)} entries, for an array of shape "
            f"{tuple(shape)}.", where=user_source(),
            why="an entry says how one axis of the array is divided.",
            fix=f"P({', '.join(map(repr, spec[:len(shape)]))})")
    dims = []
    used: set[str] = set()
    for k, size in enumerate(shape):
        entry = spec[k] if k < len(spec) else None
        axes = () if entry is None or entry is UNCONSTRAINED else \
            tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)
        for axis in axes:
            if axis not in mesh.shape:
                raise AxisNameError(
                    f"{what}: {PartitionSpec(*spec)!r} names the axis {axis!r}, and the mesh has "
                    f"{', '.join(map(repr, mesh.axis_names)) or 'none'}.", where=user_source(),
                    why="arrays are divided along the axes of a mesh.",
                    fix=f"P({mesh.axis_names[0]!r})" if mesh.axis_names else "P()")
            if axis in used:
                raise ShardingError(
                    f"{what}: {PartitionSpec(*spec)!r} names the axis {axis!r} twice.",
                    where=user_source(), why="an axis of the mesh divides one axis of the array.")
            used.add(axis)
        parts = mesh.size_of(axes)
        if isinstance(size, int) and size % parts:
            raise ShardingError(
                f"{what}: axis {k} of an array of shape {tuple(shape)} does not divide by {parts}.",
                where=user_source(),
                why=f"{PartitionSpec(*spec)!r} divides it along {' and '.join(map(repr, axes))}, "
                    f"and {mesh!r} has {parts} devices there.",
                fix="pad the array, take another axis, or None for that axis")
        dims.append(axes)
    return tuple(dims)


def spec_of(dims: DimAxes) -> PartitionSpec:
    """The spec that says what `dims_of` gives."""
    entries: list[Any] = [None if not d else d[0] if len(d) == 1 else d for d in dims]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


# --- the mesh of a scope

_mesh: ContextVar[Mesh | None] = ContextVar("functrans_mesh", default=None)
_entered: ContextVar[tuple[Any, ...]] = ContextVar("functrans_entered_meshes", default=())


def current_mesh(what: str = "") -> Mesh | None:
    """The mesh of the scope; with `what`, raises ShardingError where there is none."""
    found = _mesh.get()
    if found is None and what:
        raise ShardingError(f"{what}: there is no mesh.", where=user_source(),
                            why="a PartitionSpec divides arrays along the axes of a mesh.",
                            fix="with ft.set_mesh(mesh): ..., or NamedSharding(mesh, spec)")
    return found


class set_mesh:  # also a context manager, named as JAX's
    """The mesh that specs without one refer to, from now on or until the end of a `with` block.

    >>> import functrans as ft
    >>> mesh = ft.make_mesh((1,), ("x",), devices=ft.devices("cpu"))
    >>> with ft.set_mesh(mesh):
    ...     ft.sharding.get_mesh()
    Mesh('x': 1)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ArgumentError(f"set_mesh takes a Mesh, got {shown(mesh)}.")
        self._before = _mesh.get()
        _mesh.set(mesh)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        _mesh.set(self._before)


@contextmanager
def mesh_scope(mesh: Mesh) -> Iterator[Mesh]:
    """Context manager: the mesh that specs without one refer to, within the block.

    >>> with ft.sharding.use_mesh(ft.make_mesh((1,), ("x",))):
    ...     ft.sharding.get_mesh().axis_names
    ('x',)
    """
    with mesh:
        yield mesh


def check_sizes(mesh_shape: Sequence[int], count: int) -> None:
    """Raise ShapeError where a mesh of that shape has not so many devices."""
    if math.prod(mesh_shape) > count:
        raise ShapeError(
            f"a mesh of shape {tuple(mesh_shape)} has {math.prod(mesh_shape)} devices, and there "
            f"are {count}.", where=user_source(), why="each place has a device of its own.",
            fix=f"ft.config.cpu_devices({math.prod(mesh_shape)})  # virtual devices of the CPU")
