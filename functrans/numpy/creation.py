"""Making arrays: constants, ranges, grids, from data and from functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from functrans import lax
from functrans._runtime import cuda_open, get_trace, place_array
from functrans.core import dtypes
from functrans.core.convert import array_method
from functrans.core.dims import Dim, Size
from functrans.core.dtypes import as_dtype, kind
from functrans.core.errors import ArgumentError, NonArrayError, shown
from functrans.core.masked import refuse_masked
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.device import CPU, find_device, place_of
from functrans.numpy.common import (
    PYTHON_SCALARS,
    another,
    axis_index,
    broadcast,
    broadcast_shapes,
    filled,
    operand,
    placed,
    promote_dtypes,
    promote_dtypes_inexact,
    shape_tuple,
    static,
    static_int,
    wrap,
)
from functrans.numpy.ufuncs import astype, power
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike, DeviceLike, DTypeLike, NestedArrays, ShapeLike

T = TypeVar("T")


def float_dtype(dtype: DTypeLike | None) -> np.dtype:
    return dtypes.default_float() if dtype is None else as_dtype(dtype)


def _nested(x: Any, depth: int = 0) -> list[Any]:
    """The leaves of nested sequences."""
    if depth > 64:
        raise ArgumentError("functrans.numpy.array: sequences are nested more than 64 deep.",
                            why="an array has at most 64 dimensions; does a list contain itself?")
    if isinstance(x, (list, tuple)):
        return [leaf for item in x for leaf in _nested(item, depth + 1)]
    return [x]


def _stack_nested(x: Any) -> Array:
    """Nested sequences that contain arrays, joined on the device or in the trace."""
    if not isinstance(x, (list, tuple)):
        return operand("array", x)
    if not x:
        return filled((0,), 0, dtypes.default_float())
    items = promote_dtypes("array", *(_stack_nested(item) for item in x))
    return lax.concatenate([lax.expand_dims(operand("array", i), (0,)) for i in items], 0)


def on_device(x: Array, device: Any) -> Array:
    """x on a device; where no device is given, or x is traced, x as it is."""
    if device is None:
        return x
    target = find_device(device)
    if type(x) is not Array or (target == x.device == CPU and not cuda_open()):
        return x
    return place_array(x, place_of(target))


def array(object: NestedArrays, dtype: DTypeLike | None = None, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, *, device: DeviceLike | None = None) -> Array:
    """An array from numbers, nested sequences, NumPy arrays (whose dtype stays) or arrays.

    With `copy` it is another array than `object` is: donating one leaves the other as it is.
    Raises NonArrayError for what is no array, and a ragged nesting is refused.

    >>> import functrans.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    del order
    weak = False
    if copy and isinstance(object, Array):
        object = another(object)
    if isinstance(object, range):
        object = list(object)
    if isinstance(object, ARRAYS):
        x = object
    elif type(object) in PYTHON_SCALARS:
        if type(object) is int and dtype is None:
            dtypes.check_int(object, dtypes.default_int())
        x = operand("array", _checked(object, dtype))
        weak = dtype is None and type(object) is not bool
    elif isinstance(object, (np.ndarray, np.generic)):
        x = operand("array", object)
    elif isinstance(object, (list, tuple)):
        x = _from_sequence(object, dtype)
    elif (as_array := array_method(object)) is not None:
        x = operand("array", as_array())
    elif _is_foreign_array(object):
        x = operand("array", np.asarray(object))
    else:
        number: Any = object  # of a kind to be refused, or a size
        x = operand("array", number)
    if dtype is not None:
        x = astype(x, dtype)
    elif x.weak_type and not weak and not isinstance(object, ARRAYS):
        x = lax.convert_element_type(x, x.dtype)
    if x.ndim < ndmin:
        x = lax.expand_dims(x, tuple(range(ndmin - x.ndim)))
    return placed(x) if device is None else on_device(x, device)


def _checked(value: Any, dtype: DTypeLike | None) -> Any:
    """A Python number that an array of its own type could not hold goes into the dtype directly."""
    if dtype is None or type(value) not in (int, float):
        return value
    to = as_dtype(dtype)
    if type(value) is int and kind(to) in "iu":
        dtypes.check_int(value, to, where=user_source())
        return np.asarray(value, to)
    if type(value) is int and kind(to) == "b":
        return value != 0
    return np.asarray(float(value), to) if kind(to) in "fc" else value


def _is_foreign_array(x: Any) -> bool:
    """Whether NumPy reads an array from the memory of an object by one of its protocols."""
    if any(hasattr(x, name) for name in ("__array__", "__array_interface__", "__dlpack__")):
        return True
    try:
        memoryview(x).release()
    except TypeError:
        return False
    return True


def _from_sequence(x: list[Any] | tuple[Any, ...], dtype: DTypeLike | None) -> Array:
    leaves = _nested(x)
    if any(isinstance(leaf, ARRAYS) for leaf in leaves):
        if all(type(leaf) is Array for leaf in leaves) and get_trace() is None and all(
            leaf.dtype == leaves[0].dtype for leaf in leaves
        ) and kind(leaves[0].dtype) != "k" and leaves[0].dtype != dtypes.complex32:
            x = _map_nested(np.asarray, x)
        else:
            return _stack_nested(x)
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            refuse_masked(leaf)
    try:
        value = np.asarray(x)
    except ValueError as error:
        raise ArgumentError(f"functrans.numpy.array: {str(error).rstrip('.')}.",
                            where=user_source(), why="all items of a sequence must have one shape.",
                            fix="pad the short ones; or keep a list of arrays, which is a pytree"
                            ) from None
    if value.dtype.kind == "O" and all(type(leaf) in PYTHON_SCALARS for leaf in leaves):
        for leaf in leaves:  # ints beyond 64 bits
            if type(leaf) is int:
                dtypes.check_int(leaf, dtypes.default_int() if dtype is None or
                                 kind(as_dtype(dtype)) not in "iu" else as_dtype(dtype))
    if value.dtype.kind in "OSUMm":
        other = next((leaf for leaf in leaves if np.asarray(leaf).dtype.kind in "OSUMm"), x)
        raise NonArrayError(f"functrans.numpy.array takes numbers, and got items of type "
                            f"{type(other).__name__}.", where=user_source())
    if leaves and all(type(leaf) in PYTHON_SCALARS for leaf in leaves):
        wanted = dtypes.result_type(*{type(leaf) for leaf in leaves})
        if dtype is not None:  # rounded once, from Python's double to the wanted dtype
            wanted = value.dtype
        if kind(wanted) in "iu" and dtype is None:
            for bound in (value.min(), value.max()):
                dtypes.check_int(int(bound), wanted, where=user_source())
        value = value.astype(wanted)
    elif not leaves:
        value = value.astype(dtypes.default_float())
    return wrap(np.array(value))


def _map_nested(f: Callable[[Any], Any], x: Any) -> Any:
    return [_map_nested(f, item) for item in x] if isinstance(x, (list, tuple)) else f(x)


def asarray(a: NestedArrays, dtype: DTypeLike | None = None, order: str | None = None, *,
            copy: bool | None = None, device: DeviceLike | None = None) -> Array:
    """An array from numbers, nested sequences or other arrays; an array passes as it is.

    >>> import functrans.numpy as jnp
    >>> jnp.asarray([1.5, 2]).dtype
    dtype('float32')
    """
    if dtype is None and not copy and isinstance(a, ARRAYS):
        return on_device(a, device)
    return array(a, dtype, bool(copy), order, device=device)


def ascontiguousarray(a: NestedArrays, dtype: DTypeLike | None = None) -> Array:
    """asarray with at least one dimension; every array here is contiguous to its users.

    >>> jnp.ascontiguousarray(jnp.float32(3.0)).shape
    (1,)
    """
    return array(a, dtype, copy=False, ndmin=1)


def copy(a: NestedArrays, order: str | None = None) -> Array:
    """Another array of the same values, which outlives the donation of the first.

    >>> x = jnp.array([1, 2])
    >>> jnp.copy(x) is x
    False
    """
    return array(a, order=order)


def frombuffer(buffer: bytes | bytearray | memoryview | np.ndarray, dtype: DTypeLike = np.float64,
               count: int = -1, offset: int = 0) -> Array:
    """A 1-d array of the bytes of a buffer, which `dtype` says how to read.

    Python's float and int are what they are in NumPy: 64 bits wide.

    >>> import numpy as np, functrans.numpy as jnp
    >>> jnp.frombuffer(np.arange(2.0).tobytes()).tolist()
    [0.0, 1.0]
    """
    data = np.frombuffer(buffer, dtype, count, offset)
    return wrap(np.array(data, as_dtype(data.dtype)))


def fromiter(iter: Iterable[complex], dtype: DTypeLike, count: int = -1) -> Array:
    """A 1-d array of the items of an iterable.

    >>> jnp.fromiter((n * n for n in range(4)), dtype="int32")
    Array([0, 1, 4, 9], dtype=int32)
    """
    return wrap(np.fromiter(iter, as_dtype(dtype), count))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A 1-d array of the numbers in a text, separated by sep.

    >>> jnp.fromstring("1 2 3", dtype="int32", sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return wrap(np.fromstring(string, as_dtype(dtype), count, sep=sep))


def fromfunction(function: Callable[..., T], shape: Sequence[int], *, dtype: DTypeLike = float,
                 **kwargs: Any) -> T:
    """function called on the coordinates of every element, one vmapped axis for each dimension.

    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    sizes = shape_tuple(shape, "fromfunction")
    for axis in range(len(sizes)):
        in_axes = tuple(0 if i == axis else None for i in range(len(sizes)))
        function = _mapped(function, in_axes, kwargs)
        kwargs = {}
    return function(*(arange(size, dtype=as_dtype(dtype)) for size in sizes), **kwargs)


def _mapped(function: Callable[..., Any], in_axes: tuple[Any, ...], kwargs: dict[str, Any]
            ) -> Callable[..., Any]:
    return vmap(lambda *coordinates: function(*coordinates, **kwargs), in_axes=in_axes,
                out_axes=0 if len(in_axes) == 1 else in_axes.index(0))


# constants -----------------------------------------------------------------------------------


def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
          ) -> Array:
    """Zeros of the given shape.

    >>> import functrans.numpy as jnp
    >>> jnp.zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return on_device(filled(shape_tuple(shape, "zeros"), 0, float_dtype(dtype)), device)


def ones(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
         ) -> Array:
    """Ones of the given shape.

    >>> jnp.ones((2, 2), dtype="int32")
    Array([[1, 1],
           [1, 1]], dtype=int32)
    """
    return on_device(filled(shape_tuple(shape, "ones"), 1, float_dtype(dtype)), device)


def empty(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: DeviceLike | None = None
          ) -> Array:
    """Zeros of the given shape: an immutable array has no use for unset memory.

    >>> jnp.empty((2, 3)).shape
    (2, 3)
    """
    return on_device(filled(shape_tuple(shape, "empty"), 0, float_dtype(dtype)), device)


def full(shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         device: DeviceLike | None = None) -> Array:
    """fill_value broadcast to the given shape; weakly typed, as a Python number is, without dtype.

    >>> import functrans.numpy as jnp
    >>> jnp.full(3, 7).tolist()
    [7, 7, 7]
    """
    return on_device(_full(shape_tuple(shape, "full"), fill_value, dtype), device)


def _full(shape: Any, fill_value: Any, dtype: DTypeLike | None) -> Array:
    if type(fill_value) in PYTHON_SCALARS:
        weak = dtype is None and type(fill_value) is not bool
        fill_dtype = dtypes.canonical_scalar(fill_value) if dtype is None else as_dtype(dtype)
        if kind(fill_dtype) in "iu" and type(fill_value) is int:
            dtypes.check_int(fill_value, fill_dtype, where=user_source())
        elif type(fill_value) is int:  # which may be beyond 64 bits
            fill_value = float(fill_value) if kind(fill_dtype) in "fc" else fill_value != 0
        return filled(shape, fill_value, fill_dtype, weak)
    value = asarray(fill_value)
    return broadcast(value if dtype is None else astype(value, dtype), shape)


def _like(a: Any, dtype: DTypeLike | None, shape: Any) -> tuple[Any, np.dtype, bool]:
    """Shape, dtype and weakness of what is made like a."""
    x = a if isinstance(a, ARRAYS) or hasattr(a, "dtype") else asarray(a)
    return (tuple(x.shape) if shape is None else shape_tuple(shape),
            as_dtype(x.dtype if dtype is None else dtype),
            dtype is None and getattr(x, "weak_type", False))


def zeros_like(a: NestedArrays | ShapeDtypeStruct, dtype: DTypeLike | None = None,
               shape: ShapeLike | None = None, *, device: DeviceLike | None = None) -> Array:
    """Zeros of a's shape and dtype.

    >>> jnp.zeros_like(jnp.array([[1, 2]]))
    Array([[0, 0]], dtype=int32)
    """
    sizes, dtype, weak = _like(a, dtype, shape)
    return on_device(filled(sizes, 0, dtype, weak), device)


def ones_like(a: NestedArrays | ShapeDtypeStruct, dtype: DTypeLike | None = None,
              shape: ShapeLike | None = None, *, device: DeviceLike | None = None) -> Array:
    """Ones of a's shape and dtype.

    >>> jnp.ones_like(jnp.array([3.5, 4.5]))
    Array([1., 1.], dtype=float32)
    """
    sizes, dtype, weak = _like(a, dtype, shape)
    return on_device(filled(sizes, 1, dtype, weak), device)


def empty_like(prototype: NestedArrays | ShapeDtypeStruct, dtype: DTypeLike | None = None,
               shape: ShapeLike | None = None, *, device: DeviceLike | None = None) -> Array:
    """Zeros of prototype's shape and dtype.

    >>> jnp.empty_like(jnp.ones((2, 2), "int8")).dtype
    dtype('int8')
    """
    return zeros_like(prototype, dtype, shape, device=device)


def full_like(a: NestedArrays | ShapeDtypeStruct, fill_value: ArrayLike,
              dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *,
              device: DeviceLike | None = None) -> Array:
    """fill_value in a's shape and dtype.

    >>> jnp.full_like(jnp.array([1.0, 2.0]), 7)
    Array([7., 7.], dtype=float32)
    """
    sizes, dtype, weak = _like(a, dtype, shape)
    x = full(sizes, fill_value, dtype)
    return on_device(lax.convert_element_type(x, dtype, True) if weak else x, device)


# ranges --------------------------------------------------------------------------------------


def arange(start: ArrayLike, stop: ArrayLike | None = None, step: ArrayLike | None = None,
           dtype: DTypeLike | None = None, *, device: DeviceLike | None = None) -> Array:
    """start, start + step, ... below stop; arange(n) counts from 0.

    >>> import functrans.numpy as jnp
    >>> jnp.arange(2, 8, 3).tolist()
    [2, 5]
    """
    return on_device(_arange(start, stop, step, dtype), device)


def _arange(start: Any, stop: Any, step: Any, dtype: DTypeLike | None) -> Array:
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    given = (start, stop, step)
    symbolic = [v for v in given if not isinstance(v, (*PYTHON_SCALARS, np.generic, np.ndarray,
                                                       *ARRAYS))]
    if symbolic:  # a symbolic size
        return _sized_range(start, stop, step,
                            dtypes.default_int() if dtype is None else as_dtype(dtype))
    values: list[Any] = [v if type(v) in PYTHON_SCALARS else
                         static("arange", v, "its arguments")[()] for v in given]
    wanted = dtypes.result_type(*values) if dtype is None else as_dtype(dtype)
    whole = all(isinstance(v, (int, np.integer)) for v in values)
    if whole and get_trace() is not None and kind(wanted) in "iu":
        first, last, by = (int(v) for v in values)
        given_range = range(first, last, by)
        size = len(given_range)
        for end in (given_range[0], given_range[-1]) if size else ():
            dtypes.check_int(end, wanted)
        made = lax.iota(wanted, size)
        if by != 1:
            made = lax.mul(made, lax.full_like(made, by))
        return made if first == 0 else lax.add(made, lax.full_like(made, first))
    counted: np.ndarray = np.arange(*values)
    if whole and kind(wanted) in "iu" and counted.size:
        for number in (counted[0], counted[-1]):
            dtypes.check_int(int(number), wanted)
    return placed(wrap(counted.astype(wanted)))


def _sized_range(start: Any, stop: Any, step: Any, dtype: np.dtype[Any]) -> Array:
    """arange of symbolic sizes, of as many numbers as Python's range has."""
    if not all(isinstance(v, (Dim, int, np.integer)) for v in (start, stop)) or not isinstance(
            step, (int, np.integer)) or step == 0:
        raise ArgumentError(f"functrans.numpy.arange of a symbolic size takes integers, got start "
                            f"{shown(start)}, stop {shown(stop)} and step {shown(step)}.",
                            where=user_source(), fix="start + step * arange(n)")
    length = max(stop - start if step > 0 else start - stop, 0)
    made = lax.iota(dtype, (length + abs(step) - 1) // abs(step))
    if step != 1:
        made = lax.mul(made, lax.full_like(made, int(step)))
    if isinstance(start, Dim) or start:
        made = astype(made + start, dtype)
    return made


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
    retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *,
    device: DeviceLike | None = None,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *,
    retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0,
    device: DeviceLike | None = None,
) -> tuple[Array, Array]: ...


def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: DeviceLike | None = None) -> Array | tuple[Array, Array]:
    """num evenly spaced values from start to stop, which is included if endpoint.

    The shape is (num, ...), start and stop broadcast to (...); `axis` puts num elsewhere.

    >>> import functrans.numpy as jnp
    >>> jnp.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    made, step = _linspace(start, stop, num, endpoint, dtype, axis)
    made = on_device(made, device)
    return (made, step) if retstep else made


def _linspace(start: Any, stop: Any, num: Any, endpoint: bool, dtype: DTypeLike | None,
              axis: int) -> tuple[Array, Array]:
    """The values, and the step between them."""
    symbolic = isinstance(num, Dim)
    num = num if symbolic else static_int("linspace", num, "num")
    if not symbolic and num < 0:
        raise ArgumentError(f"functrans.numpy.linspace: num={num} is negative.",
                            where=user_source())
    if not symbolic and type(start) in PYTHON_SCALARS and type(stop) in PYTHON_SCALARS:
        wanted = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
        value, width = np.linspace(start, stop, num, endpoint, retstep=True)
        made = placed(wrap(value.astype(wanted if dtype is None else as_dtype(dtype))))
        return made, wrap(np.asarray(width).astype(wanted))
    first, last = promote_dtypes_inexact("linspace", start, stop)
    shape = broadcast_shapes(first.shape, last.shape, name="linspace")
    first, last = (broadcast(operand("linspace", v), shape) for v in (first, last))
    intervals = num - 1 if endpoint else num
    step = (lax.div(lax.sub(last, first), _count_like(first, intervals)) if intervals > 0
            else lax.full_like(first, np.nan))
    if symbolic:
        counted = lax.iota(first.dtype, num)
        fractions = lax.div(counted, _count_like(counted, max(intervals, 1)))
    else:
        fractions = wrap((np.arange(num) / max(intervals, 1)).astype(first.dtype))
    whole = (num, *shape)
    t = lax.broadcast_in_dim(fractions, whole, (0,))
    first, last = broadcast(first, whole), broadcast(last, whole)
    result = lax.add(lax.mul(first, lax.sub(lax.full_like(t, 1), t)), lax.mul(last, t))
    if dtype is not None and kind(as_dtype(dtype)) in "iu":
        result = lax.floor(result)
    result = result if dtype is None else astype(result, dtype)
    axis = axis_index(axis, result.ndim, "linspace")
    if axis:
        order = list(range(1, result.ndim))
        order.insert(axis, 0)
        result = lax.transpose(result, tuple(order))
    return result, lax.convert_element_type(step, step.dtype)


def _count_like(x: Array, count: Size) -> Array:
    if isinstance(count, Dim):
        return broadcast(astype(asarray(count), x.dtype), x.shape)
    return lax.full_like(x, count)


def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """base to the power of num evenly spaced exponents from start to stop.

    >>> jnp.logspace(0, 2, 3).round(2)
    Array([  1.,  10., 100.], dtype=float32)
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    result = power(base, exponents)
    return result if dtype is None else astype(result, dtype)


def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """num values from start to stop, each the same multiple of the one before.

    >>> jnp.geomspace(1.0, 1000.0, 4).round(2)
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    first, last = promote_dtypes_inexact("geomspace", start, stop)
    first, last = operand("geomspace", first), operand("geomspace", last)
    shape = broadcast_shapes(first.shape, last.shape, name="geomspace")
    first, last = broadcast(first, shape), broadcast(last, shape)
    ratio = lax.log(lax.div(last, first))
    t = linspace(0.0, 1.0, num, endpoint, dtype=first.dtype)
    axis = axis_index(axis, len(shape) + 1, "geomspace")
    t = lax.expand_dims(t, tuple(a for a in range(len(shape) + 1) if a != axis))
    result = (lax.expand_dims(first, (axis,))
              * lax.exp(_outer(t, lax.expand_dims(ratio, (axis,)))))
    return result if dtype is None else astype(result, dtype)


def _outer(x: Array, y: Array) -> Array:
    shape = broadcast_shapes(x.shape, y.shape)
    return lax.mul(broadcast(x, shape), broadcast(y, shape))


def as_arrays(xs: Any) -> list[Array]:
    """The arrays of a sequence, lists among them included."""
    return [x if isinstance(x, ARRAYS) else asarray(x) for x in xs]
