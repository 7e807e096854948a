"""What samplers share: dtypes, shapes, and the way from random bits to uniform floats."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import shape_tuple
from functrans.random.generators import Pair
from functrans.random.keys import is_key, swapped
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike

Bound: TypeAlias = float | Array
"""A Python float or an array."""

_KIND_NAMES = {"f": "floating", "fc": "floating or complex", "iu": "integer", "u": "unsigned"}


def sample_dtype(name: str, dtype: DTypeLike | None, kinds: str, default: dtypes.DType
                 ) -> dtypes.DType:
    """The dtype asked for, or the default; raises DTypeError if it is of another kind."""
    chosen = default if dtype is None else dtypes.as_dtype(dtype)
    if dtypes.kind(chosen) not in kinds:
        raise DTypeError(
            f"ft.random.{name} samples {_KIND_NAMES[kinds]} dtypes, not {chosen}.",
            where=user_source(),
            fix=f"ft.random.{name}(..., dtype=None)",
        )
    return chosen


def float_dtype(name: str, dtype: DTypeLike | None) -> dtypes.DType:
    """The floating dtype asked for, or the default one."""
    return sample_dtype(name, dtype, "f", dtypes.default_float())


def int_dtype(name: str, dtype: DTypeLike | None) -> dtypes.DType:
    """The integer dtype asked for, or the default one."""
    return sample_dtype(name, dtype, "iu", dtypes.default_int())


def sample_shape(name: str, shape: ShapeLike | None, *params: Any) -> tuple[Any, ...]:
    """The shape asked for, to which the parameters must broadcast; None means their own shape.

    Raises ShapeError where they do not.
    """
    if is_key(shape):
        raise swapped(name, "shape")
    given = [tuple(p.shape) for p in params if not isinstance(p, (int, float)) and p.shape]
    if shape is not None:
        shape = shape_tuple(shape, name, "ft.random")
    if not given:
        return shape or ()
    try:
        common = tuple(ftnp.broadcast_shapes(*given, *([] if shape is None else [shape])))
    except ValueError:
        common = None
    if common is None or (shape is not None and common != shape):
        wanted = "each other" if shape is None else f"the sample shape {shape}"
        raise ShapeError(
            f"ft.random.{name}: parameters of shape {', '.join(map(str, given))} do not "
            f"broadcast to {wanted}.",
            where=user_source(),
            why="every sample has its own element of each parameter.",
            fix=f"ft.random.{name}(..., shape=(10, *parameter.shape))",
        )
    return common


def parameter(x: ArrayLike, dtype: dtypes.DType, shape: tuple[Any, ...] | None = None) -> Array:
    """A parameter of a distribution in the dtype of the samples, and broadcast to `shape`."""
    x = lax.convert_element_type(ftnp.asarray(x), dtype)
    return x if shape is None or tuple(x.shape) == shape else ftnp.broadcast_to(x, shape)


def rounded(x: Any, dtype: dtypes.DType) -> float:
    """A number as the Python float that is its value in `dtype`."""
    return float(np.asarray(x).astype(dtype))


def unit_uniform(key: Pair, shape: tuple[Any, ...], dtype: dtypes.DType) -> Array:
    """Uniform floats in [0, 1): random mantissa bits under the exponent of 1, less 1."""
    drawn, shift, unsigned, exponent_of_one = _layout(dtype)
    bits = key.bits(drawn, shape)
    if unsigned.itemsize * 8 != drawn:
        bits = lax.convert_element_type(bits, unsigned)
    return lax.bitcast_convert_type((bits >> shift) | exponent_of_one, dtype) - 1.0


@lru_cache(maxsize=16)
def _layout(dtype: dtypes.DType) -> tuple[int, int, dtypes.DType, int]:
    """Bits to draw for the mantissa, how many are too many, the integer dtype, the bits of 1."""
    info = dtypes.finfo(dtype)
    drawn = 8 if info.nmant < 8 else int(info.bits)
    unsigned = np.dtype(f"uint{info.bits}")
    return drawn, drawn - int(info.nmant), unsigned, int(np.ones((), dtype).view(unsigned))


def scaled_uniform(key: Pair, shape: tuple[Any, ...], dtype: dtypes.DType, low: Bound,
                   high: Bound) -> Array:
    """Uniform floats in [low, high): floats that are exact in `dtype`, or arrays of it."""
    unit = unit_uniform(key, shape, dtype)
    if not (isinstance(low, float) and isinstance(high, float)):
        span: float | Array = high - low
        exact = False
    else:
        if low == 0.0 and high == 1.0:
            return unit
        span = rounded(np.asarray(high).astype(dtype) - np.asarray(low).astype(dtype), dtype)
        exact = low == 0.0 or math.frexp(span)[0] == 0.5
    if exact and low <= high:  # no sum is below `low`
        return unit * span + low
    if exact or dtype != np.float32:
        return ftnp.maximum(unit * span + low, low)
    # One rounding, as a fused multiply-add makes it (and jax.random, which is compiled to one).
    wide = np.dtype(np.float64)
    drawn, scale, offset = (
        x if isinstance(x, float) else lax.convert_element_type(x, wide) for x in (unit, span, low)
    )
    return ftnp.maximum(lax.convert_element_type(drawn * scale + offset, dtype), low)
