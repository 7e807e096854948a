"""What a library that is written for the Python array API may ask of this namespace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.staging import StageTrace
from functrans.core.trace import get_trace
from functrans.device import Device, current_device, devices
from functrans.transforms.batching import BatchTrace

__all__ = ["API_VERSIONS", "__array_api_version__", "__array_namespace_info__", "namespace_in_use",
           "used_namespace"]

# each revision of the standard keeps what the ones before it had
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = API_VERSIONS[-1]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": (*_SIGNED, *_UNSIGNED),
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": (*_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX),
}
_ALL = ("bool", *_KINDS["numeric"])


class _Used(threading.local):
    namespace: Any = None


_used = _Used()


@contextmanager
def namespace_in_use(namespace: Any) -> Iterator[None]:
    """Inside, arrays give this namespace to libraries, in place of functrans.numpy."""
    before, _used.namespace = _used.namespace, namespace
    try:
        yield
    finally:
        _used.namespace = before


def used_namespace(default: Any) -> Any:
    """The namespace that arrays give to libraries."""
    return default if _used.namespace is None else _used.namespace


class __array_namespace_info__:
    """Devices, dtypes and capabilities of the namespace, by the Python array API 2025.12.

    >>> import functrans.numpy as jnp
    >>> info = jnp.__array_namespace_info__()
    >>> info.capabilities()["boolean indexing"], info.default_device().platform
    (True, 'cpu')
    >>> sorted(info.dtypes(kind="real floating"))
    ['float32', 'float64']
    >>> info = jnp.__array_namespace_info__()
    >>> info.devices()[0], info.default_dtypes()["integral"]
    (cpu:0, dtype('int32'))
    """

    def capabilities(self) -> dict[str, Any]:
        """Whether shapes may depend on data: yes, but while `jit` or `vmap` traces.

        >>> import functrans as ft, functrans.numpy as jnp
        >>> ft.jit(jnp.__array_namespace_info__().capabilities)()["boolean indexing"]
        Array(False, dtype=bool)
        """
        known = not _is_staged()
        return {"boolean indexing": known, "data-dependent shapes": known, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of arrays that nobody put anywhere."""
        return current_device()

    def devices(self) -> tuple[Device, ...]:
        """The devices of all platforms."""
        return tuple(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Dtypes of Python numbers and of places, in this scope (`ft.default_dtypes`)."""
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind (or of several, in a tuple) by their names in the standard.

        Raises ArgumentError if a kind is not one of the standard's.
        """
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = [name for each in kinds for name in _names(each)]
        return {name: np.dtype(name) for name in dict.fromkeys(names)}


def _is_staged() -> bool:
    """Whether a trace that is at work has values that Python cannot know."""
    trace = get_trace()
    while trace is not None and not isinstance(trace, (StageTrace, BatchTrace)):
        trace = trace.parent
    return trace is not None


def _names(kind: Any) -> tuple[str, ...]:
    if kind is None:
        return _ALL
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    raise ArgumentError(f"dtypes() got kind={kind!r}.",
                        fix=f"The kinds are None and {', '.join(map(repr, _KINDS))}.")
