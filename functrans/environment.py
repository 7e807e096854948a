"""Where programs run: devices, processes, versions; arrays that are made for places."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from functrans import _runtime
from functrans.core.communicator import processes, this_process
from functrans.core.errors import ArgumentError
from functrans.core.sharding import NamedSharding, Sharding
from functrans.core.shards import in_shards, place_part, shards_of
from functrans.core.source import user_source
from functrans.device import Device, current_device, devices
from functrans.numpy import asarray
from functrans.placement import device_put
from functrans.typing import Array, ArrayLike, DeviceLike, DTypeLike, ShapeLike
from functrans.version import __version__

__all__ = ["default_backend", "device_count", "effects_barrier", "host_count", "host_id",
           "host_ids", "local_device_count", "local_devices", "make_array_from_callback",
           "make_array_from_process_local_data", "make_array_from_single_device_arrays",
           "print_environment_info", "process_count", "process_index", "process_indices"]


def default_backend() -> str:
    """The platform of the default device: "cpu" or "gpu".

    >>> import functrans as ft
    >>> with ft.config.default_device("cpu"):
    ...     ft.default_backend()
    'cpu'
    """
    return current_device().platform


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform, by default of that of the default device.

    >>> import functrans as ft
    >>> ft.device_count("cpu")
    1
    """
    return len(devices(default_backend() if backend is None else backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of a platform that this process has.

    >>> ft.local_device_count("cpu") == len(ft.local_devices(backend="cpu"))
    True
    """
    return len(local_devices(backend=backend))


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of a platform, by default of that of the default device, in one process.

    Raises ArgumentError for a process that there is not.

    >>> import functrans as ft
    >>> ft.local_devices(backend="cpu")
    [cpu:0]
    """
    asked = host_id if process_index is None else process_index
    if asked is not None and asked not in range(processes()):
        raise ArgumentError(f"local_devices: there is no process {asked}.", where=user_source(),
                            why=f"there are {processes()}, numbered from 0.")
    process = this_process() if asked is None else asked
    return [d for d in devices(default_backend() if backend is None else backend)
            if d.process_index == process]


def process_count(backend: str | None = None) -> int:
    """How many processes run the same program together: 1 unless an engine connects more.

    >>> ft.process_count()
    1
    """
    return processes()


def process_index(backend: str | None = None) -> int:
    """The number of this process among them.

    >>> ft.process_index()
    0
    """
    return this_process()


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes.

    >>> ft.process_indices()
    [0]
    """
    return list(range(processes()))


host_count, host_id, host_ids = process_count, process_index, process_indices


def effects_barrier() -> None:
    """Wait until everything that devices were given to do is done, callbacks included.

    >>> ft.jit(lambda x: ft.debug.callback(print, x))(jnp.int32(3))
    3
    >>> ft.effects_barrier()
    """
    for device in devices():
        device.synchronize()


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and devices that a report of a defect should name, or return the text.

    >>> import functrans as ft
    >>> ft.print_environment_info(return_string=True).splitlines()[0].startswith("functrans")
    True
    """
    text = "\n".join([
        f"functrans: {__version__}", f"numpy:     {np.__version__}",
        f"ml_dtypes: {ml_dtypes.__version__}", f"python:    {sys.version}",
        f"platform:  {platform.platform()}",
        f"devices:   {', '.join(f'{d} ({d.device_kind})' for d in devices())}",
        f"default:   {current_device()}"])
    if _runtime.cuda_error():
        text += f"\ncuda:      {_runtime.cuda_error()}"
    if return_string:
        return text
    print(text)
    return None


def make_array_from_callback(shape: ShapeLike, sharding: DeviceLike | Sharding | None,
                             data_callback: Callable[[tuple[slice, ...]], ArrayLike],
                             dtype: DTypeLike | None = None) -> Array:
    """The array of what a function gives for an index, in shards or on a device.

    The function is called for each part that this process has, with the slices that it has of the
    whole; parts that several devices have are asked for once. Raises ArgumentError if what it gives
    has another shape.

    >>> import functrans as ft, numpy as np
    >>> data = np.arange(4)
    >>> ft.make_array_from_callback((4,), None, lambda index: data[index]).tolist()
    [0, 1, 2, 3]
    """
    sizes = _shape(shape)
    if not isinstance(sharding, NamedSharding):
        return _placed("make_array_from_callback", asarray(
            data_callback(tuple(slice(0, n) for n in sizes)), dtype), sizes, sharding)
    known: dict[str, Array] = {}
    parts = []
    for rank, device in zip(sharding.mesh.local_ranks, sharding.mesh.local_devices, strict=True):
        index = sharding.rank_indices(sizes)[rank]
        key = str(index)
        if key not in known:
            known[key] = asarray(data_callback(index), dtype)
        parts.append(place_part(known[key], device))
    return _joined("make_array_from_callback", sizes, sharding, parts)


def make_array_from_single_device_arrays(shape: ShapeLike, sharding: DeviceLike | Sharding | None,
                                         arrays: Sequence[Array], *,
                                         dtype: DTypeLike | None = None) -> Array:
    """The array of that shape whose parts are given, one for each device of this process.

    They are in the order of the devices of the mesh; those that say where they lie may come in any
    order. Raises ArgumentError for another number of arrays and other shapes.

    >>> mesh = ft.make_mesh((1,), ("x",))
    >>> sharding = ft.NamedSharding(mesh, ft.P("x"))
    >>> ft.make_array_from_single_device_arrays((2,), sharding, [jnp.array([1.0, 2.0])]).tolist()
    [1.0, 2.0]
    """
    name = "make_array_from_single_device_arrays"
    sizes = _shape(shape)
    if not isinstance(sharding, NamedSharding):
        if len(arrays) != 1:
            raise ArgumentError(f"{name}: {len(arrays)} arrays.", where=user_source(),
                                why="an array that is not in shards lies on one device.")
        return _placed(name, asarray(arrays[0], dtype), sizes, sharding)
    devices = sharding.mesh.local_devices
    if len(arrays) != len(devices):
        raise ArgumentError(f"{name}: {len(arrays)} arrays for {len(devices)} devices.",
                            where=user_source(), why="there is one for each device of the mesh.")
    lie = [x.device for x in arrays]
    if set(lie) == set(devices):
        arrays = [arrays[lie.index(d)] for d in devices]
    parts = []
    for x, device in zip(arrays, devices, strict=True):
        shards = shards_of(x)
        whole = x if shards is None else shards.parts[0]
        parts.append(place_part(asarray(whole, dtype), device))
    return _joined(name, sizes, sharding, parts)


def make_array_from_process_local_data(sharding: DeviceLike | Sharding | None,
                                       local_data: ArrayLike,
                                       global_shape: ShapeLike | None = None) -> Array:
    """The data of this process as its part of an array, or as an array on a device.

    With one process the data are the whole array. With several, an axis that is divided over
    processes has as many times the size, unless `global_shape` says it.

    >>> import functrans as ft, numpy as np
    >>> ft.make_array_from_process_local_data(None, np.ones(2)).shape
    (2,)
    """
    name = "make_array_from_process_local_data"
    x = asarray(local_data)
    if not isinstance(sharding, NamedSharding):
        sizes = tuple(x.shape) if global_shape is None else _shape(global_shape)
        return _placed(name, x, sizes, sharding)
    sizes = _whole_shape(x, sharding) if global_shape is None else _shape(global_shape)
    indices = [sharding.rank_indices(sizes)[r] for r in sharding.mesh.local_ranks]
    if tuple(x.shape) == sizes:
        starts = [0] * len(sizes)
    else:
        starts = [min([i[k].indices(n)[0] for i in indices]) for k, n in enumerate(sizes)]
    data = np.asarray(x)
    parts = [asarray(data[tuple([slice(s.indices(n)[0] - a, s.indices(n)[1] - a)
                                 for s, n, a in zip(index, sizes, starts, strict=True)])])
             for index in indices]
    return _joined(name, sizes, sharding, [place_part(p, d) for p, d in
                                           zip(parts, sharding.mesh.local_devices, strict=True)])


def _whole_shape(x: Array, sharding: NamedSharding) -> tuple[int, ...]:
    """The shape of an array of which this process has a part of the shape of x."""
    mesh = sharding.mesh
    places = [mesh.coordinates(r) for r in mesh.local_ranks]
    sizes = []
    for n, axes in zip(x.shape, sharding.dims((0,) * x.ndim), strict=True):
        here = len({tuple([p[a] for a in axes]) for p in places})
        sizes.append(n * mesh.size_of(axes) // here)
    return tuple(sizes)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _joined(name: str, shape: tuple[int, ...], sharding: NamedSharding,
            parts: Sequence[Any]) -> Array:
    expected = sharding.shard_shape(shape)
    for part in parts:
        if tuple(part.shape) != expected or part.dtype != parts[0].dtype:
            raise ArgumentError(
                f"{name}: a part is {part.aval}, among {parts[0].aval}.", where=user_source(),
                why=f"{sharding!r} divides an array of shape {shape} into parts of shape "
                    f"{expected}, which have one dtype.")
    joined: Array = in_shards(sharding, shape, parts[0].dtype, parts)
    return joined


def _placed(name: str, x: Array, shape: Any, device: DeviceLike | Sharding | None) -> Array:
    if tuple(x.shape) != tuple(shape):
        raise ArgumentError(f"{name}: the data is of shape {tuple(x.shape)}, not {tuple(shape)}.",
                            where=user_source())
    placed: Array = device_put(x, device)
    return placed
