"""Products of vectors, matrices and tensors: all are one dot_general with axes put in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans import _runtime, lax
from functrans._runtime import get_trace
from functrans.core.dtypes import as_dtype
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    axis_index,
    axis_tuple,
    broadcast,
    broadcast_shapes,
    operand,
    promote_dtypes,
    refuse_out,
)
from functrans.numpy.joining import stack, unstack
from functrans.numpy.manipulation import moveaxis, ravel
from functrans.numpy.reductions import sum
from functrans.numpy.ufuncs import conj, multiply, subtract
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, DTypeLike, PrecisionLike

_MATRIX = (((1,), (0,)), ((), ()))


def _pair(name: str, a: ArrayLike, b: ArrayLike) -> list[Array]:
    if isinstance(a, ARRAYS) and isinstance(b, ARRAYS) and a.dtype is b.dtype:
        return [a, b]
    return [operand(name, x) for x in promote_dtypes(name, a, b)]


def _mismatch(name: str, a: Array, b: Array, i: Any, j: Any) -> ShapeError:
    return ShapeError(
        f"functrans.numpy.{name}: shapes {a.shape} and {b.shape} do not fit together.",
        where=user_source(),
        why=f"the sum runs over {a.shape[i]} elements of the first and {b.shape[j]} of the second "
        "array.",
        fix="transpose one of them: a.T, b.T, or .mT for the last two axes")


def _dot_general(a: Array, b: Array, dims: Any, precision: Any, preferred: DTypeLike | None
                 ) -> Array:
    if preferred is not None:
        preferred = as_dtype(preferred)
    return lax.dot_general(a, b, dims, precision=precision, preferred_element_type=preferred)


def matmul(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """Matrix product over the last two axes, the others broadcast; vectors count as matrices.

    Shapes (..., n, k) and (..., k, m) give (..., n, m); n or m is left out for a vector.

    >>> import functrans.numpy as jnp
    >>> jnp.matmul(jnp.ones((2, 3)), jnp.ones(3)).tolist()
    [3.0, 3.0]
    """
    if precision is None and preferred_element_type is None and type(a) is Array \
            and type(b) is Array and get_trace() is None:
        result = _runtime.matmul(a, b)
        if result is not NotImplemented:
            return result
    a, b = _pair("matmul", a, b)
    if a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]:
        return _dot_general(a, b, _MATRIX, precision, preferred_element_type)
    if not a.ndim or not b.ndim:
        raise ShapeError("functrans.numpy.matmul takes arrays of at least one dimension, and got "
                         f"shapes {a.shape} and {b.shape}.", where=user_source(), fix="a * b")
    i, j = a.ndim - 1, max(b.ndim - 2, 0)
    if a.shape[i] != b.shape[j]:
        raise _mismatch("matmul", a, b, i, j)
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    lead = broadcast_shapes(lead_a, lead_b, name="matmul")
    # A leading axis of which one operand has only one is no batch axis but a free one: squeezed
    # out of that operand, left in the other, and put back in place at the end.
    batch: list[int] = []
    from_a: list[int] = []
    from_b: list[int] = []
    for axis in range(-len(lead), 0):
        in_a = -axis <= len(lead_a) and not _is_one(lead_a[axis])
        in_b = -axis <= len(lead_b) and not _is_one(lead_b[axis])
        place = axis + len(lead)
        (batch if in_a and in_b else from_a if in_a else from_b if in_b else []).append(place)
    ones = [p for p in range(len(lead)) if p not in (*batch, *from_a, *from_b)]
    a = _squeeze_lead(a, lead_a, len(lead), {*batch, *from_a})
    b = _squeeze_lead(b, lead_b, len(lead), {*batch, *from_b})
    of_a, of_b = sorted((*batch, *from_a)), sorted((*batch, *from_b))
    contract = (a.ndim - 1,), (max(b.ndim - 2, 0),)
    dims = (contract, (tuple(of_a.index(p) for p in batch), tuple(of_b.index(p) for p in batch)))
    result = _dot_general(a, b, dims, precision, preferred_element_type)
    # The axes as they came: batch, free axes of a and its rows, free axes of b and its columns.
    rows = ["row"] if a.ndim > len(of_a) + 1 else []
    columns = ["column"] if b.ndim > len(of_b) + 1 else []
    order: list[Any] = [*batch, *from_a, *rows, *from_b, *columns]
    wanted = [*sorted((*batch, *from_a, *from_b)), *rows, *columns]
    if order != wanted:
        result = lax.transpose(result, tuple(order.index(w) for w in wanted))
    return lax.expand_dims(result, tuple(ones)) if ones else result


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _squeeze_lead(x: Array, lead: tuple[Any, ...], rank: int, keep: set[int]) -> Array:
    """x without those of its leading axes that are not kept (all of size 1)."""
    offset = rank - len(lead)
    drop = tuple(i for i in range(len(lead)) if i + offset not in keep)
    return lax.squeeze(x, drop) if drop else x


def dot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None, out: None = None) -> Array:
    """Sum of products over the last axis of a and the second to last of b (or its only one).

    Shapes (*i, k) and (*j, k, m) give (*i, *j, m), and (*i, k) and (k,) give i.

    >>> import functrans.numpy as jnp
    >>> jnp.dot(jnp.arange(3), jnp.arange(3)).tolist()
    5
    """
    refuse_out("dot", out)
    a, b = _pair("dot", a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if a.ndim == 2 and b.ndim == 2:
        return matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
    j = max(b.ndim - 2, 0)
    if a.shape[-1] != b.shape[j]:
        raise _mismatch("dot", a, b, -1, j)
    return _dot_general(a, b, (((a.ndim - 1,), (j,)), ((), ())), precision,
                        preferred_element_type)


def vdot(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """Inner product of the flattened arrays, the first one conjugated.

    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 3.0]))
    Array(7.+0.j, dtype=complex64)
    """
    return dot(ravel(conj(operand("vdot", a))), ravel(b), precision=precision,
               preferred_element_type=preferred_element_type)


def inner(a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None,
          preferred_element_type: DTypeLike | None = None) -> Array:
    """Sum of products over the last axes.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    a, b = _pair("inner", a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, (-1, -1), precision=precision,
                     preferred_element_type=preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Every product of an element of a with one of b, both flattened: a matrix.

    The shape is (a.size, b.size).

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    refuse_out("outer", out)
    a, b = _pair("outer", a, b)
    return multiply(lax.reshape(a, (a.size, 1)), lax.reshape(b, (1, b.size)))


def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
              ) -> Array:
    """Sum of products over pairs of axes, or over the last `axes` of a and the first of b.

    The shape is that of the axes of a that are left, then those of b.

    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    a, b = _pair("tensordot", a, b)
    if isinstance(axes, int):
        first = tuple(range(a.ndim - axes, a.ndim))
        second = tuple(range(axes))
        if axes > min(a.ndim, b.ndim):
            raise ArgumentError(f"functrans.numpy.tensordot: axes={axes} is more than arrays of "
                                f"shapes {a.shape} and {b.shape} have.", where=user_source())
    else:
        first = axis_tuple(axes[0], a.ndim, "tensordot")
        second = axis_tuple(axes[1], b.ndim, "tensordot")
    if len(first) != len(second):
        raise ArgumentError(f"functrans.numpy.tensordot: {len(first)} axes of the first array for "
                            f"{len(second)} of the second.", where=user_source())
    for i, j in zip(first, second, strict=True):
        if a.shape[i] != b.shape[j]:
            raise _mismatch("tensordot", a, b, i, j)
    return _dot_general(a, b, ((first, second), ((), ())), precision, preferred_element_type)


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Inner products along one axis, the first array conjugated and the other axes broadcast.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    a, b = _pair("vecdot", x1, x2)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise _mismatch("vecdot", a, b, -1, -1)
    a = lax.expand_dims(conj(a), (a.ndim - 1,))
    b = lax.expand_dims(b, (b.ndim,))
    result = matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return lax.squeeze(result, (result.ndim - 2, result.ndim - 1))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors, the leading axes broadcast.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, -1]))
    Array([-1, -1], dtype=int32)
    """
    b = operand("matvec", x2)
    result = matmul(x1, lax.expand_dims(b, (b.ndim,)))
    return lax.squeeze(result, (result.ndim - 1,))


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Conjugated vectors times matrices, the leading axes broadcast.

    >>> jnp.vecmat(jnp.array([1, -1]), jnp.array([[1, 2], [3, 4]]))
    Array([-2, -2], dtype=int32)
    """
    a = conj(operand("vecmat", x1))
    result = matmul(lax.expand_dims(a, (a.ndim - 1,)), x2)
    return lax.squeeze(result, (result.ndim - 2,))


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: b scaled by every element of a, in blocks.

    Sizes multiply.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
    Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    a, b = _pair("kron", a, b)
    rank = max(a.ndim, b.ndim)
    left = (1,) * (rank - a.ndim) + tuple(a.shape)
    right = (1,) * (rank - b.ndim) + tuple(b.shape)
    a = lax.reshape(a, tuple(v for s in left for v in (s, 1)))
    b = lax.reshape(b, tuple(v for s in right for v in (1, s)))
    return lax.reshape(multiply(a, b), tuple(x * y for x, y in zip(left, right, strict=True)))


@composite
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Cross product of vectors of size 3, or of size 2 with a third component of 0.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _pair("cross", a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ShapeError(f"functrans.numpy.cross takes vectors of size 2 or 3, and got shapes "
                         f"{a.shape} and {b.shape}.", where=user_source())
    lead = broadcast_shapes(a.shape[:-1], b.shape[:-1], name="cross")
    a = broadcast(a, (*lead, a.shape[-1]))
    b = broadcast(b, (*lead, b.shape[-1]))
    x, y = unstack(a, axis=-1), unstack(b, axis=-1)
    last = subtract(multiply(x[0], y[1]), multiply(x[1], y[0]))
    if len(x) == len(y) == 2:
        return last
    zero = lax.full_like(last, 0)
    x2 = x[2] if len(x) == 3 else zero
    y2 = y[2] if len(y) == 3 else zero
    first = subtract(multiply(x[1], y2), multiply(x2, y[1]))
    second = subtract(multiply(x2, y[0]), multiply(x[0], y2))
    return stack([first, second, last], axis=axisc)


def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum of a diagonal of the matrices that two axes span.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of the matrices that two axes span, as the last axis.

    >>> jnp.diagonal(jnp.arange(6).reshape(2, 3), offset=1)
    Array([1, 5], dtype=int32)
    """
    x = operand("diagonal", a)
    if x.ndim < 2:
        raise ShapeError(f"functrans.numpy.diagonal takes matrices, and got shape {x.shape}.",
                         where=user_source())
    i, j = axis_index(axis1, x.ndim, "diagonal"), axis_index(axis2, x.ndim, "diagonal")
    x = moveaxis(x, (i, j), (-2, -1))
    rows, columns = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    size = max(min(rows - row, columns - column), 0)
    lead = x.ndim - 2
    # One diagonal step is columns + 1 apart in the flattened matrix: a strided slice takes it.
    flat = lax.reshape(x, (*x.shape[:-2], rows * columns))
    start = min(row * columns + column, rows * columns)
    stop = start + (size - 1) * (columns + 1) + 1 if size else start
    return lax.slice(flat, (*([0] * lead), start), (*flat.shape[:-1], stop),
                     (*([1] * lead), columns + 1))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with v on diagonal k, or diagonal k of the matrix v.

    >>> jnp.diag(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    >>> jnp.diag(jnp.array([5, 6]))
    Array([[5, 0],
           [0, 6]], dtype=int32)
    """
    x = operand("diag", v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"functrans.numpy.diag takes a vector or a matrix, and got shape "
                         f"{x.shape}.", where=user_source())
    return diagflat(x, k)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened v on diagonal k.

    >>> jnp.diagflat(jnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    x = ravel(v)
    n = x.shape[0]
    size = n + abs_int(k)
    # Row r of the padded block is v[r] followed by `size` zeros; read with row length `size`
    # the elements move one column to the right from row to row.
    block = lax.pad(lax.reshape(x, (n, 1)), _zero_of(x), [(0, 0, 0), (0, size, 0)])
    flat = lax.reshape(block, (n * (size + 1),))
    start = k if k >= 0 else -k * size
    total = size * size
    flat = lax.pad(flat, _zero_of(x), [(start, total - start - n * (size + 1), 0)])
    return lax.reshape(flat, (size, size))


def abs_int(k: int) -> int:
    """|k| of a Python int."""
    return k if k >= 0 else -k


def _zero_of(x: Array) -> Array:
    return lax.full((), 0, x.dtype)
