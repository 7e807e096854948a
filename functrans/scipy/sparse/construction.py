"""Sparse arrays of diagonals and at random, and what is put together of others."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random as random_numbers
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import random_key
from functrans.scipy.sparse.arithmetic import CLASSES, SparseArithmetic, is_sparse, spmatrix
from functrans.scipy.sparse.places import of_columns
from functrans.scipy.sparse.reading import sizes_of, wrong
from functrans.sparse.bcoo import BCOO
from functrans.typing import Array, ArrayLike

_DEFAULT = object()


def _in_format(made: Any, format: str | None) -> SparseArithmetic:
    found: SparseArithmetic = made if format is None else made.asformat(format)
    return found


def _of(mat: BCOO, format: str, matrix: bool = False) -> SparseArithmetic:
    if (format, matrix) not in CLASSES:
        raise ArgumentError(f"functrans.scipy.sparse: the format {format!r}.", where=user_source(),
                            fix="'coo', 'csr', 'csc', 'dia', 'bsr', 'lil' or 'dok'")
    made: SparseArithmetic = CLASSES[format, matrix]._of(mat)
    return made


def diags_array(diagonals: Sequence[ArrayLike] | ArrayLike, /, *, offsets: Any = 0,
                shape: tuple[int, int] | None = None, format: str | None = None,
                dtype: Any = _DEFAULT) -> SparseArithmetic:
    """The array with given diagonals, each a vector or one number, at `offsets` from the main one.

    The shape is the least square that has them unless given. Values may be traced. Raises
    ShapeError for a diagonal that is too long or too short.

    >>> from functrans.scipy import sparse
    >>> sparse.diags_array([[1.0, 2.0], [3.0]], offsets=[0, 1]).toarray().tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """
    return _diagonals("diags_array", diagonals, offsets, shape, format, dtype, False)


def diags(diagonals: Sequence[ArrayLike] | ArrayLike, offsets: Any = 0,
          shape: tuple[int, int] | None = None, format: str | None = None,
          dtype: Any = _DEFAULT) -> SparseArithmetic:
    """The matrix with given diagonals; see `diags_array`.

    >>> from functrans.scipy import sparse
    >>> sparse.diags([1.0, -1.0], [0, 1], shape=(2, 3)).toarray().tolist()
    [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]
    """
    return _diagonals("diags", diagonals, offsets, shape, format, dtype, True)


def _diagonals(name: str, diagonals: Any, offsets: Any, shape: Any, format: str | None, dtype: Any,
               matrix: bool) -> SparseArithmetic:
    if np.ndim(offsets) == 0:
        is_one = not isinstance(diagonals, (list, tuple)) or not diagonals or \
            jnp.ndim(diagonals[0]) == 0
        rows = [jnp.atleast_1d(jnp.asarray(diagonals if is_one else diagonals[0]))]
    else:
        rows = [jnp.atleast_1d(jnp.asarray(d)) for d in diagonals]
    numbers = [operator.index(k) for k in np.atleast_1d(np.asarray(offsets)).tolist()]
    if len(rows) != len(numbers):
        raise wrong(name, f"{len(rows)} diagonals at {len(numbers)} offsets.", "an offset for each")
    if shape is None:
        n = rows[0].shape[0] + abs(numbers[0])
        shape = (n, n)
    m, n = sizes_of(name, shape, (2,))
    if dtype is _DEFAULT or dtype is None:
        found: Any = jnp.result_type(*rows)
        if dtypes.kind(found) not in "fc" and dtype is _DEFAULT:
            found = dtypes.default_float()
    else:
        found = dtype
    width = max([0, *[min(m + k, n - k) + max(0, k) for k in numbers]])
    table = jnp.zeros((len(rows), width), found)
    for k, (row, offset) in enumerate(zip(rows, numbers)):
        start = max(0, offset)
        length = min(m + min(offset, 0), n - max(offset, 0))
        if length < 0:
            raise wrong(name, f"the offset {offset} is out of bounds of {m} by {n}.")
        if row.shape[0] not in (1, length):
            raise wrong(name, f"diagonal {k} of length {row.shape[0]} at offset {offset} of {m} by "
                        f"{n}.", f"length {length}, or one number")
        table = table.at[k, start:start + length].set(row.astype(found))
    made = CLASSES["dia", matrix]((table, numbers), shape=(m, n))
    return _in_format(made, format)


def spdiags(data: ArrayLike, diags: ArrayLike, m: int | tuple[int, int] | None = None,
            n: int | None = None, format: str | None = None) -> SparseArithmetic:
    """The m x n matrix whose diagonals are rows of `data`, from column 0 on; see `dia_array`.

    >>> from functrans.scipy import sparse
    >>> sparse.spdiags([[1.0, 2.0], [3.0, 4.0]], [0, 1], 2, 2).toarray().tolist()
    [[1.0, 4.0], [0.0, 2.0]]
    """
    rows = jnp.atleast_2d(jnp.asarray(data))
    if m is None and n is None:
        shape: Any = (rows.shape[1], rows.shape[1])
    else:
        shape = m if n is None else (m, n)
    return _in_format(CLASSES["dia", True]((rows, diags), shape=shape), format)


def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float,
              format: str | None = None) -> SparseArithmetic:
    """The m x n array with ones on diagonal `k`.

    >>> from functrans.scipy import sparse
    >>> sparse.eye_array(2, 3, k=1).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return _ones(m, n, k, dtype, format, False)


def eye(m: int, n: int | None = None, k: int = 0, dtype: Any = float,
        format: str | None = None) -> SparseArithmetic:
    """The m x n matrix with ones on diagonal `k`.

    >>> from functrans.scipy import sparse
    >>> sparse.eye(2).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _ones(m, n, k, dtype, format, True)


def identity(n: int, dtype: Any = "d", format: str | None = None) -> SparseArithmetic:
    """The matrix with ones on the diagonal.

    >>> from functrans.scipy import sparse
    >>> sparse.identity(2, dtype="float32").toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _ones(n, n, 0, dtype, format, True)


def _ones(m: Any, n: Any, k: Any, dtype: Any, format: str | None, matrix: bool
          ) -> SparseArithmetic:
    rows, columns = sizes_of("eye", (m, m if n is None else n))
    k = operator.index(k)
    width = max(0, min(rows + k, columns))
    made = CLASSES["dia", matrix]((jnp.ones((1, width), dtype), [k]), shape=(rows, columns))
    return _in_format(made, format)


def random_array(shape: tuple[int, ...], *, density: float = 0.01, format: str = "coo",
                 dtype: Any = None, rng: Array | int | None = None,
                 data_sampler: Callable[..., ArrayLike] | None = None,
                 random_state: Array | int | None = None) -> SparseArithmetic:
    """An array of random places and values, uniform in [0, 1) unless `data_sampler(size=)` draws.

    `rng` is a key of `functrans.random` or an integer seed. `density` is the part of all elements
    that are stored. Raises ArgumentError for a density out of [0, 1].

    >>> import functrans as ft
    >>> from functrans.scipy import sparse
    >>> m = sparse.random_array((10, 10), density=0.2, rng=ft.random.key(0))
    >>> m.nnz, m.shape
    (20, (10, 10))
    """
    return _random("random_array", shape, density, format, dtype,
                   rng if random_state is None else random_state, data_sampler, False)


def random(m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None,
           rng: Array | int | None = None, data_rvs: Callable[..., ArrayLike] | None = None, *,
           random_state: Array | int | None = None) -> SparseArithmetic:
    """An m x n matrix of random places and values; see `random_array`.

    >>> from functrans.scipy import sparse
    >>> sparse.random(4, 5, 0.5, rng=1).nnz
    10
    """
    return _random("random", (m, n), density, format, dtype,
                   rng if random_state is None else random_state, data_rvs, True)


def rand(m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None,
         rng: Array | int | None = None, *, random_state: Array | int | None = None
         ) -> SparseArithmetic:
    """An m x n matrix of random places and uniform values; see `random_array`.

    >>> from functrans.scipy import sparse
    >>> sparse.rand(4, 5, 0.5, rng=1).nnz
    10
    """
    return random(m, n, density, format, dtype, rng, random_state=random_state)


def _random(name: str, shape: Any, density: float, format: str, dtype: Any, rng: Any,
            sampler: Any, matrix: bool) -> SparseArithmetic:
    sizes = sizes_of(name, shape)
    if not 0 <= density <= 1:
        raise ArgumentError(f"functrans.scipy.sparse.{name}: density={density}.",
                            where=user_source(), why="it is a part of all elements.",
                            fix="a number from 0 to 1")
    key = random_key(f"sparse.{name}", rng)
    most = math.prod(sizes)
    count = round(density * most)
    places, values = random_numbers.split(key)
    if most <= 2**22 or is_traced(places):
        flat: Any = random_numbers.choice(places, most, (count,), replace=False) if count else \
            np.zeros(0, np.int64)
    else:
        flat = _distinct(places, most, count)
    dtype = dtypes.default_float() if dtype is None else np.dtype(dtypes.as_dtype(dtype))
    if sampler is not None:
        data = jnp.asarray(sampler(size=count)).astype(dtype)
    elif dtypes.kind(dtype) in "iu":
        low, high = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
        data = random_numbers.randint(values, (count,), low, high, dtype)
    elif dtypes.kind(dtype) == "b":
        data = jnp.ones(count, bool)
    elif dtypes.kind(dtype) == "c":
        pair = random_numbers.uniform(values, (2, count), jnp.zeros(0, dtype).real.dtype)
        data = (pair[0] + 1j * pair[1]).astype(dtype)
    else:
        data = random_numbers.uniform(values, (count,), dtype)
    columns: Any = np.unravel_index(np.asarray(flat, np.int64), sizes) if not is_traced(flat) \
        else jnp.unravel_index(flat, sizes)
    return _of(of_columns(list(columns), data, sizes, is_unique=True), format, matrix)


def _distinct(key: Array, most: int, count: int) -> Any:
    """Distinct places of many more: those drawn anew are few."""
    found = np.zeros(0, np.int64)
    while found.size < count:
        key, now = random_numbers.split(key)
        more = random_numbers.randint(now, (2 * (count - found.size) + 16,), 0, most, np.int64)
        joined, first = np.unique(np.r_[found, np.asarray(more)], return_index=True)
        found = joined[np.argsort(first)][:count]
    return found


def is_matrix(*xs: Any) -> bool:
    """Whether a result is a matrix: where an operand is, or none is sparse, and none an array."""
    sparse = [x for x in xs if is_sparse(x)]
    return all(isinstance(x, spmatrix) or type(x).__name__.endswith("_matrix") for x in sparse)


def square(name: str, x: Any) -> int:
    """The size of a square matrix."""
    if len(x.shape) != 2 or x.shape[0] != x.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse.{name}: a matrix of shape {x.shape}.",
                         where=user_source(), why="it is square.")
    return int(x.shape[0])
