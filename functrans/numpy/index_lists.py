"""Lists inside of an index tuple, as in `x[[0, 2], :]`: they are index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.errors import IndexingError, shown
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import concatenate, expand_dims

__all__ = ["with_arrays"]


def with_arrays(index: Any) -> Any:
    """An index tuple with arrays in place of lists; any other index as it is.

    A list alone, `x[[0, 2]]`, stays: older NumPy took it for a tuple.
    Raises IndexingError for a list that is no array of integers or booleans.
    """
    if type(index) is not tuple or not any(type(item) is list for item in index):
        return index
    return tuple([_array(item) if type(item) is list else item for item in index])


def _array(items: list[Any]) -> Any:
    if _has_tracer(items):
        return _stacked(items)
    try:
        array = np.asarray(items)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if not array.size and array.dtype == np.float64:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iub":
        raise IndexingError(f"the list {shown(items)} in an index is no array of integers or "
                            "booleans.", where=user_source())
    return array


def _has_tracer(items: Any) -> bool:
    return any(map(_has_tracer, items)) if isinstance(items, list) else isinstance(items, Tracer)


def _stacked(items: Any) -> Any:
    """A list with traced integers in it, as an array."""
    if not isinstance(items, list):
        x: Any = items if isinstance(items, (Tracer, ArrayBase)) else np.asarray(items)
        if dtypes.kind(x.dtype) not in "iu":
            raise IndexingError(f"the list in an index holds {shown(items)}, which is no integer.",
                                where=user_source())
        wide = x.dtype.itemsize >= 4 and isinstance(x, (Tracer, ArrayBase))
        return x if wide else convert_element_type(x, np.int32)
    parts = [expand_dims(_stacked(item), (0,)) for item in items]
    widest = np.result_type(*[p.dtype for p in parts])
    return concatenate([convert_element_type(p, widest) for p in parts], 0)
