"""Positions and counts of more than 2^31 - 1 elements are int64, whatever the default integer is.

By types: such arrays take gigabytes. Fewer are of the default integer, as in JAX.
"""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.dtypes import position_dtype

MOST = 2**31 - 1
ALONG = {
    "argmax": jnp.argmax, "argmin": jnp.argmin, "nanargmax": jnp.nanargmax,
    "nanargmin": jnp.nanargmin, "argsort": jnp.argsort,
    "argsort, descending": lambda x: jnp.argsort(x, descending=True),
    "argpartition": lambda x: jnp.argpartition(x, 3), "lexsort": lambda x: jnp.lexsort((x,)),
    "nonzero": lambda x: jnp.nonzero(x, size=5)[0],
    "flatnonzero": lambda x: jnp.flatnonzero(x, size=5),
    "argwhere": lambda x: jnp.argwhere(x, size=5), "where": lambda x: jnp.where(x, size=5)[0],
    "count_nonzero": jnp.count_nonzero, "searchsorted": lambda x: jnp.searchsorted(x, x[:3]),
    "searchsorted, compare_all": lambda x: jnp.searchsorted(x, x[:3], method="compare_all"),
    "digitize": lambda x: jnp.digitize(x[:3], x),
    "unique_index": lambda x: jnp.unique(x, return_index=True, size=4)[1],
    "unique_inverse": lambda x: jnp.unique(x, return_inverse=True, size=4)[1],
    "unique_counts": lambda x: jnp.unique(x, return_counts=True, size=4)[1],
    "intersect1d": lambda x: jnp.intersect1d(x, x[:3], return_indices=True, size=3)[1],
    "lax.argmax": lambda x: lax.argmax(x, 0), "lax.argmin": lambda x: lax.argmin(x, 0),
    "lax.top_k": lambda x: lax.top_k(x, 3)[1],
}


def dtype_of(fun, *shape, dtype="float32"):
    return ft.eval_shape(fun, ft.ShapeDtypeStruct(shape, dtype)).dtype


@pytest.mark.parametrize("name", ALONG)
def test_positions_along_an_axis(name):
    fun = ALONG[name]
    assert dtype_of(fun, MOST + 8) == np.int64
    assert dtype_of(fun, MOST - 8) == np.int32
    with ft.default_dtypes("float32", "int64"):
        assert dtype_of(fun, 100) == (np.int32 if name.startswith("lax.") else np.int64)


def test_positions_of_all_elements():
    """What counts is the size of what a position is in, and not that of the array."""
    assert dtype_of(jnp.argmax, 2**16, 2**16) == np.int64
    assert dtype_of(lambda x: jnp.argmax(x, axis=1), 2**16, 2**16) == np.int32
    assert dtype_of(lambda x: jnp.argsort(x, axis=0), 2**16, 2**16) == np.int32
    assert dtype_of(jnp.count_nonzero, 2**16, 2**16) == np.int64
    assert dtype_of(lambda i: jnp.ravel_multi_index((i, i), (2**16, 2**16), mode="clip"), 4,
                    dtype="int32") == np.int64


def test_a_symbolic_size_is_taken_to_fit():
    assert position_dtype(ft.Dim("n")) == np.int32


@pytest.mark.thorough
def test_a_binary_search_does_not_overflow():
    """The sum of the ends of an interval does not fit where the ends do."""
    size = 2**30 + 8
    assert int(jnp.searchsorted(np.zeros(size, np.int8), np.int8(1))) == size
