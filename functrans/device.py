"""Devices: where arrays lie. There is the CPU, which may stand for several devices, and the GPUs
that the CUDA driver offers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from functrans import _runtime
from functrans.core import config
from functrans.core.communicator import (
    devices_of_processes,
    on_processes,
    processes,
    this_process,
)
from functrans.core.cpu_devices import cpu_device_count
from functrans.core.cuda import PUT_ON_CPU, has_triton
from functrans.core.errors import BackendError
from functrans.core.source import user_source

__all__ = ["CPU", "Device", "current_device", "default_device", "device_at", "devices",
           "find_device", "place_of"]


@dataclass(frozen=True, slots=True)
class Device:
    """A place for arrays, such as `cpu:0` or `gpu:0`; of process 3 of several, `gpu:0@3`.

    `id` counts the devices of a platform within a process.

    >>> ft.devices("cpu")[0].platform
    'cpu'
    >>> cpu = ft.devices("cpu")[0]
    >>> cpu.synchronize()                   # waits for what runs there
    >>> cpu.release_cached()                # gives back memory that no array uses
    """

    platform: str
    id: int = 0
    process_index: int = field(default_factory=this_process)

    @property
    def is_local(self) -> bool:
        """Whether it is a device of this process."""
        return self.process_index == this_process()

    @property
    def local_hardware_id(self) -> int:
        return self.id

    @property
    def device_kind(self) -> str:
        """The kind of hardware, such as `NVIDIA H100 80GB HBM3`."""
        return _gpu_info()[self.id][0] if self.platform == "gpu" else self.platform

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """(major, minor) of a GPU, None of the CPU."""
        return _gpu_info()[self.id][1:3] if self.platform == "gpu" else None

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use, their peak, reserved bytes and more, by name.

        >>> import functrans as ft
        >>> ft.devices("cpu")[0].memory_stats()["bytes_in_use"] >= 0
        True
        """
        if self.platform == "gpu":
            return _runtime.cuda_memory_stats(self.id)
        stats = _runtime.memory_stats()
        return {"bytes_in_use": stats["in_use"], "peak_bytes_in_use": stats["peak"],
                "bytes_reserved": stats["in_use"] + stats["cached"],
                "num_allocs": stats["allocations"]}

    def release_cached(self) -> None:
        """Give memory that no array uses back to the system, or to the driver of the GPU."""
        if self.platform == "gpu":
            _runtime.cuda_release_cached(self.id)
        else:
            _runtime.clear_memory_cache()

    def synchronize(self) -> None:
        """Wait for everything that the device was given to do."""
        if self.platform == "gpu":
            _runtime.cuda_synchronize(self.id)

    def __repr__(self) -> str:
        process = f"@{self.process_index}" if processes() > 1 else ""
        return f"{self.platform}:{self.id}{process}"


CPU = Device("cpu")
# it is that of this process, also once processes have numbers, which is before arrays are made
on_processes(lambda index: object.__setattr__(CPU, "process_index", index))


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend (`"cpu"`, `"gpu"`), by default of every one.

    Raises BackendError for a backend that is not there.

    >>> import functrans as ft
    >>> ft.devices("cpu")
    [cpu:0]
    """
    if backend is None:
        return [*devices("cpu"), *_everywhere("gpu")]
    if backend == "cpu":
        return _everywhere("cpu")
    if backend in ("gpu", "cuda") and (found := _everywhere("gpu")):
        return found
    raise _no_device(backend)


def _everywhere(platform: str) -> list[Device]:
    """The devices of all processes, in the order of the processes."""
    here = _cpus() if platform == "cpu" else _gpus()
    found: list[Device] = []
    for process, have in enumerate(devices_of_processes()):
        ids = range(have.cpus) if platform == "cpu" else have.gpus
        found += here if process == this_process() else [Device(platform, i, process) for i in ids]
    return found if processes() > 1 else here


def find_device(device: Any) -> Device:
    """The device meant by a Device, its name (`"cpu"`, `"gpu:0"`), or None for the default."""
    if device is None:
        return current_device()
    if device == CPU or device in ("cpu", "cpu:0"):
        return CPU
    if isinstance(device, Device):
        if device in _cpus() or (device.platform == "gpu" and device in _gpus()):
            return device
    elif isinstance(device, str):
        name, _, process = device.partition("@")
        if process and process != str(this_process()):
            raise _no_device(device)
        for cpu in _cpus():
            if name == f"cpu:{cpu.id}":
                return cpu
        platform, _, number = name.partition(":")
        for gpu in _gpus() if platform in ("gpu", "cuda") else ():
            if not number or str(gpu.id) == number:
                return gpu
    raise _no_device(device)


def current_device() -> Device:
    """Where arrays go that nobody put anywhere.

    What `config.default_device` says, else the first GPU if there is one and Triton is installed,
    else the CPU.

    >>> with ft.config.default_device("cpu"):
    ...     ft.config.current_device()
    cpu:0
    """
    name = config.current().device
    if name is not None:
        return find_device(name)
    return _gpus()[0] if has_triton() and _gpus() else CPU


def default_device(device: Device | str | None) -> AbstractContextManager[config.Config]:
    """Context manager: arrays that nobody put anywhere go to this device; None for a GPU if any.

    Raises BackendError for a device that is not there.

    >>> import functrans as ft
    >>> with ft.config.default_device("cpu"):
    ...     ft.config.current_device()
    cpu:0
    """
    return config.scope(device=None if device is None else repr(find_device(device)))


def device_at(place: int) -> Device:
    """The device for the runtime's number of a place."""
    return CPU if place in (0, PUT_ON_CPU) else Device("gpu", place - 1)


def place_of(device: Device) -> int:
    """The runtime's number for a device that was asked for."""
    return PUT_ON_CPU if device == CPU else device.id + 1


def _cpus() -> list[Device]:
    return [CPU, *[Device("cpu", i) for i in range(1, cpu_device_count())]]


def _gpus() -> list[Device]:
    if not _runtime.cuda_open():
        return []
    have = devices_of_processes()
    ids = have[this_process()].gpus if have else range(len(_gpu_info()))
    return [Device("gpu", i) for i in ids]


def _gpu_info() -> list[tuple[str, int, int, int, int, int]]:
    return _runtime.cuda_devices()


def _no_device(name: Any) -> BackendError:
    why = "the devices are " + ", ".join(map(repr, [*_cpus(), *_gpus()])) + "."
    asked = repr(name) if isinstance(name, Device) else str(name)
    if asked.partition(":")[0] in ("gpu", "cuda"):
        if reason := _runtime.cuda_error():
            why += f" The CUDA driver does not open: {reason}."
        else:
            _runtime.cuda_require()  # raises in a fork
    shown = asked if isinstance(name, Device) else repr(name)
    return BackendError(f"there is no device {shown} here.", where=user_source(), why=why,
                        fix='device="cpu"')
