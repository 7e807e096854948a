"""What every module of functrans.numpy shares: operands, promotion, broadcasting and axes."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans._runtime import ArrayBase, get_trace, place_array, with_weak_type
from functrans.core import dtypes
from functrans.core.broadcasting import broadcast_shapes as _broadcast_shapes
from functrans.core.convert import array_method
from functrans.core.cuda import gpu_of
from functrans.core.dims import Dim, Shape, same_shape
from functrans.core.dtypes import as_dtype, kind
from functrans.core.eager import is_on_gpu
from functrans.core.errors import (
    ArgumentError,
    ConcretizationError,
    KeyTypeError,
    NonArrayError,
    shown,
)
from functrans.core.masked import refuse_masked
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS, Tracer
from functrans.numpy.promotion_checks import check_dtypes, check_ranks
from functrans.typing import Array, ArrayLike, Axis

PYTHON_SCALARS = (bool, int, float, complex)


def broadcast_shapes(*shapes: Shape, name: str = "broadcast_shapes") -> Shape:
    """The shape that all given shapes broadcast to."""
    return _broadcast_shapes(*shapes, name=f"numpy.{name}")


# operands ------------------------------------------------------------------------------------


def wrap(x: np.ndarray | np.generic, weak_type: bool = False) -> Array:
    """The Array that holds x without a copy; x must be ours."""
    return Array._wrap(np.asarray(x), weak_type)


def another(x: Array) -> Array:
    """Another array on the memory of x, which is nobody's to take then, also when x is donated."""
    return copy.copy(x)


def placed(x: Array) -> Array:
    """A new array where arrays go by default; a single number stays here, and goes with others."""
    if get_trace() is not None or not x.ndim or type(x) is not Array or x._place:
        return x
    gpu = gpu_of(())
    return x if gpu is None else place_array(x, gpu + 1)


_MOVING = frozenset((
    "append", "array", "array_equal", "array_equiv", "array_split", "asarray", "ascontiguousarray",
    "astype", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_to",
    "choose", "column_stack", "compress", "concat", "concatenate", "copy", "delete", "diag",
    "diagflat", "diagonal", "dsplit", "dstack", "equal", "expand_dims", "extract", "fftshift",
    "flip", "fliplr", "flipud", "full", "full_like", "hsplit", "hstack", "ifftshift", "insert",
    "isin", "matrix_transpose", "meshgrid", "moveaxis", "ndim", "not_equal", "permute_dims",
    "place", "put", "put_along_axis", "ravel", "repeat", "reshape", "resize", "roll", "rollaxis",
    "rot90", "select", "shape", "size", "split", "squeeze", "stack", "swapaxes", "take",
    "take_along_axis", "tile", "transpose", "tril", "triu", "unstack", "vsplit", "vstack", "where"))
"""The functions that take random keys: they move, select and compare elements."""


def operand(name: str, x: ArrayLike | None) -> Array:
    """x as an Array or tracer; sequences are refused, as they hide a conversion in a hot path.

    Raises KeyTypeError for random keys where `name` is a function of numbers.
    """
    if isinstance(x, ARRAYS):
        if x.dtype in dtypes.KEY_DTYPES and name not in _MOVING:
            raise KeyTypeError(f"functrans.numpy.{name} does not take random keys.",
                               where=user_source(), why="a key is a seed, not a number.",
                               fix="functrans.random.key_data(key) gives its two words")
        return x
    if type(x) in PYTHON_SCALARS:
        dtype = dtypes.scalar_dtype(type(x))
        return wrap(np.array(x, dtype), weak_type=type(x) is not bool)
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_masked(x)
        return wrap(np.array(x, as_dtype(x.dtype)))
    if isinstance(x, Dim):
        # A size that is known only when the program runs is counted there.
        return lax.reduce_sum(lax.full((x,), 1, dtypes.default_int()), (0,))
    if isinstance(x, PYTHON_SCALARS):  # a subclass, such as an IntEnum
        plain: Any = next(t for t in PYTHON_SCALARS if isinstance(x, t))
        return operand(name, plain(x))
    functional = array_method(x)
    if functional is not None:
        return operand(name, functional())
    raise NonArrayError(
        f"functrans.numpy.{name} takes arrays and numbers, and got {_description(x)}.",
        where=user_source(),
        fix="functrans.numpy.array(list(x))" if hasattr(x, "__next__") else
            "functrans.numpy.asarray(x)" if isinstance(x, (list, tuple)) else
            "x.todense()" if hasattr(x, "todense") else "",
    )


def _description(x: Any) -> str:
    return "None" if x is None else f"a {type(x).__name__}"


def operands(name: str, *xs: ArrayLike) -> list[Array]:
    """Every x as an Array or tracer."""
    return [operand(name, x) for x in xs]


def concrete_value(x: Tracer) -> Any:
    """What a tracer stands for if Python may know it, else None."""
    return x.concrete


def is_traced(x: Any) -> bool:
    """Whether x stands for a value that is not known while Python runs."""
    return isinstance(x, Tracer) and concrete_value(x) is None


def staged(*xs: Any) -> bool:
    """Whether an operation on xs has to be recorded: a trace is active or an operand is traced."""
    return get_trace() is not None or any(isinstance(x, Tracer) for x in xs)


def on_host(*xs: Array) -> bool:
    """Whether values are known and in the memory of the host, and nothing is recorded."""
    return not staged(*xs) and not any(map(is_on_gpu, xs))


def concrete(name: str, x: ArrayLike, argument: str, fix: str) -> np.ndarray:
    """The NumPy value of x; under tracing an error that names the argument and the fix."""
    if isinstance(x, Tracer):
        value = concrete_value(x)
        if value is None:
            raise ConcretizationError(
                f"functrans.numpy.{name} needs the value of {argument}, which is traced "
                f"({x.aval}).",
                where=user_source(),
                why="the shape of the result depends on that value, and shapes must be known "
                "while a program is traced.",
                fix=fix,
            )
        return np.asarray(value)
    return np.asarray(x)


def static(name: str, x: Any, argument: str) -> np.ndarray:
    """The value of an argument that decides a shape, which cannot be traced."""
    fix = f"pass {argument} as a Python value (static_argnames in jit)"
    return concrete(name, x, argument, fix)


def static_int(name: str, x: Any, argument: str) -> int:
    """The Python int behind a static argument."""
    return operator.index(x) if isinstance(x, int) else int(static(name, x, argument))


def refuse_out(name: str, out: Any) -> None:
    """Raise if the caller asked for a result in place."""
    if out is not None:
        raise ArgumentError(
            f"functrans.numpy.{name} does not take out=.",
            where=user_source(),
            why="arrays are immutable, so none can be filled.",
            fix=f"x = functrans.numpy.{name}(...)",
        )


# dtypes --------------------------------------------------------------------------------------


def is_inexact(x: Any) -> bool:
    """Whether x is floating or complex."""
    return kind(x.dtype) in "fc"


def is_complex(x: Any) -> bool:
    """Whether x is complex."""
    return bool(kind(x.dtype) == "c")


def cast(x: Any, dtype: np.dtype, weak: bool = False) -> Array:
    """x in dtype; a Python scalar stays one when it can, so that it prints as a literal."""
    if type(x) in PYTHON_SCALARS:
        if isinstance(x, complex) and kind(dtype) != "c":
            x = x.real
        return wrap(np.asarray(x).astype(dtype), weak)
    return x if x.dtype == dtype else lax.convert_element_type(x, dtype, weak)


def converted(name: str, x: ArrayLike, dtype: np.dtype) -> Array:
    """x in dtype; a Python number goes there directly, without losing digits on the way."""
    return cast(x if type(x) in PYTHON_SCALARS else operand(name, x), dtype)


def promote_dtypes(name: str, *xs: ArrayLike) -> list[Array]:
    """The operands in their common dtype, shapes as they are."""
    args = [x if type(x) in PYTHON_SCALARS else operand(name, x) for x in xs]
    check_dtypes(name, args)
    dtype, weak = dtypes.result_type(*args, return_weak_type=True)
    if kind(dtype) in "iu":
        for x in args:
            if type(x) is int:
                dtypes.check_int(x, dtype, where=user_source())
    return [cast(x, dtype, weak) for x in args]


def promote_dtypes_inexact(name: str, *xs: ArrayLike) -> list[Array]:
    """The operands in their common floating or complex dtype, shapes as they are."""
    args = [x if type(x) in PYTHON_SCALARS else operand(name, x) for x in xs]
    check_dtypes(name, args)
    dtype, weak = dtypes.result_type(*args, return_weak_type=True)
    dtype = dtypes.to_inexact_dtype(dtype)
    return [cast(x, dtype, weak) for x in args]


def promote(name: str, *xs: ArrayLike) -> Sequence[Array]:
    """The operands in one dtype and one shape (or rank 0), ready for an elementwise primitive."""
    return align(name, promote_dtypes(name, *xs))


def promote_inexact(name: str, *xs: ArrayLike) -> Sequence[Array]:
    """As promote, in a floating or complex dtype."""
    return align(name, promote_dtypes_inexact(name, *xs))


# shapes --------------------------------------------------------------------------------------


def broadcast(x: Array, shape: Shape) -> Array:
    """x broadcast to shape by NumPy's rule."""
    if same_shape(x.shape, shape):
        return x
    offset = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(offset, len(shape))))


def align(name: str, xs: Sequence[Array]) -> Sequence[Array]:
    """The operands broadcast to one shape, those of rank 0 left as they are."""
    shapes = [x.shape for x in xs if x.ndim]
    if not shapes or all(same_shape(s, shapes[0]) for s in shapes):
        return xs
    check_ranks(name, shapes)
    shape = broadcast_shapes(*shapes, name=name)
    return [broadcast(x, shape) if x.ndim else x for x in xs]


def broadcast_all(name: str, *xs: Array) -> list[Array]:
    """The operands broadcast to one shape, rank 0 included."""
    check_ranks(name, [x.shape for x in xs])
    shape = broadcast_shapes(*(x.shape for x in xs), name=name)
    return [broadcast(x, shape) for x in xs]


def axis_index(axis: Any, ndim: int, name: str = "axis") -> int:
    """axis counted from the front."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise ArgumentError(f"functrans.numpy.{name}: axis must be an int, got {shown(axis)}.",
                            fix="arrays are one sequence: [a, b]" if hasattr(axis, "aval") else
                                "axis=0, axis=-1 for the last one") from None
    if not -ndim <= axis < ndim:
        raise ArgumentError(
            f"functrans.numpy.{name}: axis {axis} is out of bounds for an array of {ndim} "
            f"dimension{'' if ndim == 1 else 's'}.",
            where=user_source(),
            fix=f"an axis from {-ndim} to {ndim - 1}" if ndim else "leave out axis",
        )
    return axis % ndim if ndim else 0


def axis_tuple(axis: Axis, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """The axes counted from the front; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int:
        return (axis_index(axis, ndim, name),)
    axes = tuple(axis) if isinstance(axis, Iterable) and not isinstance(axis, str) else (axis,)
    result = tuple(axis_index(a, ndim, name) for a in axes)
    if len(set(result)) != len(result):
        raise ArgumentError(f"functrans.numpy.{name}: axis={axis} names one axis twice.",
                            where=user_source())
    return result


def shape_tuple(shape: Any, name: str = "shape", package: str = "functrans.numpy") -> Shape:
    """A shape given as a size or a sequence of sizes, as a tuple of ints and symbolic sizes."""
    if isinstance(shape, ARRAYS) or not isinstance(shape, Iterable):
        if isinstance(shape, (*ARRAYS, np.ndarray)):
            value = static(name, shape, "shape")
            return tuple(int(s) for s in np.atleast_1d(value))
        return (dimension(shape, name, package),)
    return tuple(dimension(s, name, package) for s in shape)


def dimension(size: Any, name: str, package: str = "functrans.numpy") -> Any:
    """One size of a shape: an int, or a symbolic size as it is."""
    if isinstance(size, (int, np.integer)):
        if size < 0:
            raise ArgumentError(f"{package}.{name}: the size {size} is negative.",
                                where=user_source())
        return int(size)
    if isinstance(size, (*ARRAYS, np.ndarray)):
        return int(static(name, size, "shape"))
    if isinstance(size, float):
        raise ArgumentError(f"{package}.{name}: a size is an integer, and {size} is not.",
                            where=user_source(), fix="int(size)")
    if not isinstance(size, Dim):
        raise ArgumentError(f"{package}.{name}: a shape is an int or a tuple of ints, got "
                            f"{shown(size)}.", fix="(2, 3)")
    return size


def size_of(x: Array, axes: Sequence[int] | None = None) -> Any:
    """The number of elements along axes (all of them by default)."""
    return math.prod(x.shape if axes is None else (x.shape[a] for a in axes))


def scalar_like(x: Array, value: Any) -> Array:
    """A rank-0 constant in x's dtype."""
    return wrap(np.asarray(value).astype(x.dtype))


def filled(shape: Shape, value: Any, dtype: Any, weak: bool = False) -> Array:
    """A constant array; staged as a broadcast under a trace, so that it costs no memory there."""
    if get_trace() is None and all(isinstance(s, int) for s in shape) and (
            not shape or gpu_of(()) is None):
        return wrap(np.full(shape, value, dtype), weak)
    x = lax.full(shape, value, dtype)
    if not weak:
        return x
    return with_weak_type(x, True) if isinstance(x, ArrayBase) else \
        lax.convert_element_type(x, dtype, True)


def index_dtype(*counts: object) -> np.dtype:
    """The dtype of positions up to `counts`: the default integer, or int64 where that is small."""
    return dtypes.position_dtype(*counts, default=dtypes.default_int())


def move_last(x: Array, axis: int) -> Array:
    """x with axis moved to the end."""
    if axis == x.ndim - 1:
        return x
    return lax.transpose(x, (*(a for a in range(x.ndim) if a != axis), axis))


def move_back(x: Array, axis: int) -> Array:
    """x with the last axis moved to axis: the inverse of move_last."""
    if axis == x.ndim - 1:
        return x
    order = list(range(x.ndim - 1))
    order.insert(axis, x.ndim - 1)
    return lax.transpose(x, tuple(order))


def slice_axis(x: Array, start: Any, stop: Any, axis: int = -1) -> Array:
    """x[..., start:stop, ...] along one axis; known bounds out of range end at it."""
    axis %= x.ndim
    size = x.shape[axis]
    if isinstance(size, int) and isinstance(start, int) and isinstance(stop, int):
        start = min(start, size)
        stop = max(stop, start)
    starts = [0] * x.ndim
    stops = list(x.shape)
    starts[axis], stops[axis] = start, stop
    return lax.slice(x, tuple(starts), tuple(stops))
