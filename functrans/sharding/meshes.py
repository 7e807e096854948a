"""Meshes that are made from shapes and names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.errors import ArgumentError
from functrans.core.mesh import AbstractMesh, AxisType, Mesh, check_sizes, current_mesh
from functrans.device import Device, current_device, devices

__all__ = ["create_device_mesh", "get_abstract_mesh", "get_mesh", "make_mesh"]


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str],
              axis_types: Sequence[AxisType] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of that shape of the first devices, by default of the platform of the default one.

    Raises ShapeError where there are not so many.

    >>> import functrans as ft
    >>> with ft.config.cpu_devices(4):
    ...     ft.make_mesh((2, 2), ("x", "y"), devices=ft.devices("cpu"))
    Mesh('x': 2, 'y': 2)
    """
    shape = (axis_shapes,) if isinstance(axis_shapes, int) else tuple(axis_shapes)
    if any(not isinstance(n, (int, np.integer)) or n < 1 for n in shape):
        raise ArgumentError(f"make_mesh: the shape is {axis_shapes!r}.",
                            why="each axis has at least one device.",
                            fix='make_mesh((2, 2), ("x", "y"))')
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    return Mesh(create_device_mesh(shape, devices), names, axis_types)


def create_device_mesh(mesh_shape: Sequence[int],
                       devices: Sequence[Any] | None = None) -> np.ndarray[Any, Any]:
    """The first devices, in an array of that shape.

    >>> ft.sharding.create_device_mesh((1, 1)).shape
    (1, 1)
    """
    given = _all_devices() if devices is None else list(devices)
    check_sizes(mesh_shape, len(given))
    found = np.empty(math.prod(mesh_shape), object)
    found[:] = given[:math.prod(mesh_shape)]
    return found.reshape(tuple(mesh_shape))


def _all_devices() -> list[Any]:
    return devices(current_device().platform)


def get_mesh() -> Mesh:
    """The mesh of the scope; raises ShardingError where there is none.

    >>> with ft.sharding.use_mesh(ft.make_mesh((1,), ("x",))):
    ...     ft.sharding.get_mesh().shape
    OrderedDict([('x', 1)])
    """
    found = current_mesh("get_mesh")
    assert found is not None
    return found


def get_abstract_mesh() -> AbstractMesh:
    """The names and sizes of the mesh of the scope; empty where there is none.

    >>> ft.sharding.get_abstract_mesh().empty
    True
    """
    found = current_mesh()
    return AbstractMesh((), ()) if found is None else found.abstract_mesh
