"""Sparse arrays from nothing: without elements, with ones on a diagonal, random ones."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.numpy.common import shape_tuple
from functrans.sparse.base import JAXSparse, per_lane, vectors
from functrans.sparse.bcoo import BCOO
from functrans.sparse.bcsr import BCSR
from functrans.sparse.formats import COO, CSC, CSR
from functrans.typing import Array

__all__ = ["empty", "eye", "random_bcoo"]


def _formatted(mat: BCOO, name: str, sparse_format: str) -> JAXSparse:
    if sparse_format == "bcoo":
        return mat
    if sparse_format == "bcsr":
        return BCSR.from_bcoo(mat)
    if sparse_format == "coo":
        return COO.from_bcoo(mat)
    if sparse_format in ("csr", "csc"):
        m = BCSR.from_bcoo(mat if sparse_format == "csr" else mat.transpose())
        return (CSR if sparse_format == "csr" else CSC)((m.data, m.indices, m.indptr),
                                                        shape=mat.shape)
    raise ArgumentError(f"{name}: there is no sparse_format {sparse_format!r}.",
                        where=user_source(), fix="'bcoo', 'bcsr', 'coo', 'csr' or 'csc'")


def empty(shape: Sequence[Any], dtype: Any = None, index_dtype: Any = "int32",
          sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0,
          nse: int = 0) -> JAXSparse:
    """A sparse array of zeros, with room for `nse` elements.

    >>> from functrans.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2,3], nse=0)
    """
    sizes = shape_tuple(shape, "empty")
    end = len(sizes) - operator.index(n_dense)
    if not 0 <= n_batch <= end <= len(sizes):
        raise ArgumentError(f"empty: {len(sizes)} axes have no n_batch={n_batch} and "
                            f"n_dense={n_dense}.", where=user_source())
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    dtype = dtypes.default_float() if dtype is None else dtype
    outside = jnp.broadcast_to(jnp.asarray(np.asarray(sparse, np.dtype(index_dtype))),
                               (*batch, nse, len(sparse)))
    mat = BCOO((jnp.zeros((*batch, nse, *dense), dtype), outside), shape=sizes,
               indices_sorted=True, unique_indices=True)
    return _formatted(mat, "empty", sparse_format)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
        sparse_format: str = "bcoo", *, n_batch: int = 0, n_dense: int = 0) -> JAXSparse:
    """The N x M matrix with ones on diagonal `k`.

    >>> from functrans.experimental import sparse
    >>> sparse.eye(2, 3, 1).todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    first, last = max(0, -k), min(rows, columns - k)
    at = np.arange(first, max(first, last))
    indices = np.stack([at, at + k], axis=-1).astype(np.dtype(index_dtype))
    data = jnp.ones((len(at),), dtypes.default_float() if dtype is None else dtype)
    mat = BCOO((data, indices), shape=(rows, columns), indices_sorted=True, unique_indices=True)
    mat = mat.update_layout(n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
    return _formatted(mat, "eye", sparse_format)


def random_bcoo(key: Array, shape: Sequence[Any], *, dtype: Any = None, indices_dtype: Any = None,
                nse: float | int = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] = random.uniform, **kwds: Any) -> BCOO:
    """A random BCOO array of `nse` elements, or of the part `nse` < 1 of all, in each batch.

    `generator(key, shape=, dtype=, **kwds)` draws the values. Raises ArgumentError where there are
    not so many elements.

    >>> import functrans as ft
    >>> from functrans.experimental import sparse
    >>> sparse.random_bcoo(ft.random.key(0), (10, 10), nse=0.1)
    BCOO(float32[10,10], nse=10)
    """
    sizes = shape_tuple(shape, "random_bcoo")
    end = len(sizes) - operator.index(n_dense)
    if not 0 <= n_batch <= end <= len(sizes):
        raise ArgumentError(f"random_bcoo: {len(sizes)} axes have no n_batch={n_batch} and "
                            f"n_dense={n_dense}.", where=user_source())
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    most = math.prod(sparse)
    count = math.ceil(nse * most) if 0 < nse < 1 else operator.index(nse)  # type: ignore[arg-type]
    if count < 0 or (unique_indices and count > most):
        raise ArgumentError(f"random_bcoo: nse={nse} of {most} elements.", where=user_source())
    dtype = dtypes.default_float() if dtype is None else dtype
    index = np.dtype(dtypes.default_int() if indices_dtype is None else indices_dtype)
    if most > np.iinfo(index).max:
        raise ArgumentError(f"random_bcoo: {index} has no room for {most} places.",
                            where=user_source(), fix="indices_dtype='int64'")
    keys = random.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)

    def lane(key: Array) -> Array:
        if not sparse or not most:
            return jnp.zeros((count, len(sparse)), index)
        flat = random.choice(key, most, shape=(count,), replace=not unique_indices)
        return vectors(flat, sparse, index)

    indices = per_lane(lane, 1)(keys[1:]) if math.prod(batch) else jnp.zeros((0,), index)
    mat = BCOO((data, indices.reshape(*batch, count, len(sparse))), shape=sizes,
               unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat


publish(globals(), __all__)
