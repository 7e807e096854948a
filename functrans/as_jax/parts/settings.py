"""`jax.config`, and JAX's switches that are context managers and change nothing here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from functrans import settings
from functrans.core import config
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source

__all__ = ["JaxConfig", "allow_f16_reductions", "array_garbage_collection_guard",
           "copy_to_host_async", "disable_x64", "enable_checks", "enable_custom_prng",
           "explain_cache_misses", "jax_config", "legacy_prng_key", "log_compiles",
           "numpy_dtype_promotion", "numpy_rank_promotion", "set_cache_dir", "softmax_custom_jvp",
           "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
           "transfer_guard_device_to_host", "transfer_guard_host_to_device"]


class JaxConfig:
    """`jax.config`: settings by JAX's names, read as attributes and changed by `update`.

    Settings that change nothing here are remembered.
    """

    def __init__(self) -> None:
        self._remembered: dict[str, Any] = {}

    def update(self, name: str, val: Any) -> None:
        """Change a setting; raises AttributeError for a name that JAX does not have either."""
        if settings.is_ignored(name):
            self._remembered[name] = val
        elif settings.is_known(name):
            settings.update(name, val)
        else:
            raise AttributeError(f"Unrecognized config option: {name}")

    def read(self, name: str) -> Any:
        """The value of a setting; raises AttributeError for a name that JAX does not have."""
        if name in self._remembered:
            return self._remembered[name]
        if settings.is_ignored(name):
            return None
        if not settings.is_known(name):
            raise AttributeError(f"Unrecognized config option: {name}")
        return settings.read(name)

    @property
    def x64_enabled(self) -> bool:
        return bool(config.current().float_dtype.itemsize == 8)

    @property
    def values(self) -> dict[str, Any]:
        """The settings that are known, by name."""
        return {name: self.read(name) for name in settings.known()}

    @property
    def FLAGS(self) -> JaxConfig:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("jax_"):
            return self.read(name)
        raise AttributeError(f"jax.config has no attribute {name!r}")


jax_config: Final = JaxConfig()


def disable_x64() -> AbstractContextManager[config.Config]:
    """Context manager: 32 bits, as by default."""
    return settings.enable_x64(False)


def _fixed(name: str, *accepted: Any) -> Callable[..., AbstractContextManager[None]]:
    """A switch that has one position here; another one is refused."""
    def switch(new_val: Any = accepted[0]) -> AbstractContextManager[None]:
        if new_val not in accepted:
            raise ArgumentError(f"jax.{name}({new_val!r}): it is always {accepted[0]!r} here.",
                                where=user_source())
        return nullcontext()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"Context manager that changes nothing: {name} is {accepted[0]!r} here."
    return switch


def _ignored(name: str) -> Callable[..., AbstractContextManager[None]]:
    """A switch that changes no result."""
    def switch(new_val: Any = True) -> AbstractContextManager[None]:
        return nullcontext()

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"Context manager that changes nothing: of JAX's {name} no result depends."
    return switch


numpy_dtype_promotion = _fixed("numpy_dtype_promotion", "standard")
numpy_rank_promotion = _fixed("numpy_rank_promotion", "allow", "warn")
enable_custom_prng = _fixed("enable_custom_prng", True)
threefry_partitionable = _fixed("threefry_partitionable", True)
softmax_custom_jvp = _fixed("softmax_custom_jvp", True)
allow_f16_reductions = _ignored("allow_f16_reductions")
array_garbage_collection_guard = _ignored("array_garbage_collection_guard")
enable_checks = _ignored("enable_checks")
explain_cache_misses = _ignored("explain_cache_misses")
legacy_prng_key = _ignored("legacy_prng_key")
log_compiles = _ignored("log_compiles")
transfer_guard = _ignored("transfer_guard")
transfer_guard_device_to_device = _ignored("transfer_guard_device_to_device")
transfer_guard_device_to_host = _ignored("transfer_guard_device_to_host")
transfer_guard_host_to_device = _ignored("transfer_guard_host_to_device")


def copy_to_host_async(x: Any) -> None:
    """Nothing: `device_get` copies when it is called."""


def set_cache_dir(path: Any) -> None:
    """Nothing: programs are kept where functrans keeps them."""
