"""Libraries that know arrays by name are told of ours, when they are imported.

Most libraries find functions for an array by `x.__array_namespace__()` or NumPy's protocols, and
need nothing. These have a list of array types of their own:

- array_api_extra's `at`, of which SciPy and scikit-learn have copies: it updates JAX's arrays by
  `x.at[index].set(y)`, and takes arrays that it does not know for ones that can be written to.
- einops finds its backend by the type of the array.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import functrans.numpy as jnp
from functrans.array import Array
from functrans.core.trace import Tracer

__all__ = ["install"]


def _is_ours(x: object) -> bool:
    return isinstance(x, (Array, Tracer))


# what a copy of `at` asks of an array, and how the answer is mended
_QUESTIONS: dict[str, Callable[[Callable[[object], bool]], Callable[[object], bool]]] = {
    "is_jax_array": lambda asked: lambda x: _is_ours(x) or asked(x),
    "is_writeable_array": lambda asked: lambda x: not _is_ours(x) and asked(x),
}


class _Helpers:
    """The helpers that a copy of `at` asks of arrays, which know ours, too."""

    def __init__(self, helpers: Any) -> None:
        self._helpers = helpers
        for name, mend in _QUESTIONS.items():
            setattr(self, name, mend(getattr(helpers, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._helpers, name)


def _tell_at(module: ModuleType) -> None:
    """Let a copy of array_api_extra's `at` update our arrays as it updates JAX's."""
    names = vars(module)
    # later versions ask a module of helpers, earlier ones import the functions
    for name in _QUESTIONS.keys() & names.keys():
        names[name] = _QUESTIONS[name](names[name])
    if "_compat" in names:
        names["_compat"] = _Helpers(names["_compat"])


def _tell_einops(module: ModuleType) -> None:
    """Give einops a backend for our arrays and tracers: it finds the subclasses of its base."""

    class FunctransBackend(module.NumpyBackend):  # type: ignore[misc, name-defined]
        framework_name = "functrans"

        def __init__(self) -> None:
            self.np = jnp

        def is_appropriate_type(self, tensor: object) -> bool:
            return _is_ours(tensor)

        def from_numpy(self, x: Any) -> Array:
            return jnp.asarray(x)

        def to_numpy(self, x: Any) -> np.ndarray[Any, Any]:
            return np.asarray(x)

        def is_float_type(self, x: Any) -> bool:
            return bool(jnp.issubdtype(x.dtype, jnp.floating))

    module.FunctransBackend = FunctransBackend  # type: ignore[attr-defined]


# by the end of a module's name: array_api_extra stands in other packages
_TOLD = {
    "array_api_extra._at": _tell_at,
    "array_api_extra._lib._at": _tell_at,
    "einops._backends": _tell_einops,
}
_ENDS = tuple(_TOLD)


def _tell(module: ModuleType) -> None:
    next(tell for end, tell in _TOLD.items() if module.__name__.endswith(end))(module)


class _Loader:
    """A module's own loader, which tells the module of our arrays once it is executed."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> ModuleType | None:
        """The module, before it is executed."""
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module, and tell it."""
        self._loader.exec_module(module)
        _tell(module)


class _ImportFinder:
    """Stands before the finders of modules, for the modules in the table alone."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of a module in the table, with a loader that tells it; None for all others."""
        if self._asking or not name.endswith(_ENDS):
            return None
        self._asking = True  # the other finders are asked, not this one
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def install() -> None:
    """Tell the libraries that are imported, and those that will be."""
    for name, module in list(sys.modules.items()):
        if name.endswith(_ENDS):
            _tell(module)
    sys.meta_path.insert(0, _ImportFinder())
