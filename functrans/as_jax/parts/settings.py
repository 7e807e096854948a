"""`jax.config`, and what else is about settings."""

from __future__ import annotations

from typing import Any, Final

from functrans import settings
from functrans.core import config

__all__ = ["JaxConfig", "jax_config", "set_cache_dir"]


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


def set_cache_dir(path: Any) -> None:
    """Nothing: programs are kept where functrans keeps them."""
