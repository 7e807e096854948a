"""How many devices the CPU stands for."""

from __future__ import annotations

from typing import Final

from functrans.core.errors import HERE, ArgumentError

__all__ = ["MOST", "cpu_device_count", "cpu_devices"]

MOST: Final = 256
_count: Final = [1]


def cpu_device_count() -> int:
    """How many devices the CPU stands for: 1 unless `cpu_devices` said otherwise.

    >>> ft.config.cpu_device_count()
    1
    """
    return _count[0]


class _DeviceCount:
    """What holds from now on, and until the end of a `with` block where it is one's."""

    def __init__(self, count: int) -> None:
        self._before = _count[0]
        _count[0] = count

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        _count[0] = self._before


def cpu_devices(count: int) -> _DeviceCount:
    """Let the CPU stand for so many devices, on which programs run in threads of their own.

    Meshes of them show on any machine how a program of several devices behaves. It holds from now
    on; as a context manager until the end of the block. Devices that were there before stay what
    they are. Raises ArgumentError for less than one and more than 256.

    >>> import functrans as ft
    >>> with ft.config.cpu_devices(4):
    ...     ft.devices("cpu")
    [cpu:0, cpu:1, cpu:2, cpu:3]
    """
    if not isinstance(count, int) or not 1 <= count <= MOST:
        raise ArgumentError(f"the CPU stands for 1 to {MOST} devices, not {count!r}.", where=HERE)
    return _DeviceCount(count)
