"""Changing the dtype: by value, or by reading the bits anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import DTypeError
from functrans.core.primitive import Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.base import sample_array
from functrans.primitives.broadcast import move_axis

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["bitcast_convert_type", "bitcast_convert_type_p", "convert_element_type",
           "convert_element_type_p"]


class ConvertElementType(Primitive):
    """x converted to `new_dtype`; floats to integers drop the fraction and saturate."""

    widens_halves = False

    def type(self, x: ShapedArray, *, new_dtype: np.dtype[Any],
             weak_type: bool = False) -> ShapedArray:
        if x.dtype != new_dtype and not dtypes.KEY_DTYPES.isdisjoint((x.dtype, new_dtype)):
            raise DTypeError(f"convert_element_type: {x} does not convert to {new_dtype}.",
                             where=user_source(), why="random keys are no numbers.",
                             fix="ft.random.key_data(key), ft.random.wrap_key_data(words)")
        return ShapedArray(x.shape, new_dtype, weak_type)

    def evaluate(self, x: Any, *, new_dtype: np.dtype[Any],
                 weak_type: bool = False) -> Any:
        x = np.asarray(x)
        if x.dtype == dtypes.complex32:  # without loss
            x = x.astype(np.complex64)
        elif new_dtype == dtypes.complex32 and x.dtype.isbuiltin != 1:  # of ml_dtypes
            x = x.astype(np.float32)
        if new_dtype.isbuiltin != 1 and x.dtype in (np.float64, np.complex128) \
                and dtypes.kind(new_dtype) in "fc":
            x = _odd_float32(x)
        source, target = dtypes.kind(x.dtype), dtypes.kind(new_dtype)
        if "k" in (source, target):
            self.type(get_aval(x), new_dtype=new_dtype)
        if source == "c" and target != "c":
            x = x.real if target != "b" else x != 0
        if source in "fc" and target in "iu":
            return _saturate(x, new_dtype)
        return x.astype(new_dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, new_dtype: np.dtype[Any],
            weak_type: bool = False) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, new_dtype=new_dtype, weak_type=weak_type)
        if dtypes.kind(new_dtype) not in "fc":
            return out, None
        return out, convert_element_type(t, new_dtype)

    def transpose(self, ct: Any, x: Linear, *, new_dtype: np.dtype[Any],
                  weak_type: bool = False) -> tuple[Any]:
        return (convert_element_type(ct, x.aval.dtype),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(operands[0], **params), axes[0]

    def samples(self) -> Iterator[Sample]:
        x = sample_array(3, 2)
        for name in ("float64", "int32", "bool", "bfloat16", "complex64"):
            yield Sample((x,), {"new_dtype": dtypes.as_dtype(name)})
        yield Sample((np.array([1e20, -1e20, np.nan, 3.7], np.float32),),
                     {"new_dtype": np.dtype(np.int32)})


def _odd_float32(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """To float32 with a last bit of 1 where that is not exact (`primitives/rounding.py`): ml_dtypes
    rounds to float32 first."""
    parts = np.ascontiguousarray(x).view(np.float64)
    near = parts.astype(np.float32)
    bits = near.view(np.int32)
    again = near.astype(np.float64)
    bits -= np.abs(again) > np.abs(parts)
    bits |= again != parts
    return near.view(np.float32 if x.dtype == np.float64 else np.complex64).reshape(x.shape)


def _saturate(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Float to integer without undefined results: out of range to the nearest, NaN to 0."""
    info = dtypes.iinfo(dtype)
    wide = np.trunc(x.astype(np.float64))
    low, high = float(info.min), float(info.max)
    inside = np.where(np.isnan(wide), 0.0, np.clip(wide, low, high))
    top = wide >= high  # float(info.max) of 64 bits rounds up, out of range
    result = np.where(top, 0.0, inside).astype(dtype)
    return np.where(top, np.asarray(info.max, dtype), result)


class BitcastConvertType(Primitive):
    """The bits of x read as `new_dtype`; a width ratio adds or takes away a last axis."""

    widens_halves = False
    stops_derivatives = True

    def type(self, x: ShapedArray, *, new_dtype: np.dtype[Any]) -> ShapedArray:
        old, new = x.dtype.itemsize, new_dtype.itemsize
        if old == new:
            return ShapedArray(x.shape, new_dtype)
        if old > new:
            return ShapedArray((*x.shape, old // new), new_dtype)
        if not x.shape or x.shape[-1] != new // old:
            raise DTypeError(f"bitcast_convert_type: {x} to {new_dtype} needs a last axis of size "
                             f"{new // old}.", where=user_source(),
                             why=f"{new} bytes are made of {new // old} elements of {old} bytes.")
        return ShapedArray(x.shape[:-1], new_dtype)

    def evaluate(self, x: Any, *, new_dtype: np.dtype[Any]) -> Any:
        x = np.asarray(x, order="C")  # np.ascontiguousarray would give scalars an axis
        old, new = x.dtype.itemsize, new_dtype.itemsize
        if old < new:
            return x.view(new_dtype)[..., 0]
        shape = x.shape + ((old // new,) if old > new else ())
        return x.reshape(-1).view(new_dtype).reshape(shape)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        x = move_axis(operands[0], axes[0] or 0, 0)
        aval = get_aval(x)
        self.type(aval.with_shape(aval.shape[1:]), **params)  # the mapped axis is not the last one
        return self.bind(x, **params), 0

    def samples(self) -> Iterator[Sample]:
        x = sample_array(3, 2)
        for name in ("int32", "uint8", "float64"):
            yield Sample((x,), {"new_dtype": np.dtype(name)})
        yield Sample((x[0, 0],), {"new_dtype": np.dtype(np.int32)})


convert_element_type_p = ConvertElementType()
bitcast_convert_type_p = BitcastConvertType()


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike, weak_type: bool = False
                         ) -> Array:
    """The operand converted to `new_dtype`; the operand itself when it has it.

    Raises DTypeError when `new_dtype` names no dtype.

    >>> import functrans as ft
    >>> int(ft.lax.convert_element_type(2.7, "int32"))
    2
    """
    dtype = dtypes.as_dtype(new_dtype)
    aval = get_aval(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type and hasattr(operand, "aval"):
        return operand  # type: ignore[return-value]  # what has an aval is an Array
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the operand read as `new_dtype`.

    Raises DTypeError when the widths do not fit the last axis.

    >>> import functrans as ft
    >>> int(ft.lax.bitcast_convert_type(ft.numpy.float32(1.0), "int32")) == 0x3F800000
    True
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=dtypes.as_dtype(new_dtype))
