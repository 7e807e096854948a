"""Where programs run: devices, processes, versions; arrays that are made for places."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from functrans import _runtime
from functrans.core.errors import ArgumentError
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
    return len(local_devices(backend=backend))


def local_device_count(backend: str | None = None) -> int:
    """The same as `device_count`: there is one process."""
    return device_count(backend)


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of a platform, by default of that of the default device, in this process.

    Raises ArgumentError for another process than 0.

    >>> import functrans as ft
    >>> ft.local_devices(backend="cpu")
    [cpu:0]
    """
    for asked in (process_index, host_id):
        if asked not in (None, 0):
            raise ArgumentError(f"local_devices: there is no process {asked}.",
                                where=user_source(), why="programs run in one process, number 0.")
    return devices(default_backend() if backend is None else backend)


def process_count(backend: str | None = None) -> int:
    """1: programs run in one process."""
    return 1


def process_index(backend: str | None = None) -> int:
    """0, the number of the one process."""
    return 0


def process_indices(backend: str | None = None) -> list[int]:
    """[0], the numbers of all processes."""
    return [0]


host_count, host_id, host_ids = process_count, process_index, process_indices


def effects_barrier() -> None:
    """Wait until everything that devices were given to do is done, callbacks included."""
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


def make_array_from_callback(shape: ShapeLike, sharding: DeviceLike | None,
                             data_callback: Callable[[tuple[slice, ...]], ArrayLike],
                             dtype: DTypeLike | None = None) -> Array:
    """The array of what a function gives for an index, on a device; None is the default one.

    There is one device, so that the function is called once, for all of the array. Raises
    ArgumentError if the shape is another one.

    >>> import functrans as ft, numpy as np
    >>> data = np.arange(4)
    >>> ft.make_array_from_callback((4,), None, lambda index: data[index]).tolist()
    [0, 1, 2, 3]
    """
    sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
    return _placed("make_array_from_callback", asarray(
        data_callback(tuple(slice(0, n) for n in sizes)), dtype), sizes, sharding)


def make_array_from_single_device_arrays(shape: ShapeLike, sharding: DeviceLike | None,
                                         arrays: Sequence[Array], *,
                                         dtype: DTypeLike | None = None) -> Array:
    """The one array of a sequence, on a device; an array lies on one device.

    Raises ArgumentError for another number of arrays and another shape.
    """
    if len(arrays) != 1:
        raise ArgumentError(f"make_array_from_single_device_arrays: {len(arrays)} arrays.",
                            where=user_source(), why="an array lies on one device.")
    sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
    return _placed("make_array_from_single_device_arrays", asarray(arrays[0], dtype), sizes,
                   sharding)


def make_array_from_process_local_data(sharding: DeviceLike | None, local_data: ArrayLike,
                                       global_shape: ShapeLike | None = None) -> Array:
    """The data of the one process as an array on a device; None is the default one.

    >>> import functrans as ft, numpy as np
    >>> ft.make_array_from_process_local_data(None, np.ones(2)).shape
    (2,)
    """
    x = asarray(local_data)
    sizes = tuple(x.shape) if global_shape is None else \
        (global_shape,) if np.ndim(global_shape) == 0 else tuple(global_shape)  # type: ignore[arg-type]
    return _placed("make_array_from_process_local_data", x, sizes, sharding)


def _placed(name: str, x: Array, shape: Any, device: DeviceLike | None) -> Array:
    if tuple(x.shape) != tuple(shape):
        raise ArgumentError(f"{name}: the data is of shape {tuple(x.shape)}, not {tuple(shape)}.",
                            where=user_source())
    placed: Array = device_put(x, device)
    return placed
