"""Convolutions of sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from functrans import lax
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.sparse.bcoo import BCOO, bcoo_fromdense

__all__ = ["bcoo_conv_general_dilated"]


def bcoo_conv_general_dilated(
        lhs: BCOO, rhs: BCOO, *, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
        feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
        preferred_element_type: Any = None) -> BCOO:
    """The convolution of two sparse arrays, of `lax.conv_general_dilated`, as one.

    It is computed densely; the result has lhs.nse times rhs.nse places, or as many as it has
    elements where these are fewer. Raises ArgumentError for arrays that are not BCOO.

    >>> import functrans.numpy as jnp
    >>> from functrans.experimental import sparse
    >>> x = sparse.bcoo_fromdense(jnp.array([[[0.0, 1.0, 0.0, 2.0]]]))
    >>> k = sparse.bcoo_fromdense(jnp.array([[[1.0, 3.0]]]))
    >>> y = sparse.bcoo_conv_general_dilated(x, k, window_strides=(1,), padding="VALID")
    >>> y.nse, y.todense().tolist()
    (3, [[[3.0, 1.0, 6.0]]])
    """
    for name, x in (("lhs", lhs), ("rhs", rhs)):
        if not isinstance(x, BCOO):
            raise ArgumentError(f"bcoo_conv_general_dilated: {name} is a {type(x).__name__}.",
                                where=user_source(), fix="bcoo_fromdense(x)")
    # a batch repeats its places for each element
    counts = [x.nse * math.prod(x.shape[:x.n_batch]) * math.prod(x.shape[x.ndim - x.n_dense:])
              for x in (lhs, rhs)]
    dense = lax.conv_general_dilated(
        lhs.todense(), rhs.todense(), window_strides, padding, lhs_dilation, rhs_dilation,
        dimension_numbers, feature_group_count, batch_group_count, precision,
        preferred_element_type)
    return bcoo_fromdense(dense, nse=min(counts[0] * counts[1], dense.size))


publish(globals(), __all__)
