"""The methods of `Array`, and of every tracer, by one table: functions of functrans.numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import _runtime, lax
from functrans import numpy as jnp
from functrans.array import Array
from functrans.at import At
from functrans.concretize import install_refusals
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, public
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.device import CPU, find_device, place_of
from functrans.dlpack import export_host
from functrans.foreign import install_foreign_attributes
from functrans.numpy.namespace_info import API_VERSIONS, used_namespace
from functrans.operators import install_operators
from functrans.protocol import array_function, array_ufunc

__all__ = ["install", "view_as"]

# Functions of functrans.numpy that take the array first, as they are.
_FUNCTIONS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "cumprod",
    "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat",
    "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var")


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array converted to a dtype; itself when it has it."""
    return jnp.astype(self, dtype, device=device)


def _reshape(self: Any, *shape: Any, order: str = "C") -> Any:
    """The elements in another shape, given as one tuple or as sizes; one may be -1."""
    return jnp.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: Any, *axes: Any) -> Any:
    """The axes in the given order, as one tuple or as numbers; reversed by default."""
    if not axes or (len(axes) == 1 and axes[0] is None):
        return jnp.transpose(self)
    return jnp.transpose(self, axes if isinstance(axes[0], int) else axes[0])


def _flatten(self: Any, order: str = "C") -> Any:
    """The elements as a vector."""
    return jnp.ravel(self, order)


def _compress(self: Any, condition: Any, axis: int | None = None, **options: Any) -> Any:
    """The parts along an axis for which a condition holds."""
    return jnp.compress(condition, self, axis, **options)


def _conj(self: Any) -> Any:
    """The complex conjugate."""
    return jnp.conj(self)


def _copy(self: Any) -> Any:
    """Another array of the same values, which outlives the donation of the first."""
    return jnp.copy(self)


def view_as(self: Any, dtype: Any = None, *sizes: Any) -> Any:
    """The bytes read as another dtype; the last axis grows or shrinks with its width.

    Raises ShapeError when the last axis does not divide into the wider elements, ArgumentError for
    a shape in place of a dtype.
    """
    if sizes or (isinstance(dtype, (int, tuple, list)) and not isinstance(dtype, bool)):
        shape = (dtype, *sizes) if sizes else dtype
        raise ArgumentError(f"view takes a dtype, got the shape {shape}.", where=user_source(),
                            why="view reads the bytes as another dtype, as in NumPy.",
                            fix=f"x.reshape({', '.join(map(str, (sizes and shape) or [dtype]))})")
    if dtype is None:
        return self
    new = dtypes.as_dtype(dtype)
    if new == self.dtype:
        return self
    if new == np.bool_:
        return jnp.not_equal(view_as(self, np.uint8), 0)
    x = jnp.astype(self, np.uint8) if self.dtype == np.bool_ else self
    old_width, new_width = x.dtype.itemsize, new.itemsize
    if old_width == new_width:
        return lax.bitcast_convert_type(x, new)
    if not x.ndim or (new_width > old_width and x.shape[-1] * old_width % new_width):
        raise ShapeError(f"view: {x.aval} cannot be read as {new}.", where=user_source(),
                         why=f"the last axis must hold whole elements of {new_width} bytes.")
    if new_width > old_width:
        ratio = new_width // old_width
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
        return lax.bitcast_convert_type(x, new)
    parts = lax.bitcast_convert_type(x, new)
    return lax.reshape(parts, (*parts.shape[:-2], parts.shape[-2] * parts.shape[-1]))


def _byteswap(self: Any) -> Any:
    """The numbers that the bytes of each element are in the other order.

    >>> import functrans.numpy as jnp
    >>> jnp.array([1, 256], "int16").byteswap()
    Array([256,   1], dtype=int16)
    """
    width = self.dtype.itemsize // (2 if dtypes.kind(self.dtype) == "c" else 1)
    if width == 1:
        return self
    if dtypes.kind(self.dtype) == "c":
        return lax.complex(_byteswap(self.real), _byteswap(self.imag))
    return lax.bitcast_convert_type(jnp.flip(lax.bitcast_convert_type(self, np.uint8), -1),
                                    self.dtype)


def _round(self: Any, ndigits: int | None = None) -> Any:
    """round(x, ndigits): floating numbers; integers where no number of digits is given."""
    rounded = jnp.round(self, ndigits or 0)
    return jnp.astype(rounded, dtypes.default_int()) if ndigits is None else rounded


def _strides(self: Array) -> tuple[int, ...]:
    if self.device == CPU:
        return np.asarray(self, self.dtype).strides
    sizes = [math.prod(self.shape[i + 1:]) for i in range(self.ndim)]
    return tuple(self.dtype.itemsize * size for size in sizes)


def _contains(self: Any, value: Any) -> bool:
    return bool(jnp.any(jnp.equal(self, value)))


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module of array functions (Python array API).

    Raises ArgumentError for a revision of the standard that does not exist.
    """
    if api_version is not None and api_version not in API_VERSIONS:
        raise ArgumentError(f"there is no revision {api_version!r} of the array API here.",
                            fix=f"Revisions are {', '.join(API_VERSIONS)}.")
    return used_namespace(jnp)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device."""
    target = find_device(device)
    if type(self) is not Array or self.device == target:
        return self
    return _runtime.place_array(self, place_of(target))


_METHODS: dict[str, Any] = {
    **{name: getattr(jnp, name) for name in _FUNCTIONS},
    "astype": _astype, "reshape": _reshape, "transpose": _transpose, "flatten": _flatten,
    "compress": _compress, "conj": _conj, "conjugate": _conj, "copy": _copy, "view": view_as,
    "byteswap": _byteswap,
    "to_device": _to_device, "__contains__": _contains,
    "__round__": _round, "__array_namespace__": _namespace,
    "__array_ufunc__": public(array_ufunc), "__array_function__": public(array_function),
}

_PROPERTIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "T": (lambda self: jnp.transpose(self), "The array with its axes reversed."),
    "mT": (lambda self: jnp.matrix_transpose(self), "The array with its last two axes exchanged."),
    "real": (lambda self: jnp.real(self), "The real part."),
    "imag": (lambda self: jnp.imag(self), "The imaginary part."),
    "flat": (lambda self: jnp.ravel(self), "The elements in row-major order, as a vector."),
    "at": (At, "Changed copies: `x.at[index].set(values)`, `add`, `multiply`, `get`, ..."),
}


def _install(cls: type) -> None:
    for name, method in _METHODS.items():
        setattr(cls, name, public(method))
    for name, (getter, doc) in _PROPERTIES.items():
        setattr(cls, name, property(getter, doc=doc))


def _numbers(x: Array) -> np.ndarray[Any, Any]:
    """What holds the elements; random keys raise KeyTypeError."""
    return np.asarray(x) if x.dtype in dtypes.KEY_DTYPES else x._np


def _item(self: Array, *args: Any) -> Any:
    """The only element, or the one at an index, as a Python number."""
    return _numbers(self).item(*args)


def _tolist(self: Array) -> Any:
    """The elements as nested lists of Python numbers."""
    return _numbers(self).tolist()


def _tobytes(self: Array, order: Any = "C") -> bytes:
    """The bytes of the elements in row-major order."""
    return _numbers(self).tobytes(order)


def install() -> None:
    """Give `Array` and `Tracer` their operators, methods and conversions; done once at import."""
    install_operators()
    install_refusals()
    for cls in (Array, Tracer):
        _install(cls)
    of_arrays: dict[str, Any] = {
        "item": _item, "tolist": _tolist, "tobytes": _tobytes, "__dlpack__": export_host,
        "strides": property(_strides, doc="Bytes from one element to the next, for each axis."),
    }
    for name, method in of_arrays.items():
        setattr(Array, name, method)
    facts: dict[str, Any] = {
        "nbytes": property(lambda self: self.aval.nbytes, doc="Bytes of all elements."),
        "itemsize": property(lambda self: self.dtype.itemsize, doc="Bytes of one element."),
        "device": property(lambda self: CPU, doc="Where the data will lie."),
        "block_until_ready": _copy,
    }
    for name, fact in facts.items():
        setattr(Tracer, name, fact)
    for cls in (Array, Tracer):
        install_foreign_attributes(cls)
