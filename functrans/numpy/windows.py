"""Window functions for signal processing: concrete vectors of M points in the default float."""

from __future__ import annotations

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.numpy.common import operand, static_int, wrap
from functrans.numpy.elementwise import i0
from functrans.numpy.ufuncs import multiply
from functrans.typing import Array, ArrayLike


def _made(values: np.ndarray) -> Array:
    return wrap(values.astype(dtypes.default_float()))


def bartlett(M: int) -> Array:
    """The triangle from 0 over 1 to 0.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _made(np.bartlett(static_int("bartlett", M, "M")))


def blackman(M: int) -> Array:
    """The Blackman window 0.42 - 0.5 cos(2 pi n / (M-1)) + 0.08 cos(4 pi n / (M-1)).

    >>> jnp.blackman(5)[1:4].round(4)
    Array([0.34, 1.  , 0.34], dtype=float32)
    """
    return _made(np.blackman(static_int("blackman", M, "M")))


def hamming(M: int) -> Array:
    """The Hamming window 0.54 - 0.46 cos(2 pi n / (M-1)).

    >>> jnp.hamming(5).round(4)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _made(np.hamming(static_int("hamming", M, "M")))


def hanning(M: int) -> Array:
    """The Hann window 0.5 - 0.5 cos(2 pi n / (M-1)).

    >>> jnp.hanning(5).round(4)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _made(np.hanning(static_int("hanning", M, "M")))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window i0(beta sqrt(1 - (2n/(M-1) - 1)**2)) / i0(beta); beta may be traced.

    >>> jnp.kaiser(5, 2.0).round(4)
    Array([0.4387, 0.8348, 1.    , 0.8348, 0.4387], dtype=float32)
    """
    size = static_int("kaiser", M, "M")
    if size == 1:
        return _made(np.ones(1))
    n = np.arange(size)
    arc = np.sqrt(np.maximum(1 - (2 * n / (size - 1) - 1) ** 2, 0))
    (shape,) = (lax.convert_element_type(operand("kaiser", beta), dtypes.default_float()),)
    top = i0(multiply(shape, _made(arc)))
    return lax.div(top, lax.broadcast_in_dim(i0(shape), (size,), ()))
