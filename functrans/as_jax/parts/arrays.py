"""Attributes that JAX's arrays have, which are about places, and its types and jitted functions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from functrans._runtime import JitFunction
from functrans.array import Array
from functrans.as_jax.parts import avals
from functrans.core.avals import ShapedArray
from functrans.core.key_dtypes import KEY_DTYPES
from functrans.core.sharding import SingleDeviceSharding
from functrans.core.trace import Tracer
from functrans.device import current_device
from functrans.foreign import ForeignAttribute

__all__ = ["attach", "detach"]


def _sharding(x: Any) -> SingleDeviceSharding:
    return SingleDeviceSharding(current_device())


_OF_ALL: Final[Mapping[str, Any]] = MappingProxyType({
    "sharding": property(_sharding, doc="Where arrays go, as far as is known."),
    "committed": property(lambda x: False),
    "is_fully_addressable": property(lambda x: True),
    "is_fully_replicated": property(lambda x: True),
})
_OF_ARRAYS: Final[Mapping[str, Any]] = MappingProxyType({
    "copy_to_host_async": lambda self: None,
    "delete": lambda self: None,
    "is_deleted": lambda self: self._donated,
    "is_ready": lambda self: True,
    "on_device_size_in_bytes": lambda self: self.nbytes,
})
_ABSENT: Final = object()


def _globals(function: Any) -> dict[str, Any]:
    """Those of the function that is compiled, and the sign by which libraries know a traced one."""
    return {**getattr(function.__wrapped__, "__globals__", {}), "api_boundary": JitFunction}


_OF_FUNCTIONS: Final[Mapping[str, Any]] = MappingProxyType({"__globals__": property(_globals)})


def attach() -> list[tuple[type, str, Any]]:
    """Give arrays and tracers the attributes that they do not have; what was there before."""
    before: list[tuple[type, str, Any]] = []
    for cls, given in ((Array, {**_OF_ALL, **_OF_ARRAYS}), (Tracer, _OF_ALL),
                       (JitFunction, _OF_FUNCTIONS)):
        for name, value in given.items():
            own = cls.__dict__.get(name, _ABSENT)
            known = next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), _ABSENT)
            if known is _ABSENT or isinstance(known, ForeignAttribute):
                before.append((cls, name, own))
                setattr(cls, name, value)
    for name, value in avals.ATTRIBUTES.items():
        before.append((ShapedArray, name, ShapedArray.__dict__.get(name, _ABSENT)))
        setattr(ShapedArray, name, value)
    # libraries that draw trees look for it, and draw arrays themselves where it is not there
    before.append((Array, "_repr_html_", Array.__dict__["_repr_html_"]))
    del Array._repr_html_
    for dtype in KEY_DTYPES:
        before.append((dtype.type, "__name__", dtype.type.__name__))
        dtype.type.__name__ = avals.KeyName(dtype.type.__name__)
    return before


def detach(before: list[tuple[type, str, Any]]) -> None:
    """Undo `attach`."""
    for cls, name, old in before:
        if old is _ABSENT:
            delattr(cls, name)
        else:
            setattr(cls, name, old)
