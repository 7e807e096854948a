"""What constructors of sparse arrays take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.arithmetic import bcoo_of, is_sparse
from functrans.scipy.sparse.places import index_math, known_places, of_columns
from functrans.sparse.base import check_index_dtype, index_dtype_for
from functrans.sparse.bcoo import BCOO, bcoo_fromdense
from functrans.typing import Array


def wrong(name: str, what: str, fix: str = "") -> ShapeError:
    """The error for parts that do not fit."""
    return ShapeError(f"functrans.scipy.sparse.{name}: {what}", where=user_source(), fix=fix)


def is_shape(arg: Any) -> bool:
    """Whether an argument is a shape: a tuple of integers."""
    return isinstance(arg, tuple) and len(arg) > 0 and all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in arg)


def sizes_of(name: str, shape: Any, ranks: Sequence[int] = ()) -> tuple[int, ...]:
    """A shape of known sizes."""
    try:
        sizes = tuple(int(n) for n in shape)
    except TypeError:
        raise wrong(name, f"shape={shape!r}.", "shape=(m, n)") from None
    if any(n < 0 for n in sizes) or (ranks and len(sizes) not in ranks):
        raise wrong(name, f"shape={sizes}.", "sizes from 0 on" if any(n < 0 for n in sizes) else
                    f"{' or '.join(map(str, ranks))} axes")
    return sizes


def typed(data: Any, dtype: Any) -> Array:
    """Values as an array, of a dtype if it is given."""
    found = jnp.asarray(data)
    return found if dtype is None else found.astype(dtype)


def places_of(name: str, part: Any, sizes: tuple[Any, ...]) -> Array:
    """Indices as an array of int32 or int64."""
    if isinstance(part, (list, tuple, range)) and not len(part):
        part = np.zeros(0, np.int32)
    found = part if is_traced(part) else np.asarray(part)
    check_index_dtype(f"functrans.scipy.sparse.{name}", found)
    dtype = index_dtype_for(found.dtype, sizes) if np.dtype(found.dtype).itemsize < 8 or \
        is_traced(found) else index_dtype_for(np.int32, (*sizes, *map(int, _bounds(found))))
    made: Array = index_math(lambda xp, at: at.astype(dtype), found)
    return made


def _bounds(found: Any) -> list[int]:
    return [int(np.abs(found).max())] if found.size else []


def inside(name: str, numbers: Any, size: Any, what: str) -> None:
    """Raise where known indices are out of bounds."""
    if is_traced(numbers) or not numbers.size:
        return
    at = np.asarray(numbers)
    if at.min() < 0 or at.max() >= size:
        raise ArgumentError(f"functrans.scipy.sparse.{name}: {what} from {at.min()} to {at.max()}.",
                            where=user_source(), why=f"they are from 0 to {size - 1}.")


def read_coordinates(name: str, arg: Any, shape: Any, dtype: Any, nse: int | None,
                     ranks: Sequence[int] = (2,)) -> BCOO:
    """The coordinates of what all formats take: shapes, (data, coords), dense and sparse arrays."""
    if is_sparse(arg):
        mat = bcoo_of(arg)
        if shape is not None and tuple(shape) != mat.shape:
            raise wrong(name, f"shape={tuple(shape)} of an array of shape {mat.shape}.",
                        "x.reshape(shape)")
        mat = mat if dtype is None else mat.with_data(mat.data.astype(dtype))
    elif is_shape(arg):
        sizes = sizes_of(name, arg, ranks)
        empty = jnp.zeros(0, dtypes.default_float() if dtype is None else dtype)
        return of_columns([np.zeros(0, np.int32)] * len(sizes), empty, sizes, True, True)
    elif isinstance(arg, tuple) and len(arg) == 2:
        mat = _pairs(name, arg, shape, dtype)
    elif isinstance(arg, tuple):
        raise wrong(name, f"a tuple of {len(arg)} parts.", "(data, (row, col)), a shape, or an "
                    "array")
    else:
        x = typed(arg, dtype)
        if x.ndim == 0:
            raise wrong(name, "a number.", "an array, or a shape (m, n)")
        if shape is not None and tuple(shape) != tuple(x.shape):
            raise wrong(name, f"shape={tuple(shape)} of an array of shape {x.shape}.")
        if x.ndim not in ranks and 0 not in ranks:
            if x.ndim != 1 or 2 not in ranks:
                raise wrong(name, f"an array of shape {x.shape}.",
                            f"{' or '.join(map(str, ranks))} axes; coo_array has any number")
            x = x[None]
        if nse is None and is_traced(x):
            known_places(name, x, why="how much is stored depends on the values.",
                         fix=f"{name}(x, nse=n), which has room for n elements")
        mat = bcoo_fromdense(x, nse=nse)
    if 0 not in ranks and len(mat.shape) not in ranks:
        raise wrong(name, f"an array of shape {mat.shape}.",
                    f"{' or '.join(map(str, ranks))} axes; coo_array has any number")
    return mat


def _pairs(name: str, arg: Any, shape: Any, dtype: Any) -> BCOO:
    values, columns = arg
    if not isinstance(columns, (tuple, list)) and jnp.ndim(columns) < 2:
        columns = (columns,)
    data = typed(values, dtype)
    columns = [places_of(name, c, tuple(shape or ())) for c in columns]
    if data.ndim != 1 or any(c.shape != data.shape for c in columns):
        raise wrong(name, f"data of shape {data.shape} at indices of shapes "
                    f"{[c.shape for c in columns]}.", "(data, (row, col)), of one length")
    if shape is None:
        known = known_places(name, *columns, why="the shape is that of the largest.",
                             fix="shape=(m, n)")
        if not data.size:
            raise wrong(name, "no elements, and no shape.", "shape=(m, n)")
        shape = tuple(int(c.max()) + 1 for c in known)
    sizes = sizes_of(name, shape, (len(columns),))
    for k, (c, n) in enumerate(zip(columns, sizes)):
        inside(name, c, n, f"indices along axis {k}")
    return of_columns(columns, data, sizes)
