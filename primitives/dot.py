"""dot_general: the one contraction, of which every product of arrays is made."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functrans import _runtime
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval, rank
from functrans.core.dims import Size
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives.base import sample_array
from functrans.primitives.broadcast import prod, transpose
from functrans.primitives.convert import convert_element_type
from functrans.primitives.differentiable import Differentiable, linear
from functrans.primitives.precision import Precision, precision_params

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike, DotDimensionNumbers, DTypeLike, PrecisionLike

__all__ = ["dot_general", "dot_general_p"]

Axes = tuple[int, ...]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


def _is_rounded(dtype: np.dtype[Any]) -> bool:
    """Whether products of a dtype are computed in a wider one."""
    return dtypes.computed_dtype(dtype) != dtype


class DotGeneral(Differentiable):
    """Sum of products of x and y over contracting axes, for each index of the batch axes.

    The result has the batch axes, then the other axes of x, then those of y.
    """

    derivatives = (linear, linear)

    def type(self, x: ShapedArray, y: ShapedArray, *, dimension_numbers: DimensionNumbers,
             preferred_element_type: np.dtype[Any] | None = None,
             precision: Precision | None = None) -> ShapedArray:
        (cx, cy), (bx, by) = dimension_numbers
        if len(cx) != len(cy) or len(bx) != len(by):
            raise ShapeError(f"dot_general: {dimension_numbers} pairs different numbers of axes.",
                             where=user_source())
        for name, axes, aval in (("first", cx + bx, x), ("second", cy + by, y)):
            if not _are_distinct(aval.ndim, axes):
                raise ShapeError(f"dot_general: {axes} are not distinct axes of the {name} operand "
                                 f"{aval}.", where=user_source())
        for role, first, second in (("contracted", cx, cy), ("batch", bx, by)):
            for i, j in zip(first, second, strict=True):
                if x.shape[i] != y.shape[j]:
                    raise ShapeError(
                        f"the product of {x} and {y} does not fit: {role} axis {i} of the first "
                        f"has size {x.shape[i]}, axis {j} of the second {y.shape[j]}.",
                        where=user_source(),
                        fix="transpose or reshape one of them, for example x @ y.T")
        if x.dtype != y.dtype:
            raise DTypeError(f"dot_general needs operands of one dtype, got {x} and {y}.",
                             where=user_source(), fix=f"y.astype({x.dtype.name!r})")
        shape = (*[x.shape[i] for i in bx + _others(x.ndim, cx + bx)],
                 *[y.shape[i] for i in _others(y.ndim, cy + by)])
        dtype = x.dtype if preferred_element_type is None else preferred_element_type
        return ShapedArray(shape, dtype, x.weak_type and y.weak_type)

    def evaluate(self, x: Any, y: Any, *, dimension_numbers: DimensionNumbers,
                 preferred_element_type: np.dtype[Any] | None = None,
                 precision: Precision | None = None) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        if preferred_element_type is not None and preferred_element_type != x.dtype \
                and not _is_rounded(preferred_element_type):
            x, y = x.astype(preferred_element_type), y.astype(preferred_element_type)
        (cx, cy), (bx, by) = dimension_numbers
        if not bx and x.ndim == y.ndim == 2 and len(cx) == 1:  # the common case, kept short
            return np.matmul(x.T if cx[0] == 0 else x, y.T if cy[0] == 1 else y)
        fx = tuple(d for d in range(x.ndim) if d not in cx + bx)
        fy = tuple(d for d in range(y.ndim) if d not in cy + by)
        batch = tuple(x.shape[i] for i in bx)
        rows, cols = tuple(x.shape[d] for d in fx), tuple(y.shape[d] for d in fy)
        inner = math.prod([x.shape[d] for d in cx])
        a = x.transpose(bx + fx + cx).reshape((*batch, math.prod(rows), inner))
        b = y.transpose(by + cy + fy).reshape((*batch, inner, math.prod(cols)))
        out = np.matmul(a, b) if cx else a * b
        return out.reshape(batch + rows + cols)

    def run(self, *arrays: Any, **params: Any) -> Any:
        preferred = params.get("preferred_element_type")
        if preferred is None or _is_rounded(preferred):
            return super().run(*arrays, **params)
        with np.errstate(all="ignore"):  # the result has that dtype, not the operands' one
            return self.evaluate(*arrays, **params)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if params.get("preferred_element_type") is None:
            x, y = args
            result = _product_of_views(x, y, params["dimension_numbers"])
            if result is not NotImplemented:
                return result
        if get_aval(args[0]).dtype != get_aval(args[1]).dtype:
            self.type(*map(get_aval, args), **params)  # NumPy would promote
        return super().evaluate_eagerly(args, params)

    def transpose(self, ct: Any, x: Any, y: Any, *, dimension_numbers: DimensionNumbers,
                  preferred_element_type: np.dtype[Any] | None = None,
                  precision: Precision | None = None) -> tuple[Any, Any]:
        if isinstance(x, Linear):
            return _transpose_left(ct, x.aval, y, dimension_numbers, precision), None
        return None, _transpose_right(ct, x, y.aval, dimension_numbers, precision)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *,
              dimension_numbers: DimensionNumbers, **params: Any) -> tuple[Any, int]:
        (x, y), (ax, ay) = operands, axes
        (cx, cy), (bx, by) = dimension_numbers
        if ax is not None and ay is not None:
            dims = ((_shift(cx, ax), _shift(cy, ay)),
                    ((ax, *_shift(bx, ax)), (ay, *_shift(by, ay))))
            return self.bind(x, y, dimension_numbers=dims, **params), 0
        nb = len(bx)
        if ax is not None:
            dims = ((_shift(cx, ax), cy), (_shift(bx, ax), by))
            free = [d for d in range(x.ndim) if d not in dims[0][0] + dims[1][0]]
            return self.bind(x, y, dimension_numbers=dims, **params), nb + free.index(ax)
        assert ay is not None
        dims = ((cx, _shift(cy, ay)), (bx, _shift(by, ay)))
        free = [d for d in range(y.ndim) if d not in dims[0][1] + dims[1][1]]
        free_x = get_aval(x).ndim - len(cx) - nb
        return self.bind(x, y, dimension_numbers=dims, **params), nb + free_x + free.index(ay)

    def cost(self, x: ShapedArray, y: ShapedArray, *, dimension_numbers: DimensionNumbers,
             **params: Any) -> Cost:
        out = self.type(x, y, dimension_numbers=dimension_numbers, **params)
        inner: Size = prod([x.shape[d] for d in dimension_numbers[0][0]])
        return Cost(2 * out.size * inner, x.nbytes + y.nbytes + out.nbytes)

    def samples(self) -> Iterator[Sample]:
        x, y = sample_array(3, 4), sample_array(4, 2, seed=1)
        yield Sample((x, y), {"dimension_numbers": (((1,), (0,)), ((), ()))})
        yield Sample((x, y.T.copy()), {"dimension_numbers": (((1,), (1,)), ((), ()))})
        yield Sample((sample_array(2, 3, 4), sample_array(5, 2, 4, seed=1)),
                     {"dimension_numbers": (((2,), (2,)), ((0,), (1,)))})
        yield Sample((sample_array(2), sample_array(3, seed=1)),
                     {"dimension_numbers": (((), ()), ((), ()))})
        yield Sample((sample_array(4, 2, 3), sample_array(3, 4, seed=1)),
                     {"dimension_numbers": (((0, 2), (1, 0)), ((), ()))})
        yield Sample((sample_array(3, 4, dtype=dtypes.bfloat16),
                      sample_array(4, 2, seed=1, dtype=dtypes.bfloat16)),
                     {"dimension_numbers": (((1,), (0,)), ((), ())),
                      "preferred_element_type": np.dtype(np.float32)})
        yield Sample((x, y), {"dimension_numbers": (((1,), (0,)), ((), ())),
                              "precision": Precision.HIGHEST})


@functools.lru_cache(maxsize=256)
def _others(ndim: int, axes: Axes) -> Axes:
    return tuple([d for d in range(ndim) if d not in axes])


@functools.lru_cache(maxsize=256)
def _are_distinct(ndim: int, axes: Axes) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= a < ndim for a in axes)


class _Views(NamedTuple):
    """How operands of some ranks become matrices: the orders of their axes, None as they are."""

    batch: Axes
    free_x: Axes
    free_y: Axes
    order_x: Axes | None
    order_y: Axes | None


@functools.lru_cache(maxsize=256)
def _views_of(nx: int, ny: int, dimension_numbers: DimensionNumbers) -> _Views | None:
    """The views for a product; None where there may be none (0.1 us a product, instead of 2)."""
    (cx, cy), (bx, by) = dimension_numbers
    if len(cx) != 1 or len(bx) > 1 or nx > 4 or ny > 4:
        return None
    fx, fy = _others(nx, cx + bx), _others(ny, cy + by)
    if bx and not (fx and fy):
        return None
    orders = [None if order == tuple(range(len(order))) else order
              for order in (bx + fx + cx, by + cy + fy)]
    return _Views(bx, fx, fy, *orders)


def _product_of_views(x: Any, y: Any, dimension_numbers: DimensionNumbers) -> Any:
    """The product of two arrays as matrices, if views make matrices of them."""
    views = _views_of(rank(x), rank(y), dimension_numbers)
    if views is None:
        return NotImplemented
    batch, fx, fy, order_x, order_y = views
    a = _as_matrices(x, order_x, len(batch), len(fx) > 1, False)
    b = _as_matrices(y, order_y, len(batch), len(fy) > 1, True)
    if a is NotImplemented or b is NotImplemented:
        return NotImplemented
    out = _runtime.matmul(a, b)
    if out is NotImplemented or (len(fx) <= 1 and len(fy) <= 1):
        return out
    shape = (*[x.shape[d] for d in batch + fx], *[y.shape[d] for d in fy])
    return _runtime.reshape_view(out, shape)


def _as_matrices(x: Any, order: Axes | None, nb: int, merge: bool, right: bool) -> Any:
    """A view of x with its axes in `order` and its several free axes merged into one."""
    if order is not None:
        x = _runtime.transpose_view(x, order)
    if not merge or x is NotImplemented:
        return x
    shape = x.shape
    if right:
        return _runtime.reshape_view(x, (*shape[:nb + 1], math.prod(shape[nb + 1:])))
    return _runtime.reshape_view(x, (*shape[:nb], math.prod(shape[nb:-1]), shape[-1]))


def _shift(axes: Axes, mapped: int) -> Axes:
    return tuple(a + (a >= mapped) for a in axes)


def _as_wide(x: Any, ct: Any) -> Any:
    """An operand in the dtype of a cotangent: a product may be wider than what it is of."""
    dtype = get_aval(ct).dtype
    return x if get_aval(x).dtype == dtype else convert_element_type(x, dtype)


@functools.lru_cache(maxsize=256)
def _left_cotangent(nx: int, ny: int, dimension_numbers: DimensionNumbers
                    ) -> tuple[DimensionNumbers, Axes | None]:
    """The contraction of a cotangent with y over the free axes of y, and the order of its axes.

    None is the order that they have.
    """
    (cx, cy), (bx, by) = dimension_numbers
    free_x, free_y = _others(nx, cx + bx), _others(ny, cy + by)
    nb = len(bx)
    over = tuple(range(nb + len(free_x), nb + len(free_x) + len(free_y)))
    # axes of the product: batch, free of x, contracted of y in the order in which they stand in y
    places = (*bx, *free_x, *(cx[cy.index(d)] for d in sorted(cy)))
    return ((over, free_y), (tuple(range(nb)), by)), _order(places)


@functools.lru_cache(maxsize=256)
def _right_cotangent(nx: int, ny: int, dimension_numbers: DimensionNumbers
                     ) -> tuple[DimensionNumbers, Axes | None]:
    """The contraction of x with a cotangent over the free axes of x, and the order of its axes."""
    (cx, cy), (bx, by) = dimension_numbers
    free_x, free_y = _others(nx, cx + bx), _others(ny, cy + by)
    nb = len(bx)
    over = tuple(range(nb, nb + len(free_x)))
    # axes of the product: batch, contracted of x in the order in which they stand in x, free of y
    places = (*by, *(cy[cx.index(d)] for d in sorted(cx)), *free_y)
    return ((free_x, over), (bx, tuple(range(nb)))), _order(places)


def _order(places: Axes) -> Axes | None:
    order = tuple(places.index(d) for d in range(len(places)))
    return order if order != tuple(range(len(places))) else None


def _cotangent(out: Any, order: Axes | None, aval: ShapedArray) -> Any:
    """A product with its axes in `order`, in the dtype of `aval`."""
    out = out if order is None else transpose(out, order)
    return out if out.dtype == aval.dtype else convert_element_type(out, aval.dtype)


def _transpose_left(ct: Any, x: ShapedArray, y: Any, dimension_numbers: DimensionNumbers,
                    precision: Precision | None) -> Any:
    """The cotangent of the first operand, of type `x`."""
    dims, order = _left_cotangent(x.ndim, get_aval(y).ndim, dimension_numbers)
    return _cotangent(dot_general(ct, _as_wide(y, ct), dims, precision), order, x)


def _transpose_right(ct: Any, x: Any, y: ShapedArray, dimension_numbers: DimensionNumbers,
                     precision: Precision | None) -> Any:
    """The cotangent of the second operand, of type `y`."""
    dims, order = _right_cotangent(get_aval(x).ndim, y.ndim, dimension_numbers)
    return _cotangent(dot_general(_as_wide(x, ct), ct, dims, precision), order, y)


dot_general_p = DotGeneral()


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
                ) -> Array:
    """Sum of products over contracting axes: ((lhs, rhs contracting), (lhs, rhs batch)).

    The result has the batch axes, the free axes of lhs, then those of rhs. `precision` is of
    products of float32 on GPUs: a Precision or its name ("default", "high", "highest"), or one for
    each operand, of which the more exact one holds; None follows `config.matmul_precision`. CPUs
    always compute in float32. Raises ShapeError when paired axes differ in size, ArgumentError for
    an unknown precision.

    >>> import functrans as ft
    >>> x, y = ft.numpy.ones((2, 3)), ft.numpy.ones((3, 4))
    >>> ft.lax.dot_general(x, y, (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    (cx, cy), (bx, by) = dimension_numbers
    dims = ((tuple(cx), tuple(cy)), (tuple(bx), tuple(by)))
    params: dict[str, Any] = {**precision_params("dot_general", precision)}
    if preferred_element_type is not None:
        params["preferred_element_type"] = dtypes.as_dtype(preferred_element_type)
    return dot_general_p.bind(lhs, rhs, dimension_numbers=dims, **params)


