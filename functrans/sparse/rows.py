"""Compressed rows: coordinates from pointers, pointers from rows, and products by rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans._runtime import coordinates_of_rows, csr_product
from functrans.core.dtypes import kind
from functrans.numpy.common import on_host
from functrans.primitives.row_coordinates import row_coordinates_p
from functrans.primitives.sparse import csr_dot_p
from functrans.sparse.base import known
from functrans.typing import Array

__all__ = ["coordinates", "csr_matmul", "csr_matmul_transposed", "pointers"]


def coordinates(indices: Sequence[Array], indptr: Sequence[Array]) -> Array:
    """The index vectors of the elements of compressed rows, of several matrices in turn.

    Elements of no row have one that does not exist. All are of the same batch axes.
    """
    if len(indices) == 1:
        at_once = known(coordinates_of_rows, indices[0], indptr[0])
        if at_once is not NotImplemented:
            pairs: Array = at_once
            return pairs
    batch = indices[0].shape[:-1]
    lanes, index = math.prod(batch), jnp.result_type(*indices, *indptr)
    operands = [x.astype(index).reshape(lanes, x.shape[-1])
                for pair in zip(indices, indptr, strict=True) for x in pair]
    found: Array = row_coordinates_p.bind(*operands)
    return found.reshape(*batch, *found.shape[1:])


def pointers(rows: Array, count: int, dtype: Any) -> Array:
    """Where each row begins among sorted row numbers, and where the last ends."""
    if on_host(rows):
        counts = np.bincount(np.asarray(rows), minlength=count)[:count]
        return jnp.asarray(np.concatenate([[0], np.cumsum(counts)]).astype(dtype))
    found = jnp.zeros((count + 1,), dtype).at[rows + 1].add(
        1, mode="drop", indices_are_sorted=True, wrap_negative_indices=False)
    return jnp.cumsum(found).astype(dtype)


def csr_matmul(data: Array, indices: Array, indptr: Array, x: Array) -> Array:
    """Compressed rows times the columns of x, or times a vector."""
    at_once = csr_product(data, indices, indptr, x, x.shape[0], False)
    out: Array = at_once if at_once is not NotImplemented else \
        _product(data, indices, indptr, x, x.shape[0], False)
    return out


def csr_matmul_transposed(data: Array, indices: Array, indptr: Array, x: Array,
                          columns: int) -> Array:
    """The transpose of compressed rows times the columns of x, or times a vector."""
    at_once = csr_product(data, indices, indptr, x, columns, True)
    out: Array = at_once if at_once is not NotImplemented else \
        _product(data, indices, indptr, x, columns, True)
    return out


def _product(data: Array, indices: Array, indptr: Array, x: Array, columns: int,
             transpose: bool) -> Array:
    dtype, index = jnp.result_type(data, x), jnp.result_type(indices, indptr)
    if kind(dtype) == "b":
        return _product(data.astype("int32"), indices, indptr, x, columns, transpose) > 0
    wide = x.astype(dtype).reshape(x.shape[0], -1) if x.size else \
        jnp.zeros((x.shape[0], math.prod(x.shape[1:])), dtype)
    out = csr_dot_p.bind(data.astype(dtype), indices.astype(index), indptr.astype(index), wide,
                         columns=columns, transpose=transpose)
    return out.reshape(out.shape[0], *x.shape[1:])
