"""Installing what answers for JAX, and taking it away again."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType, ModuleType, TracebackType
from typing import Any, Final

from functrans import settings
from functrans.as_jax.errors import AsJaxError
from functrans.as_jax.finder import JaxFinder, JaxModule, is_jax
from functrans.as_jax.parts import arrays
from functrans.as_jax.regions import TABLE
from functrans.as_jax.regions.top_level import VERSION
from functrans.core import config

__all__ = ["Installation", "install", "is_installed", "uninstall"]

_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType(
    {"narrow_64bit": True, "dynamic_shapes": "off"})
_FLAGS: Final = ("jax_enable_x64", "jax_disable_jit", "jax_debug_nans", "jax_debug_infs")


class Installation:
    """That functrans answers for JAX; as a context manager until the end of the block."""

    def __init__(self) -> None:
        self.before = frozenset(sys.modules)
        self.finder = JaxFinder(TABLE, VERSION)
        sys.meta_path.insert(0, self.finder)
        importlib.invalidate_caches()
        self._attributes = arrays.attach()
        self._settings = [{name: getattr(found, name) for name in _SETTINGS}
                          for found in (config.of_process(), config.current())]
        config.set_process(**_SETTINGS)
        for flag in _FLAGS:  # JAX reads these when it is imported
            value = os.environ.get(flag.upper())
            if value is not None:
                settings.update(flag, value.lower() in ("1", "true", "t", "yes", "y", "on"))

    def end(self) -> None:
        """Take the finder, the modules that it gave and the libraries on these away."""
        sys.meta_path[:] = [f for f in sys.meta_path if f is not self.finder]
        new = {name: module for name, module in list(sys.modules.items())
               if name not in self.before and isinstance(module, ModuleType)}
        tops = {name.partition(".")[0] for name, module in new.items() if _uses_jax(module)}
        for name in new:
            if is_jax(name) or name.partition(".")[0] in tops:
                del sys.modules[name]
        arrays.detach(self._attributes)
        of_process, here = self._settings
        config.set_process(**of_process)
        config.set_current(**here)

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        uninstall()


_installed: Final[list[Installation]] = []


def _uses_jax(module: ModuleType) -> bool:
    """Whether a module of a library has a module or an object of functrans as its global."""
    if module.__name__.partition(".")[0] == "functrans":
        return False
    return any(isinstance(value, JaxModule) or _is_ours(value)
               for value in list(vars(module).values()))


def _is_ours(value: Any) -> bool:
    origin = getattr(value, "__module__", None) if callable(value) else None
    return isinstance(origin, str) and origin.startswith("functrans.")


def install() -> Installation:
    """Let functrans answer for `jax` and `jaxlib`, until `uninstall()` or the end of a `with`.

    Libraries that are imported from now on run on functrans. A second call changes nothing. Two
    settings of the process, which all its threads have, are JAX's: 64-bit values of NumPy become
    32-bit ones until `jax_enable_x64` is set (`ft.config.narrow_64bit`), and each shape is traced
    by itself (`ft.config.dynamic_shapes("off")`), as libraries count traces. Raises AsJaxError
    where JAX itself is imported already.

    >>> from functrans import as_jax
    >>> with as_jax.install():
    ...     import jax
    ...     print(jax.grad(jax.numpy.sin)(0.0))
    1.0
    """
    if _installed:
        return _installed[0]
    there = sys.modules.get("jax")
    if there is not None:
        raise AsJaxError(
            "JAX itself is imported already.",
            why=f"the module {getattr(there, '__file__', 'jax')} is what libraries have by now.",
            fix="import functrans.as_jax; functrans.as_jax.install()  # before anything of JAX")
    _installed.append(Installation())
    return _installed[0]


def uninstall() -> None:
    """Undo `install()`: modules of JAX and of libraries that were imported on it are forgotten.

    What a program holds of them goes on working. The next `import jax` is of JAX itself.
    """
    while _installed:
        _installed.pop().end()


def is_installed() -> bool:
    """Whether functrans answers for JAX.

    >>> is_installed()
    False
    """
    return bool(_installed)
