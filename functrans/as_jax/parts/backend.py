"""Backends as libraries ask for them: names of platforms, without a client of XLA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from functrans.core.errors import BackendError
from functrans.device import Device, devices
from functrans.environment import default_backend, device_count, process_index

__all__ = ["PlatformBackend", "backends", "get_backend", "get_default_device", "known_backends"]


@dataclass(frozen=True)
class PlatformBackend:
    """A platform, "cpu" or "gpu", and its devices."""

    platform: str

    @property
    def platform_version(self) -> str:
        return "functrans"

    def devices(self) -> list[Device]:
        return devices(self.platform)

    local_devices = devices

    def device_count(self) -> int:
        return device_count(self.platform)

    local_device_count = device_count

    def process_index(self) -> int:
        return process_index()


def get_backend(platform: str | None = None) -> PlatformBackend:
    """The platform by a name, or the default one."""
    return PlatformBackend(platform or default_backend())


def backends() -> dict[str, PlatformBackend]:
    """The platforms of this machine."""
    return dict(known_backends)


def get_default_device() -> Device:
    """Where arrays go that nobody put anywhere."""
    return devices()[0]


def jax_devices(backend: str | None = None) -> list[Device]:
    """`functrans.devices`; the error for a platform that is not there begins as JAX's does."""
    try:
        return devices(backend)
    except BackendError as error:
        raise BackendError(f"Unknown backend {backend!r}: {error.what}", where=error.where,
                           why=error.why, fix=error.fix) from None


class _Known(Mapping[str, PlatformBackend]):
    """The platforms of this machine, found when they are asked for."""

    def _found(self) -> dict[str, PlatformBackend]:
        return {name: PlatformBackend(name) for name in ("cpu", default_backend())}

    def __getitem__(self, name: str) -> PlatformBackend:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


known_backends: Final[Mapping[str, Any]] = _Known()
