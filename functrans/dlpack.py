"""DLPack: sharing memory with other libraries, without copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from functrans import _runtime
from functrans._runtime import wrap
from functrans.array import Array
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, BackendError, NonArrayError, publish
from functrans.core.source import user_source
from functrans.device import CPU, find_device, place_of

__all__ = ["from_dlpack"]

_CPU = (1, 3)  # DLPack's numbers of ordinary and of pinned host memory
_CUDA = 2
_DEFAULT_STREAM = 1  # CUDA's number of the stream that nobody names
# DLPack's codes: int 0, unsigned 1, float 2, bfloat 4, complex 5, bool 6, then the 8-bit floats
_TYPES = [*[(f"{kind}{bits}", code, bits) for kind, code in (("int", 0), ("uint", 1))
            for bits in (8, 16, 32, 64)],
          ("float16", 2, 16), ("float32", 2, 32), ("float64", 2, 64), ("complex64", 5, 64),
          ("complex128", 5, 128), ("bool", 6, 8), (ml_dtypes.bfloat16, 4, 16),
          (ml_dtypes.float8_e4m3fn, 10, 8), (ml_dtypes.float8_e4m3fnuz, 11, 8),
          (ml_dtypes.float8_e5m2, 12, 8), (ml_dtypes.float8_e5m2fnuz, 13, 8)]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array on the memory of any object with `__dlpack__` or `__cuda_array_interface__`.

    The memory is shared unless `copy` is true or it is on another device than the one asked for:
    nobody may write to it afterwards. Raises NonArrayError for an object without these,
    BackendError for memory of a device that is not there.

    >>> import numpy as np
    >>> import functrans as ft
    >>> ft.dlpack.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    target = None if device is None else find_device(device)
    result = _share(x, bool(copy))
    if target is None or target == result.device:
        return result
    if copy is False:
        raise ArgumentError(f"from_dlpack: memory of {result.device} needs a copy for {target}.",
                            where=user_source(), fix="leave out copy=False")
    return _runtime.place_array(result, place_of(target))


def _share(x: Any, copy: bool) -> Array:
    """The memory of x, where it is."""
    if type(x) is Array:
        if copy:
            return wrap(np.array(x), x.weak_type) if x.device == CPU else _copied(x)
        return x
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        if hasattr(x, "__cuda_array_interface__"):
            result = from_interface(x)
            return _copied(result) if copy else result
        raise NonArrayError(f"from_dlpack takes an object with __dlpack__, and got a "
                            f"{type(x).__name__}.", where=user_source(),
                            fix="functrans.numpy.asarray(x)")
    kind, number = x.__dlpack_device__()
    if kind == _CUDA and _runtime.cuda_open():
        result = _runtime.cuda_import_dlpack(_capsule(x, number))
        return _copied(result) if copy else result
    if kind not in _CPU:
        raise BackendError(f"from_dlpack: the memory is on device ({int(kind)}, {number}).",
                           where=user_source(),
                           why="memory of the CPU and of CUDA devices that work here is shared.",
                           fix="copy it to the CPU first")
    value = np.from_dlpack(x)
    as_dtype(value.dtype)
    return wrap(np.array(value) if copy else value.view())  # type: ignore[return-value]


def _capsule(x: Any, number: int) -> Any:
    """The capsule of an object on a CUDA device; what computes x comes before our use of it."""
    stream = _runtime.cuda_stream(number)
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a library from before DLPack 1.0
        return x.__dlpack__(stream=stream)


def _copied(x: Array) -> Array:
    """The same values in memory of their own."""
    return _runtime.place_array(wrap(np.asarray(x), x.weak_type), place_of(x.device))


def from_interface(x: Any) -> Array:
    """An array on the memory of an object with `__cuda_array_interface__`, which it keeps alive.

    Raises ArgumentError for memory that is not contiguous, or is masked.
    """
    _runtime.cuda_require()
    described: Mapping[str, Any] = x.__cuda_array_interface__
    shape = tuple(described["shape"])
    dtype = as_dtype(np.dtype(described["typestr"]))
    strides = described.get("strides")
    contiguous, step = True, dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides or ())):
        contiguous &= extent == 1 or stride == step
        step *= extent
    if not (contiguous or 0 in shape) or described.get("mask") is not None:
        raise ArgumentError("the memory of a device array must be contiguous, in C order, and not "
                            "masked.", where=user_source(), fix="make a contiguous copy first")
    stream = described.get("stream") if described.get("version", 0) >= 3 else _DEFAULT_STREAM
    return _runtime.cuda_import_memory(described["data"][0], dtype, shape, stream, x)


def _export(x: Array, options: Mapping[str, Any]) -> Any:
    """`__dlpack__` of an array on a device; the runtime calls this."""
    unknown = set(options) - {"stream", "max_version", "dl_device", "copy"}
    if unknown:
        raise TypeError(f"__dlpack__ got an unexpected argument {unknown.pop()!r}")
    wanted = options.get("dl_device")
    here = x.__dlpack_device__()
    version = options.get("max_version")
    copy = options.get("copy")
    if wanted is not None and tuple(wanted) != here:
        if tuple(wanted) != (1, 0) or copy is False:
            raise BufferError(f"memory of device {here} cannot be exported to {tuple(wanted)}")
        return np.array(x).__dlpack__(max_version=version)
    stream = options.get("stream")
    if stream is None:
        stream = _DEFAULT_STREAM
    if not isinstance(stream, int) or stream == 0 or stream < -1:
        raise ValueError(f"__dlpack__: {stream!r} is no stream of CUDA; 1 is the default stream")
    source = _copied(x) if copy else x
    return _runtime.cuda_export_dlpack(source, None if stream == -1 else stream,
                                       version is not None and version[0] >= 1, bool(copy))


_runtime.set_dlpack_types(_TYPES)
_runtime.set_operator_fallbacks({"dlpack": _export})

publish(globals(), __all__)
