"""Reductions other than the sum, and argmax and argmin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import div, mul
from functrans.primitives.base import sample_array
from functrans.primitives.broadcast import (
    batch_reduction,
    broadcast_in_dim,
    reduce_sum,
    reduce_sum_p,
    reduced_type,
    transpose,
)
from functrans.primitives.compare import eq
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import concatenate, reshape, rev, slice_in_dim

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, DTypeLike

__all__ = ["argmax", "argmax_p", "argmin", "argmin_p", "reduce_and", "reduce_and_p", "reduce_max",
           "reduce_max_p", "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_prod",
           "reduce_prod_p", "reduce_sum", "reduce_sum_p", "reduce_xor", "reduce_xor_p"]


class Reduction(Primitive, abstract=True):
    """Folds x over `axes` with a ufunc."""

    ufunc: ClassVar[np.ufunc]
    kinds: ClassVar[str] = "biuf"

    def type(self, x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        if dtypes.kind(x.dtype) not in self.kinds:
            raise DTypeError(f"{self.name} does not take {x.dtype}.", where=user_source())
        return reduced_type(self.name, x, axes)

    def evaluate(self, x: Any, *, axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
        x = np.asarray(x)
        return np.asarray(self.ufunc.reduce(x, axes, **self.start(x))).astype(x.dtype, copy=False)

    def start(self, x: np.ndarray[Any, Any]) -> dict[str, Any]:
        """What the fold starts from, where NumPy has no value for an empty axis."""
        return {}

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], /,
              **params: Any) -> Any:
        return batch_reduction(self, operands[0], axes[0], **params)

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes + self.type(x, **params).nbytes)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 4),), {"axes": (0,)})
        yield Sample((sample_array(2, 3, 4),), {"axes": (0, 2)})


class Extremum(Reduction, abstract=True):
    """Largest or smallest element; elements that tie share the derivative.

    Complex numbers are ordered by their real and then by their imaginary parts.
    """

    kinds = "biufc"

    def evaluate(self, x: Any, *, axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
        out = super().evaluate(x, axes=axes)
        if out.dtype.kind == "c":
            out = np.where(np.isnan(out), out.dtype.type(complex(np.nan, np.nan)), out)
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *,
            axes: tuple[int, ...]) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        kept = tuple(d for d in range(x.ndim) if d not in axes)
        chosen = convert_element_type(eq(x, broadcast_in_dim(out, x.shape, kept)), x.dtype)
        return out, div(reduce_sum(mul(t, chosen), axes), reduce_sum(chosen, axes))


class ReduceMax(Extremum):
    """The largest element of x over `axes`, NaN if there is one; -inf over none."""

    ufunc = np.maximum

    def start(self, x: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"initial": _lowest(x.dtype)}


class ReduceMin(Extremum):
    """The smallest element of x over `axes`, NaN if there is one; inf over none."""

    ufunc = np.minimum

    def start(self, x: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"initial": _highest(x.dtype)}


class ReduceProd(Reduction):
    """The product of the elements of x over `axes`."""

    ufunc = np.multiply
    kinds = "biufc"

    def evaluate(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        return np.multiply.reduce(x, axes, dtype=x.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *,
            axes: tuple[int, ...]) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        return out, reduce_sum(mul(t, _product_of_others(x, axes)), axes)


class ReduceAnd(Reduction):
    """Whether all elements over `axes` are true; for integers, the bits set in all."""

    ufunc = np.bitwise_and
    kinds = "biu"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), None

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 4) > 0,), {"axes": (0,)})
        yield Sample((sample_array(3, 4, high=9).astype(np.int32),), {"axes": (0, 1)})


class ReduceOr(Reduction):
    """Whether any element over `axes` is true; for integers, the bits set in any."""

    ufunc = np.bitwise_or
    kinds = "biu"
    jvp = ReduceAnd.jvp
    samples = ReduceAnd.samples


class ReduceXor(Reduction):
    """Whether an odd number of elements over `axes` is true; for integers, bit by bit."""

    ufunc = np.bitwise_xor
    kinds = "biu"
    jvp = ReduceAnd.jvp
    samples = ReduceAnd.samples


class ArgExtremum(Primitive, abstract=True):
    """The first index along one axis of the largest or smallest element; NaN counts as either."""

    find: ClassVar[Any]

    def type(self, x: ShapedArray, *, axes: tuple[int, ...],
             index_dtype: np.dtype[Any]) -> ShapedArray:
        if len(axes) != 1:
            raise ShapeError(f"{self.name} takes one axis, got {axes}.", where=user_source())
        if dtypes.kind(x.dtype) == "c":
            raise DTypeError(f"{self.name}: complex numbers have no order.", where=user_source())
        out = reduced_type(self.name, x, axes)
        if x.shape[axes[0]] == 0:
            raise ShapeError(f"{self.name} of an empty axis: {x} along axis {axes[0]}.",
                             where=user_source(), why="there is no element to point at.")
        return ShapedArray(out.shape, index_dtype)

    def evaluate(self, x: Any, *, axes: tuple[int, ...],
                 index_dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return np.asarray(type(self).find(np.asarray(x), axes[0])).astype(index_dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], /,
              **params: Any) -> Any:
        mapped = params.pop("axes")
        return batch_reduction(self, operands[0], axes[0], axes=mapped, **params)

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 4),), {"axes": (1,), "index_dtype": np.dtype(np.int32)})


class Argmax(ArgExtremum):
    """The first index along an axis of the largest element."""

    find = staticmethod(np.argmax)


class Argmin(ArgExtremum):
    """The first index along an axis of the smallest element."""

    find = staticmethod(np.argmin)


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtypes.kind(dtype) == "c":
        return complex(-np.inf, -np.inf)
    if dtypes.kind(dtype) == "f":
        return -np.inf
    return False if dtype == np.bool_ else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    if dtypes.kind(dtype) == "c":
        return complex(np.inf, np.inf)
    if dtypes.kind(dtype) == "f":
        return np.inf
    return True if dtype == np.bool_ else np.iinfo(dtype).max


def _product_of_others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element, the product of the others over `axes`: right where elements are zero."""
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    ordered = x.ndim - len(axes)
    moved = transpose(x, kept + axes)
    flat = reshape(moved, (*moved.shape[:ordered], -1 if moved.size else 0))
    others = mul(_exclusive_product(flat), rev(_exclusive_product(rev(flat, (ordered,))),
                                               (ordered,)))
    inverse = sorted(range(x.ndim), key=(kept + axes).__getitem__)
    return transpose(reshape(others, moved.shape), tuple(inverse))


def _exclusive_product(x: Any) -> Any:
    """Products of all earlier elements along the last axis, by doubling (log n multiplications)."""
    axis, n = x.ndim - 1, x.shape[-1]
    one = broadcast_in_dim(np.ones((), x.dtype), (*x.shape[:-1], 1), ())
    acc = concatenate([one, slice_in_dim(x, 0, max(n - 1, 0), axis=axis)], axis) if n else x
    step = 1
    while step < n:
        head = broadcast_in_dim(np.ones((), x.dtype), (*x.shape[:-1], step), ())
        acc = mul(acc, concatenate([head, slice_in_dim(acc, 0, n - step, axis=axis)], axis))
        step *= 2
    return acc


reduce_max_p, reduce_min_p, reduce_prod_p = ReduceMax(), ReduceMin(), ReduceProd()
reduce_and_p, reduce_or_p, reduce_xor_p = ReduceAnd(), ReduceOr(), ReduceXor()
argmax_p, argmin_p = Argmax(), Argmin()


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The largest element of the operand over non-negative `axes`.

    >>> import functrans as ft
    >>> ft.lax.reduce_max(ft.numpy.array([[1.0, 5.0], [3.0, 2.0]]), (0,)).tolist()
    [3.0, 5.0]
    """
    return reduce_max_p.bind(operand, axes=tuple(axes))


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest element of the operand over non-negative `axes`.

    >>> lax.reduce_min(jnp.array([[3, 1], [2, 5]]), (0,))
    Array([2, 1], dtype=int32)
    """
    return reduce_min_p.bind(operand, axes=tuple(axes))


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product of the elements of the operand over non-negative `axes`.

    >>> lax.reduce_prod(jnp.array([[3, 1], [2, 5]]), (0,))
    Array([6, 5], dtype=int32)
    """
    return reduce_prod_p.bind(operand, axes=tuple(axes))


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether all elements are true over non-negative `axes` (bitwise for integers).

    >>> lax.reduce_and(jnp.array([[True, False], [True, True]]), (1,))
    Array([False,  True], dtype=bool)
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether any element is true over non-negative `axes` (bitwise for integers).

    >>> lax.reduce_or(jnp.array([[True, False], [False, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The parity over non-negative `axes` (bitwise for integers).

    >>> lax.reduce_xor(jnp.array([[True, True], [True, False]]), (1,))
    Array([False,  True], dtype=bool)
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike | None = None) -> Array:
    """The first index of the largest element along `axis`; int32 where that has enough numbers.

    >>> lax.argmax(jnp.array([[1, 5], [7, 2]]), axis=1, index_dtype="int32")
    Array([1, 0], dtype=int32)
    """
    return argmax_p.bind(operand, axes=(axis,),
                        index_dtype=_position_dtype(operand, axis, index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike | None = None) -> Array:
    """The first index of the smallest element along `axis`; int32 where that has enough numbers.

    >>> lax.argmin(jnp.array([[1, 5], [7, 2]]), axis=1, index_dtype="int32")
    Array([0, 1], dtype=int32)
    """
    return argmin_p.bind(operand, axes=(axis,),
                        index_dtype=_position_dtype(operand, axis, index_dtype))


def _position_dtype(x: Any, axis: int, given: Any) -> np.dtype[Any]:
    if given is not None:
        wanted: np.dtype[Any] = np.dtype(given)
        return wanted
    shape = get_aval(x).shape
    return dtypes.position_dtype(shape[axis] if -len(shape) <= axis < len(shape) else 1)
