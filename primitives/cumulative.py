"""Running sums, products, extrema and log-sums of exponentials along one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.primitives.arithmetic import add, div, max, mul, sub
from functrans.primitives.base import sample_array
from functrans.primitives.compare import eq, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import pad, slice_in_dim
from functrans.primitives.transcendental import exp

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

__all__ = ["cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin", "cummin_p", "cumprod",
           "cumprod_p", "cumsum", "cumsum_p", "linear_recurrence"]


class Cumulative(Primitive, abstract=True):
    """Folds x along `axis` and keeps every intermediate result; from the end when `reverse`."""

    ufunc: ClassVar[np.ufunc]
    kinds: ClassVar[str] = "iufc"
    sample_values: ClassVar[tuple[np.ndarray[Any, Any], ...]] = ()

    def type(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        if dtypes.kind(x.dtype) not in self.kinds:
            raise DTypeError(f"{self.name} does not take {x.dtype}.", where=user_source(),
                             fix='x.astype("int32")' if dtypes.kind(x.dtype) == "b" else "")
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{self.name}: {x} has no axis {axis}.", where=user_source())
        return x.strong()

    def evaluate(self, x: Any, *, axis: int, reverse: bool) -> np.ndarray[Any, Any]:
        x = np.asarray(x)
        ufunc = type(self).ufunc
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)
        return ufunc.accumulate(x, axis, dtype=x.dtype)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: int,
              reverse: bool) -> tuple[Any, int | None]:
        at = axes[0] or 0
        return self.bind(operands[0], axis=axis + (axis >= at), reverse=reverse), at

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes + x.nbytes)

    def samples(self) -> Iterator[Sample]:
        x = sample_array(3, 4)
        yield Sample((x,), {"axis": 0, "reverse": False})
        yield Sample((x,), {"axis": 1, "reverse": True})
        yield Sample((sample_array(1),), {"axis": 0, "reverse": False})
        yield Sample((sample_array(2, 0),), {"axis": 1, "reverse": False})
        for value in self.sample_values:
            yield Sample((value,), {"axis": 0, "reverse": False})


class Cumsum(Cumulative):
    """The sums of all elements up to each one."""

    ufunc = np.add

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Linear, *, axis: int, reverse: bool) -> tuple[Any]:
        return (cumsum(ct, axis, not reverse),)


class Cumprod(Cumulative):
    """The products of all elements up to each one."""

    ufunc = np.multiply
    sample_values = (np.array([2.0, 0.0, 3.0, 0.0, 1.0], np.float32),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int,
            reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        # y_i = x_i y_(i-1) differentiates to y'_i = x_i y'_(i-1) + t_i y_(i-1): never divides
        before = _shift(out, 1, axis, reverse, 1)
        return out, linear_recurrence(x, mul(t, before), axis, reverse)


class CumulativeExtremum(Cumulative, abstract=True):
    """The largest or smallest of all elements up to each one; those that tie share the derivative.

    """

    kinds = "biuf"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int,
            reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        chosen = convert_element_type(eq(x, out), x.dtype)
        # a new extremum forgets the tangents of the elements before it
        same = convert_element_type(eq(out, _shift(out, 1, axis, reverse, 0)), x.dtype)
        total = linear_recurrence(same, mul(t, chosen), axis, reverse)
        return out, div(total, max(linear_recurrence(same, chosen, axis, reverse), 1.0))


class Cummax(CumulativeExtremum):
    """The largest of all elements up to each one; NaN from the first NaN on."""

    ufunc = np.maximum


class Cummin(CumulativeExtremum):
    """The smallest of all elements up to each one; NaN from the first NaN on."""

    ufunc = np.minimum


class Cumlogsumexp(Cumulative):
    """The logarithms of the sums of exp of all elements up to each one, without overflow."""

    ufunc = np.logaddexp
    kinds = "f"
    sample_values = (np.array([-80.0, 1.0, 90.0, -100.0, 90.0], np.float32),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int,
            reverse: bool) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        # weights exp(y_(i-1) - y_i) and exp(x_i - y_i) are at most 1; of nothing but -inf, 0
        finite = where(eq(out, -np.inf), 0.0, out)
        decay = exp(sub(_shift(out, 1, axis, reverse, -np.inf), finite))
        return out, linear_recurrence(decay, mul(t, exp(sub(x, finite))), axis, reverse)


def _shift(x: Any, step: int, axis: int, reverse: bool, fill: float) -> Any:
    """x moved by `step` places along an axis, away from where it starts; `fill` moves in."""
    n = x.shape[axis]
    config = [(0, 0, 0)] * x.ndim
    if reverse:
        kept = slice_in_dim(x, min(step, n), n, axis=axis)
        config[axis] = (0, min(step, n), 0)
    else:
        kept = slice_in_dim(x, 0, n - min(step, n), axis=axis)
        config[axis] = (min(step, n), 0, 0)
    return pad(kept, np.asarray(fill, get_aval(x).dtype), config)


def linear_recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """y_i = a_i y_(i-1) + b_i along an axis, y_(-1) = 0, by doubling: log2(n) passes.

    Hillis & Steele, Data parallel algorithms (1986); linear in b.
    """
    n = get_aval(a).shape[axis]
    step = 1
    while step < n:
        b = add(b, mul(_shift(b, step, axis, reverse, 0), a))
        if 2 * step < n:
            a = mul(a, _shift(a, step, axis, reverse, 1))
        step *= 2
    return b


cumsum_p, cumprod_p, cummax_p, cummin_p = Cumsum(), Cumprod(), Cummax(), Cummin()
cumlogsumexp_p = Cumlogsumexp()


def _cumulate(primitive: Cumulative, x: ArrayLike, axis: int, reverse: bool) -> Array:
    aval = get_aval(x)
    if not -aval.ndim <= axis < aval.ndim:
        raise ShapeError(f"{primitive.name}: {aval} has no axis {axis}.", where=user_source())
    return primitive.bind(x, axis=axis % aval.ndim, reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of all elements up to each one along `axis`; from the end when `reverse`.

    Raises ShapeError when there is no such axis, DTypeError for booleans.

    >>> import functrans as ft
    >>> ft.lax.cumsum(ft.numpy.arange(4)).tolist()
    [0, 1, 3, 6]
    """
    return _cumulate(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The products of all elements up to each one along `axis`; from the end when `reverse`.

    Its derivative is right where elements are zero.

    >>> import functrans as ft
    >>> ft.lax.cumprod(ft.numpy.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumulate(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The largest of all elements up to each one along `axis`; from the end when `reverse`.

    >>> import functrans as ft
    >>> ft.lax.cummax(ft.numpy.array([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    return _cumulate(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of all elements up to each one along `axis`; from the end when `reverse`.

    >>> import functrans as ft
    >>> ft.lax.cummin(ft.numpy.array([3, 1, 2])).tolist()
    [3, 1, 1]
    """
    return _cumulate(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """log of the sum of exp of all elements up to each one along `axis`, without overflow.

    >>> import functrans as ft
    >>> ft.lax.cumlogsumexp(ft.numpy.array([1000.0, 0.0])).tolist()
    [1000.0, 1000.0]
    """
    return _cumulate(cumlogsumexp_p, operand, axis, reverse)
