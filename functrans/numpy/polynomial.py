"""Polynomials as vectors of coefficients, highest first; convolution, which multiplies them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from functrans import lax
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import (
    broadcast,
    broadcast_shapes,
    filled,
    operand,
    promote_dtypes,
    promote_dtypes_inexact,
    scalar_like,
    slice_axis,
    static_int,
    wrap,
)
from functrans.numpy.creation import asarray
from functrans.numpy.joining import concatenate
from functrans.numpy.padding import trim_zeros
from functrans.numpy.ufuncs import add, conj, divide, multiply, negative, subtract
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike, DTypeLike, PrecisionLike

_UNROLLED = 64


def _vector(name: str, x: ArrayLike) -> Array:
    x = asarray(x)
    if x.ndim == 0:
        x = lax.reshape(x, (1,))
    if x.ndim != 1:
        raise ShapeError(f"functrans.numpy.{name} takes vectors, and got shape {x.shape}.",
                         where=user_source())
    return x


# convolution ---------------------------------------------------------------------------------


def _correlate(name: str, x: Array, kernel: Array, mode: str, precision: Any, preferred: Any
               ) -> Array:
    """sum_k x[n + k] kernel[k] over the places that mode asks for."""
    size = kernel.shape[0]
    padding = {"valid": (0, 0), "same": ((size) // 2, size - size // 2 - 1),
               "full": (size - 1, size - 1)}
    if mode not in padding:
        raise ArgumentError(f"functrans.numpy.{name}: mode is 'full', 'same' or 'valid', and not "
                            f"{mode!r}.", where=user_source())
    result = lax.conv_general_dilated(
        lax.reshape(x, (1, 1, x.shape[0])), lax.reshape(kernel, (1, 1, size)), (1,),
        [padding[mode]], precision=precision, preferred_element_type=preferred)
    return lax.reshape(result, (result.shape[2],))


def _operands(name: str, a: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    x, y = (operand(name, p) for p in promote_dtypes(name, _vector(name, a), _vector(name, v)))
    if x.size == 0 or y.size == 0:
        raise ArgumentError(f"functrans.numpy.{name} of an empty vector.", where=user_source())
    return x, y


@composite
def convolve(a: ArrayLike, v: ArrayLike, mode: Literal["full", "same", "valid"] = "full", *,
             precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
             ) -> Array:
    """Convolution of two vectors: all overlaps, as many as the longer one has, or complete ones.

    >>> import functrans.numpy as jnp
    >>> jnp.convolve(jnp.asarray([1.0, 2.0]), jnp.asarray([1.0, 1.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    x, y = _operands("convolve", a, v)
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    return _correlate("convolve", x, lax.rev(y, (0,)), mode, precision, preferred_element_type)


@composite
def correlate(a: ArrayLike, v: ArrayLike, mode: Literal["full", "same", "valid"] = "valid", *,
              precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
              ) -> Array:
    """Correlation sum_n a[n + k] conj(v[n]) of two vectors over the overlaps that mode names.

    >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([0, 1, 2]), mode="full")
    Array([2, 5, 8, 3, 0], dtype=int32)
    """
    x, y = _operands("correlate", a, v)
    y = conj(y)
    if x.shape[0] >= y.shape[0]:
        return _correlate("correlate", x, y, mode, precision, preferred_element_type)
    # The shorter one slides, and the result reads backwards.
    return lax.rev(_correlate("correlate", y, x, mode, precision, preferred_element_type), (0,))


# polynomials ---------------------------------------------------------------------------------


@composite
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """p[0] x**(N-1) + ... + p[N-1] by Horner's rule, elementwise; p may be a stack along axis 0.

    >>> import functrans.numpy as jnp
    >>> jnp.polyval(jnp.asarray([1.0, 0.0, 2.0]), 3.0).tolist()
    11.0
    """
    coefficients, at = promote_dtypes("polyval", asarray(p), asarray(x))
    count = coefficients.shape[0]
    shape = broadcast_shapes(coefficients.shape[1:], at.shape, name="polyval")
    at = broadcast(operand("polyval", at), shape)
    start = lax.full(shape, 0, at.dtype)

    def step(total: Array, coefficient: Array) -> Array:
        return lax.add(lax.mul(total, at), broadcast(coefficient, shape))

    if count <= _UNROLLED:
        for i in range(count):
            start = step(start, lax.squeeze(slice_axis(coefficients, i, i + 1, 0), (0,)))
        return start
    return lax.scan(lambda total, c: (step(total, c), None), start, coefficients,
                    unroll=unroll)[0]


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> tuple[Array, Array]:
    """Both with zeros in front of the coefficients, along the first axis, up to one size."""
    x, y = (operand(name, p) for p in promote_dtypes(name, *(
        p if p.ndim else lax.reshape(p, (1,)) for p in map(asarray, (a1, a2)))))
    size = max(x.shape[0], y.shape[0])
    x, y = (lax.pad(p, scalar_like(p, 0), [(size - p.shape[0], 0, 0), *[(0, 0, 0)] * (p.ndim - 1)])
            for p in (x, y))
    return x, y


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Sum of two polynomials, whose coefficients are along the first axis; other axes broadcast.

    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3, 0, 1]))
    Array([3, 1, 3], dtype=int32)
    """
    return add(*_aligned("polyadd", a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Difference of two polynomials, along the first axis as in `polyadd`.

    >>> jnp.polysub(jnp.array([3, 0, 1]), jnp.array([1, 2]))
    Array([ 3, -1, -1], dtype=int32)
    """
    return subtract(*_aligned("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Product of two polynomials; leading zeros stay unless asked to go (concrete ones only).

    >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
    Array([ 1.,  0., -1.], dtype=float32)
    """
    x, y = (_vector("polymul", a) for a in (a1, a2))
    if trim_leading_zeros:
        x, y = (trim_zeros(v, "f") if v.shape[0] > 1 else v for v in (x, y))
    x, y = promote_dtypes_inexact("polymul", x, y)
    if x.shape[0] == 0 or y.shape[0] == 0:
        return filled((1,), 0, x.dtype)
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and rest of two polynomials.

    The rest has the size of u, with zeros in front, unless these are asked to go, which takes
    concrete coefficients.

    >>> jnp.polydiv(jnp.array([1.0, 0.0, -1.0]), jnp.array([1.0, 1.0]))
    (Array([ 1., -1.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    >>> jnp.polydiv(jnp.array([1.0, 0.0, 2.0]), jnp.array([1.0, 1.0]), trim_leading_zeros=True)[1]
    Array([3.], dtype=float32)
    """
    rest, divisor = promote_dtypes_inexact("polydiv", _vector("polydiv", u), _vector("polydiv", v))
    n, m = rest.shape[0], divisor.shape[0]
    if n < m:
        return filled((1,), 0, rest.dtype), rest
    lead = slice_axis(divisor, 0, 1)
    quotient = []
    for i in range(n - m + 1):
        factor = divide(slice_axis(rest, i, i + 1), lead)
        quotient.append(factor)
        scaled = lax.pad(multiply(divisor, factor), scalar_like(rest, 0), [(i, n - m - i, 0)])
        rest = subtract(rest, scaled)
    # what was divided is 0, not what rounding left of it
    rest = concatenate([filled((n - m + 1,), 0, rest.dtype), slice_axis(rest, n - m + 1, n)])
    if trim_leading_zeros:
        rest = trim_zeros(rest, "f")
        rest = rest if rest.shape[0] else filled((1,), 0, rest.dtype)
    return concatenate(quotient), rest


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    (x,) = promote_dtypes_inexact("polyder", _vector("polyder", p))
    m = static_int("polyder", m, "m")
    if m < 0:
        raise ArgumentError(f"functrans.numpy.polyder: the order m={m} is negative.",
                            where=user_source())
    for _ in range(m):
        n = x.shape[0]
        if n <= 1:
            return filled((0,), 0, x.dtype)
        x = lax.mul(slice_axis(x, 0, n - 1), wrap(np.arange(n - 1, 0, -1).astype(x.dtype)))
    return x


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial, with constants k of integration (0 by default).

    >>> jnp.polyint(jnp.array([2.0, 1.0]))
    Array([1., 1., 0.], dtype=float32)
    """
    m = static_int("polyint", m, "m")
    constants = _vector("polyint", 0 if k is None else k)
    x, constants = promote_dtypes_inexact("polyint", _vector("polyint", p), constants)
    if m < 0 or constants.shape[0] not in (1, max(m, 1)):
        raise ArgumentError(f"functrans.numpy.polyint: {constants.shape[0]} constants for the "
                            f"order m={m}.", where=user_source())
    constants = broadcast(constants, (m,)) if constants.shape[0] == 1 else constants
    for i in range(m):
        n = x.shape[0]
        x = lax.div(x, wrap(np.arange(n, 0, -1).astype(x.dtype)))
        x = concatenate([x, slice_axis(constants, i, i + 1)])
    return x


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with the given roots and leading coefficient 1.

    Of a square matrix it is the characteristic polynomial, whose coefficients are complex.

    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    >>> jnp.poly(jnp.eye(2)).real
    Array([ 1., -2.,  1.], dtype=float32)
    """
    given = asarray(seq_of_zeros)
    if given.ndim == 2 and given.shape[0] == given.shape[1] != 0:
        (given,) = promote_dtypes_inexact("poly", given)
        (given,) = lax.linalg.eig(given, compute_left_eigenvectors=False,
                                  compute_right_eigenvectors=False)
    (roots,) = promote_dtypes_inexact("poly", _vector("poly", given))
    result = filled((1,) if roots.shape[0] else (), 1, roots.dtype)
    for i in range(roots.shape[0]):
        root = negative(slice_axis(roots, i, i + 1))
        result = convolve(result, concatenate([filled((1,), 1, roots.dtype), root]))
    return result
