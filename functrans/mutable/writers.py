"""What writes into an array besides `x[index] = value`: ufunc.at, copyto, put, place, sort, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import DTypeError, NotCoveredError, ShapeError
from functrans.core.source import user_source
from functrans.mutable.arrays import MutableArray, unwrap
from functrans.mutable.index import in_bounds, is_advanced, plain_index
from functrans.numpy.common import is_traced
from functrans.numpy.updates import UPDATES, update

__all__ = ["WRITERS", "sort_in_place", "update_at"]

_AT: Final[Mapping[Any, str]] = {np.add: "add", np.subtract: "subtract", np.multiply: "multiply",
              np.true_divide: "divide", np.power: "power", np.minimum: "min", np.maximum: "max",
              np.fmin: "min", np.fmax: "max"}


def _writable(x: Any, name: str) -> MutableArray:
    if not isinstance(x, MutableArray):
        raise NotCoveredError(
            f"{name} writes into an array that numpy_code did not make.", where=user_source(),
            why="only arrays of the call are mutable.",
            fix="x = np.array(x) inside of the function first")
    x.check_writable()
    return x


def update_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> None:
    """np.add.at(a, indices, b) and its kin: what an index names twice is changed twice."""
    x = _writable(a, f"np.{ufunc.__name__}.at")
    items = plain_index(tuple(map(unwrap, indices)) if isinstance(indices, tuple)
                        else unwrap(indices))
    in_bounds(items, x.shape)
    kind = _AT.get(ufunc)
    old = x.value
    if ufunc.nin == 1:
        function = getattr(jnp, ufunc.__name__, None)
        if function is None or ufunc.nout != 1:
            raise _no_at(ufunc)
        # applied again where an index repeats
        x.assign(old.at[items].apply(lambda v: jnp.astype(function(v), old.dtype)))
        return
    values = unwrap(b)
    values = values if hasattr(values, "dtype") or isinstance(values, (int, float, complex)) \
        else jnp.asarray(values)
    _check_kind(ufunc, x, values)
    if kind is None or (ufunc in (np.fmin, np.fmax) and dtypes.kind(x.dtype) == "f"):
        if is_advanced(items):
            raise _no_at(ufunc)
        x[indices] = getattr(jnp, ufunc.__name__)(unwrap(x[indices]), values)
        return
    x.assign(jnp.astype(update(old, items, values, UPDATES[kind]), old.dtype))


def _no_at(ufunc: np.ufunc) -> NotCoveredError:
    return NotCoveredError(
        f"np.{ufunc.__name__}.at with index arrays.", where=user_source(),
        why="repeated indices need an operation whose order does not matter.",
        fix=f"x[i] = np.{ufunc.__name__}(x[i], y) where no index repeats; add, subtract, multiply, "
            "divide, power, minimum and maximum have .at")


def _check_kind(ufunc: np.ufunc, x: MutableArray, values: Any) -> None:
    """NumPy's same_kind rule for what `ufunc(x[i], values)` writes into x."""
    result = dtypes.result_type(x.value, values)
    if ufunc is np.true_divide:
        result = dtypes.to_inexact_dtype(result)
    if not np.can_cast(result, x.dtype, "same_kind"):
        raise DTypeError(f"np.{ufunc.__name__}.at: a result of {result} is not written into an "
                         f"array of {x.dtype}.", where=user_source(),
                         why="NumPy's rule for results on the spot is casting='same_kind'.",
                         fix="make the array with dtype=float")


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """The elements of one array, broadcast, into another."""
    x = _writable(dst, "np.copyto")
    source = jnp.asarray(unwrap(src))
    if not getattr(source, "weak_type", False) and not np.can_cast(
            source.dtype, x.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(f"np.copyto: {source.dtype} is not cast to {x.dtype} by "
                         f"casting={casting!r}.", where=user_source(), fix="casting='unsafe'")
    if where is not True:
        source = jnp.where(unwrap(where), source, x.value)
    x[...] = source


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """A value on the diagonal of a matrix, or of an array of equal axes."""
    x = _writable(a, "np.fill_diagonal")
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim == 2:
        rows, columns = x.shape
        step = columns + 1
        end = rows * columns if wrap else min(rows, columns) * columns
        flat = np.arange(0, end, step)
        places: Any = (flat // columns, flat % columns)
    else:
        if len(set(x.shape)) != 1:
            raise ValueError("All dimensions of input must be of equal length")
        places = (np.arange(x.shape[0]),) * x.ndim
    value = unwrap(val)
    count = len(places[0])
    if np.ndim(value):
        value = jnp.resize(jnp.ravel(jnp.asarray(value)), (count,))
    x[places] = value


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Values at places of the flattened array; they repeat as long as there are places."""
    x = _writable(a, "np.put")
    places = jnp.ravel(jnp.asarray(unwrap(ind)))
    if mode == "clip":
        places = jnp.clip(places, 0, x.size - 1)
    elif mode == "wrap":
        places = places % x.size
    if not places.size:
        return
    values = jnp.resize(jnp.ravel(jnp.asarray(unwrap(v))), (places.size,))
    x.flat[places] = values


def place(arr: Any, mask: Any, vals: Any) -> None:
    """The first values where the mask holds, one after another, again from the first."""
    x = _writable(arr, "np.place")
    values = jnp.ravel(jnp.asarray(unwrap(vals)))
    chosen = jnp.astype(jnp.ravel(jnp.asarray(unwrap(mask))), bool)
    if not values.size:
        if not is_traced(chosen) and not np.any(np.asarray(chosen)):
            return
        raise ValueError("Cannot insert from an empty array!")
    which = (jnp.cumsum(jnp.astype(chosen, int)) - 1) % values.size
    x[...] = jnp.where(jnp.reshape(chosen, x.shape), jnp.reshape(values[which], x.shape),
                       x.value)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Values, repeated to the size of the array, where the mask holds."""
    x = _writable(a, "np.putmask")
    chosen = jnp.astype(jnp.asarray(unwrap(mask)), bool)
    if tuple(chosen.shape) != x.shape:
        raise ShapeError(f"np.putmask: a mask of shape {tuple(chosen.shape)} for an array of shape "
                         f"{x.shape}.", where=user_source())
    x[...] = jnp.where(chosen, jnp.resize(jnp.asarray(unwrap(values)), x.shape), x.value)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Values at places along an axis, as `take_along_axis` reads them."""
    x = _writable(arr, "np.put_along_axis")
    places = jnp.asarray(unwrap(indices))
    if axis is None:
        x.flat[places] = values
        return
    axis %= x.ndim
    index: list[Any] = []
    for d, size in enumerate(places.shape):
        line = jnp.arange(x.shape[d] if d != axis else size)
        index.append(places if d == axis else jnp.reshape(
            line, tuple(-1 if e == d else 1 for e in range(x.ndim))))
    x[tuple(index)] = values


def sort_in_place(x: MutableArray, name: str, function: Callable[[Any], Any]) -> None:
    """x.sort() and x.partition(k)."""
    _writable(x, name).assign(function(x.value))


WRITERS: Final[Mapping[Any, Callable[..., Any]]] = MappingProxyType({
    np.copyto: copyto, np.fill_diagonal: fill_diagonal, np.put: put, np.place: place,
    np.putmask: putmask, np.put_along_axis: put_along_axis})
