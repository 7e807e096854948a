"""64-bit dtypes that are taken to be the 32-bit ones of their kind, while a setting says so."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from functrans.core import config

__all__ = ["narrowed"]

_NARROWED: Final[dict[np.dtype[Any], np.dtype[Any]]] = {
    np.dtype(wide): np.dtype(narrow) for wide, narrow in (
        ("float64", "float32"), ("complex128", "complex64"), ("int64", "int32"),
        ("uint64", "uint32"))}


def narrowed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of 32 bits in place of one of 64 where `ft.config.narrow_64bit` says so.

    >>> with config.narrow_64bit():
    ...     narrowed(np.dtype("uint64")), narrowed(np.dtype("complex64"))
    (dtype('uint32'), dtype('complex64'))
    """
    if dtype.itemsize >= 8 and config.current().narrows:
        return _NARROWED.get(dtype, dtype)
    return dtype
