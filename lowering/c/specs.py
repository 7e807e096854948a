"""The types of values as the runtime takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray

__all__ = ["spec"]


def spec(aval: ShapedArray) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """The dtype and shape of a value as the runtime takes them: None for a symbolic size."""
    return aval.dtype, tuple([n if isinstance(n, int) else None for n in aval.shape])
