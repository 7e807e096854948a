"""Elements, rows, columns and parts of sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import IndexingError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse.places import columns_of, compact, of_columns, values_at
from functrans.sparse.base import OPERATIONS, JAXSparse
from functrans.sparse.bcoo import BCOO


def parsed(index: Any, shape: tuple[Any, ...]) -> list[Any]:
    """An index of each axis, and None for each new one; booleans as the numbers that they say."""
    parts: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, (str, bytes, float, complex)):
            raise IndexingError(f"a sparse array is indexed by {part!r}.", where=user_source(),
                                fix="integers, slices and vectors of integers or booleans")
        if isinstance(part, (list, np.ndarray, range)) and not is_traced(part):
            part = np.asarray(part)
            if part.size == 0:
                part = part.astype(np.int32)
        dtype = getattr(part, "dtype", None)
        if dtype is not None and np.dtype(dtype).kind == "b":
            if is_traced(part):
                raise IndexingError("a sparse array is indexed by booleans that are traced.",
                                    where=user_source(), why="their number gives the shape.",
                                    fix="numbers: jnp.nonzero(mask, size=n)[0]")
            part = np.asarray(part)
            axis = sum(p is not None for p in parts)
            if part.shape != shape[axis:axis + part.ndim]:
                raise IndexingError(f"booleans of shape {part.shape} for axes {axis} of {shape}.",
                                    where=user_source())
            parts += np.nonzero(part)
            continue
        parts.append(part)
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if given > len(shape):
        raise IndexingError(f"{given} indices for a sparse array of {len(shape)} axes.",
                            where=user_source())
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexingError("an index has one ellipsis at most.", where=user_source())
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[at:at + 1] = [slice(None)] * (len(shape) - given)
    return parts


def _checked(numbers: Any, axis: int, n: Any) -> Any:
    """Numbers along an axis, from 0 on; IndexingError where known ones are out of bounds."""
    if not is_traced(numbers):
        numbers = np.asarray(numbers)
        if numbers.dtype.kind not in "iu":
            raise IndexingError(f"a sparse array is indexed by integers, not by {numbers.dtype}.",
                                where=user_source())
        if numbers.size and (numbers.min() < -n or numbers.max() >= n):
            wrong = numbers.min() if numbers.min() < -n else numbers.max()
            raise IndexingError(f"index {wrong} is out of bounds for axis {axis} of size {n}.",
                                where=user_source())
        return np.where(numbers < 0, numbers + n, numbers)
    return jnp.where(numbers < 0, numbers + n, numbers)


def taken(mat: BCOO, index: Any) -> Any:
    """The elements of an index: BCOO, or dense for single ones and for pairs of vectors."""
    if isinstance(index, JAXSparse):
        index = np.asarray(index.todense())
    parts = parsed(index, mat.shape)
    axes = [k for k, p in enumerate(parts) if p is not None]
    rank = {k: jnp.ndim(parts[k]) for k in axes if not isinstance(parts[k], slice)}
    vectors = [k for k, n in rank.items() if n]
    if len(rank) == len(axes) and (len(vectors) > 1 or not vectors) and len(axes) == len(parts):
        columns = [_checked(parts[k], n, mat.shape[n]) for n, k in enumerate(axes)]
        if not _is_outer(columns):
            columns = list(jnp.broadcast_arrays(*columns)) if any(map(is_traced, columns)) else \
                list(np.broadcast_arrays(*columns))
            found = values_at(mat, columns)
            return found if found.ndim < 2 else BCOO.fromdense(
                found, nse=found.size if is_traced(found) else None)
        shapes = iter(columns)
        parts = [np.ravel(c) if not is_traced(c) else jnp.ravel(c) for c in shapes]
        vectors = list(range(len(parts)))
    elif len(vectors) > 1:
        raise IndexingError("a sparse array takes vectors of numbers along one axis, or along all.",
                            where=user_source(), fix="x[rows][:, columns]")
    # one vector after the other, where the others are whole
    for number, k in enumerate(axes):
        if k in vectors:
            numbers = _checked(parts[k], number, mat.shape[number])
            if np.ndim(numbers) != 1:
                raise IndexingError(f"numbers of shape {np.shape(numbers)} along one axis.",
                                    where=user_source(), fix="x.toarray()[...]")
            mat = _rows(mat, numbers, number)
            parts[k] = slice(None)
    scalars = tuple([p if isinstance(p, slice) or p is None or is_traced(p) else int(p)
                     for p in parts])
    return _sliced(mat, scalars)


def _is_outer(columns: list[Any]) -> bool:
    """Whether numbers are those of a grid: (n, 1) and (1, m) or (m,)."""
    if len(columns) != 2:
        return False
    (a, b) = (jnp.shape(c) for c in columns)
    return len(a) == 2 and a[1] == 1 and (len(b) == 1 or (len(b) == 2 and b[0] == 1))


def _rows(mat: BCOO, numbers: Any, axis: int) -> BCOO:
    """The parts with given numbers along an axis; a number may occur twice."""
    if is_traced(numbers) or is_traced(mat.indices):
        place = [slice(None)] * mat.ndim
        place[axis] = jnp.asarray(numbers)  # type: ignore[call-overload]
        out: BCOO = OPERATIONS["getitem"](mat, tuple(place))
        return out
    mat = compact(mat)
    columns = [np.asarray(c) for c in columns_of(mat)]
    order = np.argsort(columns[axis], kind="stable")
    ordered = columns[axis][order]
    first = np.searchsorted(ordered, numbers, "left")
    counts = np.searchsorted(ordered, numbers, "right") - first
    new = np.repeat(np.arange(len(numbers)), counts)
    within = np.arange(new.size) - np.repeat(np.cumsum(counts) - counts, counts)
    picked = order[np.repeat(first, counts) + within]
    columns = [new if a == axis else c[picked] for a, c in enumerate(columns)]
    sizes = tuple(len(numbers) if a == axis else n for a, n in enumerate(mat.shape))
    return of_columns(columns, mat.data[picked], sizes, is_unique=mat.unique_indices)


def _sliced(mat: BCOO, parts: tuple[Any, ...]) -> Any:
    """Numbers and slices along axes, and new axes of size 1."""
    if is_traced(mat.indices) or any(is_traced(p) for p in parts):
        return OPERATIONS["getitem"](mat, parts)
    mat = compact(mat)
    columns = iter([np.asarray(c) for c in columns_of(mat)])
    kept: Any = np.ones(mat.nse, bool)
    found: list[Any] = []
    sizes: list[Any] = []
    axis = -1
    for part in parts:
        if part is None:
            found.append(np.zeros(mat.nse, np.int32))
            sizes.append(1)
            continue
        axis += 1
        n, column = mat.shape[axis], next(columns)
        if not isinstance(part, slice):
            kept = kept & (column == int(_checked(part, axis, n)))
            continue
        try:
            start, stop, step = part.indices(n)
        except TypeError:
            raise IndexingError(f"the slice {part} of a sparse array.", where=user_source(),
                                fix="bounds that are known") from None
        size = len(range(start, stop, step))
        away = (column - start) * (1 if step > 0 else -1)
        kept = kept & (away >= 0) & (away % abs(step) == 0) & (away // abs(step) < size)
        found.append(away // abs(step))
        sizes.append(size)
    numbers = np.flatnonzero(kept)
    data = mat.data if numbers.size == mat.nse else mat.data[numbers]
    if not sizes:
        return data.sum().astype(mat.dtype)
    return of_columns([c[numbers] for c in found], data, tuple(sizes),
                      is_unique=mat.unique_indices)
