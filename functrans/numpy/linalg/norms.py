"""Norms of vectors and matrices, and condition numbers.

At zero, where a norm has a corner, the derivative is the subgradient 0 (and not NaN).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    cast,
    is_complex,
    operand,
    promote_dtypes_inexact,
)
from functrans.numpy.linalg.factorizations import matrices
from functrans.numpy.linalg.systems import inv
from functrans.numpy.manipulation import expand_dims, moveaxis
from functrans.numpy.reductions import max as _max
from functrans.numpy.reductions import min as _min
from functrans.numpy.reductions import sum
from functrans.primitives import spectral
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, Axis

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def _square(x: Array) -> Array:
    if is_complex(x):
        re, im = lax.real(x), lax.imag(x)
        return lax.add(lax.mul(re, re), lax.mul(im, im))
    return lax.mul(x, x)


def _root(total: Array, power: float | None = None) -> Array:
    """The square root, or another power, of what is not negative; with derivative 0 at 0."""
    zero = lax.eq(total, 0.0)
    positive = lax.select_n(zero, total, lax.full_like(total, 1))
    root = lax.sqrt(positive) if power is None else lax.pow(positive, power)
    at_zero = 0.0 if power is None or power > 0 else np.inf
    return lax.select_n(zero, root, lax.full_like(total, at_zero))


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool, name: str) -> Array:
    def over(y: Array) -> Array:
        return sum(y, axes, keepdims=keepdims)

    if ord is None or ord == 2:
        return _root(over(_square(x)))
    if isinstance(ord, str):
        raise ArgumentError(f"functrans.numpy.linalg.{name}: ord={ord!r} is no norm of vectors.",
                            where=user_source(), fix="a number, inf or -inf")
    if ord == np.inf:
        return _max(lax.abs(x), axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return _min(lax.abs(x), axes, keepdims=keepdims)
    if ord == 0:
        return over(cast(lax.ne(x, lax.full_like(x, 0)), dtypes.real_dtype(x.dtype)))
    if ord == 1:
        return over(lax.abs(x))
    return _root(over(_root(lax.abs(x), float(ord))), 1.0 / float(ord))


def _matrix_norm(x: Array, ord: Any, rows: int, cols: int, keepdims: bool, name: str) -> Array:
    """The norm of the matrices that two axes, counted from the front, span."""
    both = (rows, cols)
    if ord is None or ord in ("fro", "f"):
        return _vector_norm(x, None, both, keepdims, name)
    if ord in (1, -1, np.inf, -np.inf):
        sums = sum(lax.abs(x), rows if abs(ord) == 1 else cols, keepdims=True)
        return _max(sums, both, keepdims=keepdims, initial=0) if ord > 0 else \
            _min(sums, both, keepdims=keepdims)
    if ord not in ("nuc", 2, -2):
        raise ArgumentError(f"functrans.numpy.linalg.{name}: ord={ord!r} is no norm of matrices.",
                            where=user_source(), fix="'fro', 'nuc', 1, 2, inf or their negatives")
    s = spectral.svd(moveaxis(x, both, (-2, -1)), compute_uv=False)
    out = sum(s, -1) if ord == "nuc" else _max(s, -1, initial=0) if ord == 2 else _min(s, -1)
    return expand_dims(out, sorted(both)) if keepdims else out


@composite
def norm(x: ArrayLike, ord: int | str | float | None = None, axis: Axis = None,
         keepdims: bool = False) -> Array:
    """A norm of vectors along one axis, or of the matrices that two axes span.

    Vectors: any number, inf (largest), -inf (smallest), 0 (how many are not zero); matrices: 'fro',
    'nuc', and 1, -1, 2, -2, inf, -inf. Without ord and axis, the 2-norm of all elements. Raises
    ArgumentError for any other ord.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0])).tolist()
    5.0
    """
    (x,) = promote_dtypes_inexact("linalg.norm", x)
    x = operand("linalg.norm", x)
    if axis is None:
        if ord is None:
            return _vector_norm(x, None, tuple(range(x.ndim)), keepdims, "norm")
        if x.ndim not in (1, 2):
            raise ArgumentError(f"functrans.numpy.linalg.norm: ord={ord!r} of an array of shape "
                                f"{x.shape} needs an axis.", where=user_source(),
                                fix="axis=-1 for vectors, axis=(-2, -1) for matrices")
    axes = axis_tuple(axis, x.ndim, "linalg.norm")
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims, "norm")
    if len(axes) != 2:
        raise ArgumentError(f"functrans.numpy.linalg.norm: axis={axis} is neither one axis nor "
                            "two.", where=user_source(), fix="vector_norm takes any number of axes")
    return _matrix_norm(x, ord, *axes, keepdims, "norm")


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False,
                ord: int | float = 2) -> Array:
    """A norm of the vectors along one or several axes, or of all elements.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([[3.0, -4.0]]), ord=1).tolist()
    7.0
    """
    (x,) = promote_dtypes_inexact("linalg.vector_norm", x)
    x = operand("linalg.vector_norm", x)
    axes = axis_tuple(axis, x.ndim, "linalg.vector_norm")
    return _vector_norm(x, ord, axes, keepdims, "vector_norm")


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | str | float = "fro"
                ) -> Array:
    """A norm of each matrix: (..., m, n) -> (...).

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.eye(4)).tolist()
    2.0
    """
    x = matrices("matrix_norm", x)
    return _matrix_norm(x, ord, axis_index(-2, x.ndim), axis_index(-1, x.ndim), keepdims,
                        "matrix_norm")


def cond(x: ArrayLike, p: int | str | float | None = None) -> Array:
    """The condition number of each matrix: that of norm p, by default the 2-norm.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.cond(jnp.diag(jnp.array([4.0, 2.0]))).tolist()
    2.0
    """
    x = matrices("cond", x, p not in (None, 2, -2))
    if p in (None, 2, -2):
        s = spectral.svd(x, compute_uv=False)
        largest = lax.squeeze(lax.slice_in_dim(s, 0, 1, axis=-1), (s.ndim - 1,))
        smallest = lax.squeeze(lax.slice_in_dim(s, s.shape[-1] - 1, s.shape[-1], axis=-1),
                               (s.ndim - 1,))
        return lax.div(smallest, largest) if p == -2 else lax.div(largest, smallest)
    return lax.mul(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))
