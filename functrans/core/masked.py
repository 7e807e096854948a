"""Masked arrays of NumPy are refused where arrays enter: their masks would be lost in silence."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.errors import NonArrayError
from functrans.core.source import user_source

__all__ = ["refuse_masked"]


def refuse_masked(x: Any) -> None:
    """Raise NonArrayError for a numpy.ma.MaskedArray; other ndarrays and scalars pass."""
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return
    if isinstance(x, np.ma.MaskedArray):
        raise NonArrayError(
            f"a masked array of {x.dtype} and shape {x.shape} was given where an array is needed.",
            where=user_source(), why="arrays have no mask, and the masked elements would count.",
            fix="x.filled(0), or functrans.numpy.where(x.mask, 0, x.data)")
