"""Products of matrices; the functions of the array API's linalg namespace act on the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy import products
from functrans.numpy.common import operand
from functrans.numpy.linalg.factorizations import matrices
from functrans.numpy.linalg.systems import inv
from functrans.numpy.manipulation import expand_dims, matrix_transpose, squeeze
from functrans.numpy.products import matmul, vecdot
from functrans.primitives.matrix import eye
from functrans.typing import Array, ArrayLike, DTypeLike, PrecisionLike

__all__ = ["cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer",
           "tensordot", "trace", "vecdot"]


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Every product of an element of one vector with one of the other: (m,), (n,) -> (m, n).

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    a, b = operand("linalg.outer", x1), operand("linalg.outer", x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"functrans.numpy.linalg.outer takes vectors, and got shapes {a.shape} "
                         f"and {b.shape}.", where=user_source(),
                         fix="functrans.numpy.outer flattens its arguments")
    return products.outer(a, b)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Cross product of vectors of size 3 along an axis.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    a, b = operand("linalg.cross", x1), operand("linalg.cross", x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ShapeError(f"functrans.numpy.linalg.cross takes vectors of size 3, and got shapes "
                         f"{a.shape} and {b.shape}.", where=user_source())
    return products.cross(a, b, axis=axis)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *,
              axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
              ) -> Array:
    """Sums of products over axes: the last ones of x1 and the first of x2, or pairs of them.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(x1, x2, axes, precision=precision,
                              preferred_element_type=preferred_element_type)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of each matrix: (..., m, n) -> (..., k).

    >>> jnp.linalg.diagonal(jnp.arange(8).reshape(2, 2, 2))
    Array([[0, 3],
           [4, 7]], dtype=int32)
    """
    return products.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of each matrix: (..., m, n) -> (...).

    >>> jnp.linalg.trace(jnp.arange(8).reshape(2, 2, 2))
    Array([ 3, 11], dtype=int32)
    """
    return products.trace(x, offset, -2, -1, dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The matrix product of n factors a, by squaring; of inverses when n is negative.

    Raises ArgumentError when n is no Python int, ShapeError when matrices are not square.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise ArgumentError(f"functrans.numpy.linalg.matrix_power: n must be an int, got {n!r}.",
                            where=user_source())
    x = operand("linalg.matrix_power", a)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        x = matrices("matrix_power", x, True)
    if n == 0:
        return eye(x.shape, x.dtype)
    if n < 0:
        x, n = inv(x), -n
    while not n & 1:
        x, n = matmul(x, x), n >> 1
    result = x
    while n := n >> 1:
        x = matmul(x, x)
        if n & 1:
            result = matmul(result, x)
    return result


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of two or more matrices in the order that takes the fewest multiplications.

    The first and the last may be vectors. Raises ArgumentError when there are fewer than two.

    >>> import functrans.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)]).tolist()
    [12.0, 12.0]
    """
    xs = [operand("linalg.multi_dot", x) for x in arrays]
    if len(xs) < 2:
        raise ArgumentError("functrans.numpy.linalg.multi_dot takes at least two arrays.",
                            where=user_source())
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = expand_dims(xs[0], 0) if first else xs[0]
    xs[-1] = expand_dims(xs[-1], 1) if last else xs[-1]
    if any(x.ndim != 2 for x in xs):
        shapes = ", ".join(str(x.shape) for x in xs)
        raise ShapeError(f"functrans.numpy.linalg.multi_dot takes matrices, and got {shapes}.",
                         where=user_source(), fix="functrans.numpy.matmul maps over leading axes")
    result = _multiply(xs, _best_splits([*(x.shape[0] for x in xs), xs[-1].shape[1]]), precision)
    dropped = (*((0,) if first else ()), *((1,) if last else ()))
    return squeeze(result, dropped) if dropped else result


def _best_splits(sizes: list[Any]) -> dict[tuple[int, int], int]:
    """Where to split the product of matrices i to j so that the cost is least (O(n^3))."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                       for k in range(i, j)}
            split[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[split[i, j]]
    return split


def _multiply(xs: list[Array], splits: dict[tuple[int, int], int], precision: Any) -> Array:
    def product(i: int, j: int) -> Array:
        if i == j:
            return xs[i]
        k = splits[i, j]
        return matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(xs) - 1)
