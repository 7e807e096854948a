"""Sums of sparse arrays, each place once and in order, and what a sparse array is the sum of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import kind
from functrans.numpy.common import is_traced
from functrans.primitives.sparse_sums import sum_places_p
from functrans.sparse.base import index_dtype_for
from functrans.sparse.bcoo import BCOO, full_batch
from functrans.typing import Array

__all__ = ["Part", "made_of", "parts_of", "sum_of_parts", "without_zeros"]

Part = tuple[Array, ...]
"""Elements and their index vectors, or elements, columns and pointers of compressed rows."""


def made_of(mat: BCOO, parts: Sequence[Part]) -> BCOO:
    """`mat`, which remembers while a program is traced what it has one after the other.

    The sum of its duplicates then reads the parts: what would join them is never computed.
    """
    if not mat.n_batch and (is_traced(mat.data) or is_traced(mat.indices)):
        mat._parts = (mat.data, mat.indices, tuple(parts))
    return mat


def parts_of(mat: BCOO) -> Sequence[Part]:
    """The parts that `mat` is made of; itself, where it is not known of any others."""
    if mat._parts is not None:
        data, indices, parts = mat._parts
        if mat.data is data and mat.indices is indices:
            return parts
    mat = full_batch(mat)
    return ((mat.data, mat.indices),)


def without_zeros(part: Part, sizes: Sequence[Any]) -> Part:
    """A part where elements that are zero have no place."""
    data, at, *pointers = part
    zero = jnp.all(data == 0, axis=tuple(range(at.ndim - (not pointers), data.ndim)))
    outside = jnp.asarray(sizes[-1] if pointers else tuple(sizes), dtype=at.dtype)
    return (data, jnp.where(zero if pointers else zero[..., None], outside, at), *pointers)


def sum_of_parts(parts: Sequence[Part], sizes: Sequence[Any], room: Any, dtype: Any,
                 to_rows: bool = False) -> tuple[Array, ...]:
    """Data (*batch, room, *dense) and the indices (*batch, room, len(sizes)) of the sum of parts.

    If `to_rows`, columns and pointers are in place of indices. Parts are all of compressed rows,
    or none is. What is left over of `room` stores zeros out of bounds.
    """
    compressed, sizes = len(parts[0]) == 3, tuple(sizes)
    if kind(dtype) == "b":
        counts, *where = sum_of_parts([(x.astype("int32"), *at) for x, *at in parts], sizes, room,
                                      np.dtype(np.int32), to_rows)
        return counts != 0, *where
    if not sizes:
        ones = [(x, jnp.zeros((*at.shape[:-1], 1), at.dtype)) for x, at in parts]
        total, first = sum_of_parts(ones, (1,), room, dtype)
        return total, first[..., :0]
    shape = parts[0][1].shape
    n = len(shape) - (1 if compressed else 2)
    batch, lanes = shape[:n], math.prod(shape[:n])
    index = index_dtype_for(jnp.result_type(*[p.dtype for _, *at in parts for p in at]),
                            (*sizes, room))
    data = [x.astype(dtype).reshape(lanes, *x.shape[n:]) for x, *_ in parts]
    plain = data[0].ndim == 2
    operands: list[Any] = []
    for x, (_, *at) in zip(data, parts, strict=True):
        operands.append(x if plain else jnp.zeros(x.shape[:2], dtype))
        operands += [p.astype(index).reshape(lanes, *p.shape[n:]) for p in at]
    sums, *places = sum_places_p.bind(*operands, sizes=sizes, room=room, compressed=compressed,
                                      to_rows=to_rows, numbered=not plain)
    if not plain:
        places, numbers = places[:-len(parts)], places[-len(parts):]
        sums = jnp.zeros((lanes, room, *data[0].shape[2:]), dtype)
        lane = jnp.arange(lanes, dtype=index)[:, None]
        for x, number in zip(data, numbers, strict=True):
            sums = sums.at[lane, number].add(x, mode="drop")
    return tuple([x.reshape(*batch, *x.shape[1:]) for x in (sums, *places)])
