"""DLPack: sharing memory with other libraries, without copies."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, wrap
from functrans.array import Array
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, BackendError, NonArrayError, publish
from functrans.core.source import user_source
from functrans.device import CPU, find_device, place_of

if TYPE_CHECKING:
    from functrans.typing import DeviceLike, DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]

_CPU = (1, 3)  # DLPack's numbers of ordinary and of pinned host memory
_CUDA = 2
_DEFAULT_STREAM = 1  # CUDA's number of the stream that nobody names
# DLPack's codes: int 0, unsigned 1, float 2, bfloat 4, complex 5, bool 6, then the 8-bit floats
_TYPES = [*[(f"{kind}{bits}", code, bits) for kind, code in (("int", 0), ("uint", 1))
            for bits in (8, 16, 32, 64)],
          ("float16", 2, 16), ("float32", 2, 32), ("float64", 2, 64), (ml_dtypes.complex32, 5, 32),
          ("complex64", 5, 64), ("complex128", 5, 128), ("bool", 6, 8), (ml_dtypes.bfloat16, 4, 16),
          (ml_dtypes.float8_e4m3fn, 10, 8), (ml_dtypes.float8_e4m3fnuz, 11, 8),
          (ml_dtypes.float8_e5m2, 12, 8), (ml_dtypes.float8_e5m2fnuz, 13, 8)]


_UNSIGNED = 1
# the dtypes that NumPy's own DLPack does not know, and their codes
_CODES = {np.dtype(t): code for t, code, _ in _TYPES if np.dtype(t).type.__module__ != "numpy"}
_NARROW = {(code, dtype.itemsize * 8): dtype for dtype, code in _CODES.items()}


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be shared by DLPack.

    >>> import functrans as ft
    >>> ft.dlpack.is_supported_dtype("bfloat16"), ft.dlpack.is_supported_dtype("int4")
    (True, False)
    """
    return as_dtype(dtype) in {np.dtype(t) for t, _, _ in _TYPES}


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("dtype", _DLDataType),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64))


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DLTensor))


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))


def dtype_field(capsule: Any) -> _DLDataType:
    """The dtype in the struct of a capsule that nobody has consumed: code, bits and lanes.

    Each export makes a struct of its own, so that its dtype may be set to one of the same width.
    """
    if _is_valid(capsule, b"dltensor_versioned"):
        pointer = _get_pointer(capsule, b"dltensor_versioned")
        tensor: _DLTensor = _DLManagedTensorVersioned.from_address(pointer).tensor
    else:
        tensor = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    dtype: _DLDataType = tensor.dtype
    return dtype


def from_dlpack(x: object, /, *, device: DeviceLike | None = None, copy: bool | None = None
                ) -> Array:
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
            return wrap(np.array(x, x.dtype), x.weak_type) if x.device == CPU else _copied(x)
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
    value = _host_array(x)
    as_dtype(value.dtype)
    return wrap(np.array(value) if copy else value.view())


def _host_array(x: Any) -> np.ndarray[Any, Any]:
    """The memory of x as a NumPy array; NumPy does not read the dtypes of ml_dtypes itself."""
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # a library from before DLPack 1.0
        capsule = x.__dlpack__()
    described = dtype_field(capsule)
    dtype = _NARROW.get((described.code, described.bits))
    if dtype is None:
        return np.from_dlpack(_Exporter(capsule, x.__dlpack_device__()))
    described.code = _UNSIGNED
    return np.from_dlpack(_Exporter(capsule, x.__dlpack_device__())).view(dtype)


class _Exporter:
    """An object that hands out one capsule."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def export_host(self: Array, **options: Any) -> Any:
    """`__dlpack__` of an array: a capsule on its memory, for dtypes that NumPy lacks too."""
    dtype = self.dtype
    if dtype not in _CODES or self.device != CPU:
        return ArrayBase.__dlpack__(self, **options)
    bits = np.asarray(self, dtype).view(f"u{dtype.itemsize}")
    # bits are ours alone to hand out: who reads them is told by the version that he may not write
    capsule = ArrayBase.__dlpack__(wrap(bits), **options)
    dtype_field(capsule).code = _CODES[dtype]
    return capsule


def _capsule(x: Any, number: int) -> Any:
    """The capsule of an object on a CUDA device; what computes x comes before our use of it."""
    stream = _runtime.cuda_stream(number)
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # a library from before DLPack 1.0
        return x.__dlpack__(stream=stream)


def _copied(x: Array) -> Array:
    """The same values in memory of their own."""
    return _runtime.place_array(wrap(np.asarray(x, x.dtype), x.weak_type), place_of(x.device))


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
