"""What all families share: errors, samples, and the primitives that make arrays of nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans._runtime import ArrayBase, wrap
from functrans.core.avals import ShapedArray
from functrans.core.dtypes import KEY_DTYPES, complex32
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["Constant", "LinearPrimitive", "constant_p", "full", "full_p",
           "sample_array", "shapes_differ", "zeros"]

class LinearPrimitive(Primitive, abstract=True):
    """A primitive of one operand that is linear in it: its own derivative."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), self.bind(t, **params)


def shapes_differ(name: str, avals: Sequence[ShapedArray], why: str) -> ShapeError:
    """The error for operands that do not fit together."""
    shapes = " and ".join(str(a) for a in avals)
    return ShapeError(f"{name} cannot combine operands of types {shapes}.", where=user_source(),
                      why=why, fix="reshape or broadcast one of them: x.reshape(...), "
                                   "functrans.numpy.broadcast_to(x, shape)")


class Constant:
    """An array as a static parameter: compared by identity, printed by its type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        # who reads a constant asks for a NumPy array: keys do not convert, complex32 to complex64
        self.value = value._np if isinstance(value, ArrayBase) and (
            value.dtype in KEY_DTYPES or value.dtype == complex32) else value

    def __repr__(self) -> str:
        return f"<{self.value.dtype}{list(self.value.shape)}>"


class ConstantPrimitive(Primitive):
    """An array that a rule closed over."""

    name = "constant"
    widens_halves = False
    is_quiet = True

    def type(self, *, value: Constant) -> ShapedArray:
        return ShapedArray(tuple(value.value.shape), value.value.dtype)

    def evaluate(self, *, value: Constant) -> np.ndarray[Any, Any]:
        return np.asarray(value.value)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(**params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(**params), None

    def samples(self) -> Iterator[Sample]:
        yield Sample((), {"value": Constant(sample_array(3))})


class Full(Primitive):
    """An array of one repeated value."""

    creates = True
    widens_halves = False
    is_quiet = True

    def type(self, *, shape: tuple[Any, ...], dtype: np.dtype[Any], value: Any) -> ShapedArray:
        if dtype in KEY_DTYPES and value != 0:
            raise DTypeError(f"full: {value!r} is no random key.", where=user_source(),
                             fix="functrans.numpy.full(shape, key)")
        return ShapedArray(shape, dtype)

    def evaluate(self, *, shape: tuple[Any, ...], dtype: np.dtype[Any],
                 value: Any) -> np.ndarray[Any, Any]:
        if dtype in KEY_DTYPES:  # no number converts to a key: 0 stands for the words (0, 0)
            self.type(shape=shape, dtype=dtype, value=value)
            return np.zeros(shape, dtype)
        return np.full(shape, value, dtype)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        value = params["value"]
        if params["shape"] == () and value.__class__ in (int, float) \
                and not (value == 0 and str(value)[0] == "-"):  # -0.0 has the key of 0.0
            return _scalar(value.__class__ is int, value, params["dtype"])
        return super().evaluate_eagerly(args, params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(**params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(**params), None

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        return Cost(0, self.type(**params).nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((), {"shape": (2, 3), "dtype": np.dtype(np.float32), "value": 1.5})


@lru_cache(maxsize=256)
def _scalar(is_int: bool, value: Any, dtype: np.dtype[Any]) -> Any:
    """The array of one scalar, made once: gradients start from 1, accumulators from 0."""
    return wrap(np.asarray(value, dtype))


constant_p = ConstantPrimitive()
full_p = Full()


def full(shape: Sequence[Any], value: Any, dtype: Any) -> Array:
    """An array of `shape` and `dtype` filled with a Python scalar."""
    return full_p.bind(shape=tuple(shape), dtype=np.dtype(dtype), value=value)


def zeros(aval: ShapedArray) -> Array:
    """Zeros of a type."""
    return full_p.bind(shape=aval.shape, dtype=aval.dtype, value=0)


def sample_array(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0,
                 dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Reproducible numbers for samples, uniform in [low, high)."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(dtype)
