"""Devices: where arrays lie. There is one CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from functrans.core.errors import BackendError
from functrans.core.source import user_source

__all__ = ["CPU", "Device", "devices", "find_device"]


@dataclass(frozen=True, slots=True)
class Device:
    """A place for arrays, such as `cpu:0`."""

    platform: str
    id: int = 0

    @property
    def device_kind(self) -> str:
        """The kind of hardware."""
        return self.platform

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"


CPU = Device("cpu")


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a backend, by default of every one.

    Raises BackendError for a backend that is not there.

    >>> import functrans as ft
    >>> ft.devices()
    [cpu:0]
    """
    if backend not in (None, "cpu"):
        raise _no_device(backend)
    return [CPU]


def find_device(device: Any) -> Device:
    """The device meant by a Device, its name (`"cpu"`, `"cpu:0"`), or None for the default."""
    if device is None or device == CPU or device in ("cpu", "cpu:0"):
        return CPU
    raise _no_device(device)


def _no_device(name: Any) -> BackendError:
    return BackendError(f"there is no device {name!r} here.", where=user_source(),
                        why="the devices are " + ", ".join(map(repr, [CPU])) + ".",
                        fix='device="cpu"')
