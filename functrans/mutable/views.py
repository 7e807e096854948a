"""The functions of NumPy that return views, on mutable arrays; memory decides about reshapes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.methods import view_as
from functrans.mutable.arrays import MutableArray, new, unwrap
from functrans.mutable.calls import AMBIGUOUS
from functrans.mutable.lenses import Bits, Indexed, Part, ReadOnly, Reshaped, Transposed
from functrans.numpy.common import axis_index, axis_tuple, shape_tuple

__all__ = ["VIEWS", "flat_view", "ravel", "reshape", "transpose", "viewed"]


def _is_shared(part: Any, whole: Any) -> bool:
    return bool(not whole.size or np.may_share_memory(part, whole))


def transpose(x: MutableArray, axes: Any = None) -> MutableArray:
    """The axes in another order, by default reversed."""
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(
        axis_index(a, x.ndim, "transpose") for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    return x.through(Transposed(order), lambda shadow: shadow.transpose(order))


def reshape(x: MutableArray, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """A view in another shape where NumPy gives one, else a copy."""
    if order == "A":
        order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    if order == "F":
        sizes = shape_or_sizes(shape)[::-1]
        return transpose(reshape(transpose(x), sizes, copy=copy))
    sizes = shape_or_sizes(shape)
    shadow = x.shadow()
    if shadow is None:
        value = jnp.reshape(x.value, sizes)
        if copy or not all(isinstance(lens, Reshaped) for lens in x._chain):
            if not copy:
                raise ArgumentError(
                    f"a reshape of a view of shape {x.shape}, which has symbolic sizes.",
                    where=user_source(), why="whether NumPy's result shares memory is not known.",
                    fix="x.copy().reshape(...)")
            return new(value, x._cell.call)
        return x.through(Reshaped(tuple(value.shape)), lambda s: s)
    reshaped = shadow.reshape(sizes)
    lens = Reshaped(reshaped.shape)
    if copy:
        return new(lens.get(x.value), x._cell.call)
    if not x._cell.known and not _is_always_view(x.shape, reshaped.shape):
        x._cell.kind = x._cell.kind or AMBIGUOUS
        return new(lens.get(x.value), x._cell.call, AMBIGUOUS)
    if _is_shared(reshaped, shadow):
        return x.through(lens, lambda s: reshaped)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return new(lens.get(x.value), x._cell.call)


def _is_always_view(old: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a reshape is a view whatever the strides are."""
    apart = np.empty(tuple(2 * n for n in old), np.int8)[tuple(slice(None, None, 2) for _ in old)]
    return _is_shared(apart.reshape(shape), apart)


def shape_or_sizes(shape: Any) -> tuple[Any, ...]:
    """A shape, of which one size may be -1."""
    shape = unwrap(shape)
    items = (shape,) if isinstance(shape, (int, np.integer)) or not hasattr(shape, "__iter__") \
        else tuple(shape)
    return tuple(-1 if isinstance(s, (int, np.integer)) and s == -1 else shape_tuple(s)[0]
                 for s in items)


def ravel(x: MutableArray, order: str = "C") -> Any:
    """The elements as a vector: a view of contiguous memory, else a copy."""
    shadow = x.shadow()
    if shadow is None or order == "C" or x.ndim < 2:
        if shadow is not None and x._cell.known and not _is_shared(shadow.ravel(), shadow):
            return new(jnp.ravel(x.value), x._cell.call)
        return reshape(x, (-1,))
    if order in "AK" and not (shadow.flags.f_contiguous and not shadow.flags.c_contiguous):
        if order == "K" and not shadow.flags.c_contiguous:
            raise ArgumentError("ravel(order='K') of an array that is not contiguous.",
                                where=user_source(), fix="x.ravel()")
        return ravel(x)
    return ravel(transpose(x))


def flat_view(x: MutableArray) -> MutableArray:
    """What `x.flat` reads and writes: all elements in row-major order, whatever the memory."""
    return x.through(Reshaped((x.size,)), lambda s: np.empty(x.size, np.int8))


def index(x: MutableArray, items: tuple[Any, ...]) -> Any:
    """A view by slices and new axes, also of an array without axes."""
    entries = tuple(i if i is None else range(*i.indices(n)) for i, n in zip(
        items, _sizes_for(items, x.shape), strict=True))
    return x.through(Indexed(entries, x.shape), lambda s: s[items])


def _sizes_for(items: Sequence[Any], shape: tuple[Any, ...]) -> list[Any]:
    sizes = iter(shape)
    return [None if i is None else next(sizes) for i in items]


def _whole(x: MutableArray) -> list[Any]:
    return [slice(None)] * x.ndim


def expand_dims(a: MutableArray, axis: Any) -> Any:
    """New axes of size 1."""
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = axis_tuple(axis, a.ndim + count, "expand_dims")
    return a[tuple(None if i in places else slice(None) for i in range(a.ndim + count))]


def squeeze(a: MutableArray, axis: Any = None) -> Any:
    """Without axes of size 1."""
    axes = [i for i, n in enumerate(a.shape) if isinstance(n, int) and n == 1] if axis is None \
        else axis_tuple(axis, a.ndim, "squeeze")
    if any(a.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a[(*[0 if i in axes else slice(None) for i in range(a.ndim)], ...)]


def swapaxes(a: MutableArray, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    order = list(range(a.ndim))
    i, j = axis_index(axis1, a.ndim, "swapaxes"), axis_index(axis2, a.ndim, "swapaxes")
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


def moveaxis(a: MutableArray, source: Any, destination: Any) -> Any:
    """Axes at other places."""
    marked = np.moveaxis(np.empty(tuple(range(a.ndim))), source, destination)
    return transpose(a, marked.shape)


def rollaxis(a: MutableArray, axis: int, start: int = 0) -> Any:
    """An axis rolled to another place."""
    return transpose(a, np.rollaxis(np.empty(tuple(range(a.ndim))), axis, start).shape)


def matrix_transpose(x: MutableArray) -> Any:
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


def flip(m: MutableArray, axis: Any = None) -> Any:
    """Axes reversed."""
    axes = axis_tuple(axis, m.ndim, "flip")
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


def rot90(m: MutableArray, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """A plane turned by right angles."""
    k %= 4
    if k == 0:
        return m[...]
    if k == 2:
        return flip(m, tuple(axes))
    return swapaxes(flip(m, axes[1]), *axes) if k == 1 else flip(swapaxes(m, *axes), axes[1])


def atleast_1d(*arrays: Any) -> Any:
    """Arrays with one axis or more."""
    return _atleast(arrays, lambda x: x.reshape(1) if x.ndim == 0 else x, np.atleast_1d)


def atleast_2d(*arrays: Any) -> Any:
    """Arrays with two axes or more."""
    return _atleast(arrays, lambda x: x.reshape(1, 1) if x.ndim == 0 else
                    x[None] if x.ndim == 1 else x, np.atleast_2d)


def atleast_3d(*arrays: Any) -> Any:
    """Arrays with three axes or more."""
    return _atleast(arrays, lambda x: x.reshape(1, 1, 1) if x.ndim == 0 else
                    x[None, :, None] if x.ndim == 1 else
                    x[:, :, None] if x.ndim == 2 else x, np.atleast_3d)


def _atleast(arrays: Sequence[Any], widen: Callable[[Any], Any], func: Any) -> Any:
    results = [widen(a) if isinstance(a, MutableArray) else
               new(getattr(jnp, func.__name__)(jnp.asarray(unwrap(a)))) for a in arrays]
    return results[0] if len(results) == 1 else tuple(results)


def array_split(ary: MutableArray, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis, of nearly one size or between given places."""
    size = ary.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        count = operator.index(indices_or_sections)
        each, extra = divmod(size, count)
        stops = np.cumsum([0, *[each + 1] * extra, *[each] * (count - extra)]).tolist()
    else:
        stops = [0, *[operator.index(i) for i in unwrap(indices_or_sections)], size]
    axis = axis_index(axis, ary.ndim, "array_split")
    rest = (slice(None),) * axis
    return [ary[(*rest, slice(a, b))] for a, b in itertools.pairwise(stops)]


def split(ary: MutableArray, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis, of one size or between given places."""
    if isinstance(indices_or_sections, (int, np.integer)) and (
            ary.shape[axis] % indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def unstack(x: MutableArray, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts along an axis."""
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def real(val: MutableArray) -> Any:
    """The real part; real numbers themselves."""
    if dtypes.kind(val.dtype) != "c":
        return val
    return val.through(Part(False), _apart)


def imag(val: MutableArray) -> Any:
    """The imaginary part; zeros that nobody writes for real numbers."""
    if dtypes.kind(val.dtype) != "c":
        return val.through(ReadOnly(jnp.imag), _apart)
    return val.through(Part(True), _apart)


def _apart(shadow: Any) -> Any:
    """The shadow of every second number."""
    if not shadow.ndim:
        return shadow
    wide = np.empty((*shadow.shape, 2), np.int8) if shadow.flags.c_contiguous else None
    if wide is not None:
        return wide[..., 0]
    order = np.argsort([-abs(s) for s in shadow.strides], kind="stable")
    wide = np.empty((*[shadow.shape[i] for i in order], 2), np.int8)[..., 0]
    return wide.transpose(np.argsort(order))


def diagonal(a: MutableArray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal, which is read-only as in NumPy."""
    return a.through(ReadOnly(lambda v: jnp.diagonal(v, offset, axis1, axis2)),
                  lambda s: s.diagonal(offset, axis1, axis2))


def diag(v: MutableArray, k: int = 0) -> Any:
    """The diagonal of a matrix (read-only), or a matrix with a diagonal."""
    return diagonal(v, k) if v.ndim == 2 else new(jnp.diag(v.value, k))


def broadcast_to(array: MutableArray, shape: Any, subok: bool = False) -> Any:
    """A read-only view in a larger shape."""
    sizes = shape_or_sizes(shape)
    return array.through(ReadOnly(lambda v: jnp.broadcast_to(v, sizes)),
                      lambda s: np.broadcast_to(s, sizes))


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Read-only views in a common shape."""
    shape = jnp.broadcast_shapes(*[tuple(np.shape(a)) for a in map(unwrap, args)])
    return tuple(broadcast_to(a if isinstance(a, MutableArray) else
                              new(jnp.asarray(unwrap(a))), shape) for a in args)


def sliding_window_view(x: MutableArray, window_shape: Any, axis: Any = None, *,
                        subok: bool = False, writeable: bool = False) -> Any:
    """All windows along axes, as a read-only view."""
    if writeable:
        raise ArgumentError("sliding_window_view(writeable=True): windows share elements.",
                            where=user_source(), fix="write into the array itself")
    places = np.arange(math.prod(x.shape)).reshape(x.shape)
    windows = np.lib.stride_tricks.sliding_window_view(places, window_shape, axis)
    known = np.array(windows)
    return x.through(ReadOnly(lambda v: jnp.reshape(v, (-1,))[known]),
                  lambda s: np.broadcast_to(np.empty((), np.int8), known.shape))


def viewed(x: MutableArray, dtype: Any = None, type: Any = None) -> Any:
    """x.view(dtype): the same bytes as numbers of another dtype of the same width."""
    if type is not None or (
            isinstance(dtype, builtin_type) and issubclass(dtype, np.ndarray)):
        raise ArgumentError("view takes a dtype, not a class of arrays.", where=user_source())
    if dtype is None:
        return x[...]
    as_dtype = dtypes.as_dtype(dtype)
    if as_dtype == x.dtype:
        return x[...]
    if as_dtype.itemsize == x.dtype.itemsize and "b" not in (
            dtypes.kind(as_dtype), dtypes.kind(x.dtype)) and "c" not in (
            dtypes.kind(as_dtype), dtypes.kind(x.dtype)):
        return x.through(Bits(as_dtype), lambda s: s)
    return x.through(ReadOnly(lambda v: view_as(v, as_dtype)),
                  lambda s: np.empty(view_as(x.value, as_dtype).shape, np.int8))


builtin_type = type

_BY_NAME: dict[str, Any] = {f.__name__: f for f in (
    transpose, reshape, ravel, expand_dims, squeeze, swapaxes, moveaxis, rollaxis,
    matrix_transpose, flip, rot90, array_split, split, unstack, real, imag, diagonal, diag,
    broadcast_to)}
_BY_NAME["permute_dims"] = transpose
_BY_NAME["flipud"] = lambda m: flip(m, 0)
_BY_NAME["fliplr"] = lambda m: flip(m, 1)
_BY_NAME["vsplit"] = lambda ary, parts: split(ary, parts, 0)
_BY_NAME["hsplit"] = lambda ary, parts: split(ary, parts, 1 if ary.ndim > 1 else 0)
_BY_NAME["dsplit"] = lambda ary, parts: split(ary, parts, 2)

# by the function of NumPy; the first argument is a mutable array
VIEWS: Final[Mapping[Any, Callable[..., Any]]] = MappingProxyType({
    **{getattr(np, name): f for name, f in _BY_NAME.items()},
    np.lib.stride_tricks.sliding_window_view: sliding_window_view})
