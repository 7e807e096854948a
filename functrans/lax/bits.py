"""Arithmetic on the bits of numbers: high words of products, floats of fewer bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, DTypeError
from functrans.core.source import user_source
from functrans.lax.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    exp,
    ge,
    gt,
    igamma,
    le,
    lgamma,
    log,
    mul,
    ne,
    neg,
    random_gamma_grad,
    shift_right_arithmetic,
    shift_right_logical,
    sub,
)
from functrans.primitives.base import full
from functrans.primitives.compare import select_n
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike

__all__ = ["igamma_grad_a", "mulhi", "reduce_precision"]


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of two integers of one dtype.

    Raises DTypeError for others than integers of 8 to 64 bits.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> ft.lax.mulhi(jnp.uint8(200), jnp.uint8(100)).item()
    78
    """
    a, b = to_array(x, "mulhi: x"), to_array(y, "mulhi: y")
    if dtypes.kind(a.dtype) not in "iu" or a.dtype != b.dtype or dtypes.is_narrow(a.dtype):
        raise DTypeError(f"mulhi of {a.dtype} and {b.dtype}.", where=user_source(),
                         why="it is of two integers of one dtype, of 8 to 64 bits.")
    width = 8 * a.dtype.itemsize
    signed = dtypes.kind(a.dtype) == "i"
    if width < 64:
        wide = np.dtype(f"{'i' if signed else 'u'}{a.dtype.itemsize * 2}")
        product = mul(convert_element_type(a, wide), convert_element_type(b, wide))
        return convert_element_type(_right(product, width), a.dtype)
    # (h 2^32 + l)(h' 2^32 + l'), of which no partial sum overflows
    (high, low), (high2, low2) = _halves(a), _halves(b)
    middle = add(mul(high, low2), _right(mul(low, low2), 32, logical=True))
    middle2 = add(mul(low, high2), bitwise_and(middle, _mask(middle)))
    return add(add(mul(high, high2), _right(middle, 32)), _right(middle2, 32))


def _halves(x: Array) -> tuple[Array, Array]:
    return _right(x, 32), bitwise_and(x, _mask(x))


def _mask(x: Array) -> Array:
    return full(x.shape, 0xFFFFFFFF, x.dtype)


def _right(x: Array, places: int, logical: bool = False) -> Array:
    shift = shift_right_logical if logical or dtypes.kind(x.dtype) == "u" \
        else shift_right_arithmetic
    return shift(x, full(x.shape, places, x.dtype))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floats rounded to those that have so many bits of exponent and of fraction, in their dtype.

    Ties go to even, numbers beyond the largest one are infinite, below the smallest normal one 0.
    A number moves with its operand: the slope is 1. Raises ArgumentError for no bits of exponent or
    less than none of fraction, DTypeError for numbers that are not floating.

    >>> import functrans as ft
    >>> ft.lax.reduce_precision(ft.numpy.array([1.2, 3e38, 1e-30]), 5, 10).tolist()
    [1.2001953125, inf, 0.0]
    """
    x = to_array(operand, "reduce_precision: the operand")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ArgumentError(f"reduce_precision: {exponent_bits} bits of exponent, {mantissa_bits} "
                            "of fraction.", where=user_source())
    if dtypes.kind(x.dtype) != "f":
        raise DTypeError(f"reduce_precision of {x.dtype}.", where=user_source(),
                         why="it is of floating numbers.")
    info = dtypes.finfo(x.dtype)
    if exponent_bits >= info.nexp and mantissa_bits >= info.nmant:
        return x
    if x.dtype.itemsize < 4:
        wide = convert_element_type(x, np.float32)
        return convert_element_type(reduce_precision(wide, exponent_bits, mantissa_bits), x.dtype)
    return _rounded(x, exponent_bits, mantissa_bits)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _rounded(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    info = np.finfo(x.dtype)
    word = np.dtype(f"u{x.dtype.itemsize}")
    one = np.ones((), word)
    bits = bitcast_convert_type(x, word)
    dropped = int(info.nmant) - mantissa_bits
    if dropped > 0:
        def constant(value: Any) -> Array:
            return full(bits.shape, int(value), word)

        # half of the last place that stays, less 1 where that place is even: ties go to even
        odd = bitwise_and(shift_right_logical(bits, constant(dropped)), constant(one))
        rounded = add(bits, add(constant((1 << (dropped - 1)) - 1), odd))
        rounded = bitwise_and(rounded, bitwise_not(constant((1 << dropped) - 1)))
        finite = le(abs(x), full(x.shape, float(info.max), x.dtype))
        bits = select_n(finite, bits, rounded)
    y = bitcast_convert_type(bits, x.dtype)
    if exponent_bits < int(info.nexp):
        bias = (1 << (exponent_bits - 1)) - 1
        largest = (2.0 - 2.0 ** -min(mantissa_bits, int(info.nmant))) * 2.0 ** bias
        size = abs(y)
        sign = bitwise_and(bits, full(bits.shape, 1 << (8 * word.itemsize - 1), word))
        endless = bitcast_convert_type(
            bitwise_or(sign, full(bits.shape, int(np.array(np.inf, x.dtype).view(word)), word)),
            x.dtype)
        y = select_n(gt(size, full(x.shape, largest, x.dtype)), y, endless)
        normal = ge(size, full(x.shape, 2.0 ** (1 - bias), x.dtype))
        y = select_n(bitwise_or(normal, ne(y, y)), bitcast_convert_type(sign, x.dtype), y)
    return y


@_rounded.defjvp
def _rounded_jvp(exponent_bits: int, mantissa_bits: int, primals: Any, tangents: Any) -> Any:
    return _rounded(primals[0], exponent_bits, mantissa_bits), tangents[0]


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma(a, x) in a.

    >>> import functrans as ft
    >>> round(ft.lax.igamma_grad_a(2.0, 3.0).item(), 4)
    -0.1974
    """
    a, x = to_array(a, "igamma_grad_a: a"), to_array(x, "igamma_grad_a: x")
    a, x = (v if v.shape else add(v, full(w.shape, 0, v.dtype)) for v, w in ((a, x), (x, a)))
    # a sample stays at a fixed value of P(a, x): dP/da + p(x) dx/da = 0
    density = exp(sub(sub(mul(sub(a, full(a.shape, 1, a.dtype)), log(x)), x), lgamma(a)))
    slope = neg(mul(random_gamma_grad(a, x), density))
    inside = bitwise_and(gt(x, full(x.shape, 0, x.dtype)), ne(igamma(a, x), full(x.shape, 1,
                                                                                x.dtype)))
    return select_n(bitwise_or(inside, ne(slope, slope)), full(x.shape, 0, x.dtype), slope)
