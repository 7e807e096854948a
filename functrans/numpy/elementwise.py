"""Elementwise functions composed of others: clip, where, hypot, sinc, logaddexp, rounding, ..."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans import lax
from functrans._runtime import wrap
from functrans.core import dtypes
from functrans.core.dims import same_shape
from functrans.core.dtypes import kind
from functrans.core.errors import ArgumentError, DTypeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.numpy.common import (
    broadcast,
    broadcast_all,
    broadcast_shapes,
    cast,
    concrete,
    converted,
    operand,
    promote,
    promote_dtypes,
    promote_inexact,
    refuse_out,
    scalar_like,
    slice_axis,
)
from functrans.numpy.promotion_checks import check_ranks
from functrans.numpy.ufunc_dispatch import binary, truth, ufunc_like, unary
from functrans.numpy.ufuncs import absolute, divide, floor, isinf, isnan, rint, trunc
from functrans.transforms.composite import composite
from functrans.typing import Array, ArrayLike

if TYPE_CHECKING:
    from functrans._array_types import BinaryFunction

_full_like = lax.full_like


# choosing ------------------------------------------------------------------------------------


def select_where(condition: Any, x: Any, y: Any, name: str = "where") -> Array:
    """x where condition holds, else y, promoted and broadcast."""
    if (isinstance(x, ARRAYS) and isinstance(y, ARRAYS) and isinstance(condition, ARRAYS)
            and x.dtype is y.dtype and same_shape(x.shape, y.shape)
            and same_shape(y.shape, condition.shape) and condition.dtype.kind == "b"):
        return lax.select_n(condition, y, x)
    condition = truth(operand(name, condition))
    if (isinstance(x, ARRAYS) and type(y) in (float, int) and x.dtype.kind == "f"
            and not x.weak_type and same_shape(x.shape, condition.shape)):
        # the number is one broadcast
        return lax.select_n(condition, lax.full_like(x, y), x)
    x, y = promote_dtypes(name, x, y)
    check_ranks(name, (condition.shape, x.shape, y.shape))
    shape = broadcast_shapes(condition.shape, x.shape, y.shape, name=name)
    x, y = broadcast(x, shape), broadcast(y, shape)
    return lax.select_n(condition if not condition.ndim else broadcast(condition, shape), y, x)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None, *,
    a_min: ArrayLike | None = None, a_max: ArrayLike | None = None, out: None = None,
) -> Array:
    """arr limited to [min, max]; where min exceeds max, max.

    >>> import functrans.numpy as jnp
    >>> jnp.clip(jnp.asarray([-2, 0, 9]), 0, 5).tolist()
    [0, 0, 5]
    """
    refuse_out("clip", out)
    x: Array = operand("clip", arr)
    low = a_min if min is None else min
    high = a_max if max is None else max
    if kind(x.dtype) == "c":
        raise DTypeError("functrans.numpy.clip does not take complex numbers, which have no "
                         "order.", where=user_source(), fix="clip(x.real, ...)")
    if low is not None:
        low, x = promote("clip", low, x)
        x = lax.max(low, x)
    if high is not None:
        high, x = promote("clip", high, x)
        x = lax.min(high, x)
    return x


# signs ---------------------------------------------------------------------------------------


def _signbit(x: Array) -> Array:
    """The sign bit itself, so that -0.0 and -nan count as negative."""
    k = kind(x.dtype)
    if k in "bu":
        return lax.full(x.shape, False, np.dtype(bool))
    if k == "f":
        x = lax.bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}"))
    return lax.lt(x, _full_like(x, 0))


signbit = unary("signbit", _signbit, "Whether the sign bit is set; true for -0.0.", np.signbit,
                "biuf")


# numbers -------------------------------------------------------------------------------------


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """a rounded to so many decimals, halves to even; in a's dtype.

    >>> import functrans.numpy as jnp
    >>> jnp.round(jnp.asarray([0.5, 1.5])).tolist()
    [0.0, 2.0]
    """
    refuse_out("round", out)
    x = operand("round", a)
    if kind(x.dtype) in "biu":
        if decimals >= 0:
            return x
        factor = 10 ** -decimals
        scaled = rint(divide(cast(x, np.dtype(np.float64)), float(factor)))
        return lax.convert_element_type(lax.mul(scaled, scalar_like(scaled, factor)), x.dtype)
    if decimals == 0:
        return rint(x)
    wide = cast(x, np.dtype(np.float32)) if dtypes.is_half(x.dtype) else x
    factor = scalar_like(wide, 10.0 ** abs_int(decimals))
    up, down = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    return cast(down(rint(up(wide, factor)), factor), x.dtype)


def abs_int(n: int) -> int:
    """|n| of a Python int, where abs means the array function."""
    return n if n >= 0 else -n


around = round


def fix(x: ArrayLike, out: None = None) -> Array:
    """x rounded towards zero.

    >>> jnp.fix(jnp.array([2.7, -2.7]))
    Array([ 2., -2.], dtype=float32)
    """
    refuse_out("fix", out)
    return trunc(x)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Fractional and integral parts, both with the sign of x.

    >>> jnp.modf(jnp.array([2.5, -1.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -1.], dtype=float32))
    """
    refuse_out("modf", out)
    (x,) = promote_inexact("modf", x)
    whole = trunc(x)
    part = lax.rem(x, _full_like(x, 1))  # exact, with the sign of x and the slope 1
    return lax.select_n(isinf(x), part, _copysign(_full_like(x, 0), x)), whole


def _float_bits(dtype: np.dtype) -> tuple[np.dtype, int, int]:
    """The integer dtype of a float's bits, its mantissa bits and its exponent bias."""
    info = dtypes.finfo(dtype)
    return np.dtype(f"i{dtype.itemsize}"), info.nmant, 1 - int(info.minexp)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissa in [0.5, 1) and int32 exponent, so that x = mantissa * 2**exponent.

    >>> jnp.frexp(jnp.array([8.0, 0.3]))
    (Array([0.5, 0.6], dtype=float32), Array([ 4, -1], dtype=int32))
    """
    (x,) = promote_inexact("frexp", x)
    bits_dtype, mantissa_bits, bias = _float_bits(x.dtype)
    tiny = lax.lt(lax.abs(x), _full_like(x, float(dtypes.finfo(x.dtype).tiny)))
    shift = mantissa_bits + 1  # denormals are scaled into the normal range first
    scaled = lax.select_n(tiny, x, lax.mul(x, _full_like(x, 2.0 ** shift)))
    bits = lax.bitcast_convert_type(scaled, bits_dtype)
    field = (1 << (x.dtype.itemsize * 8 - 1 - mantissa_bits)) - 1
    exponent = lax.bitwise_and(lax.shift_right_logical(bits, _full_like(bits, mantissa_bits)),
                               _full_like(bits, field))
    power = lax.convert_element_type(exponent, np.dtype(np.int32))
    power = lax.sub(power, _full_like(power, bias - 1))
    power = lax.sub(power, lax.select_n(tiny, _full_like(power, 0), _full_like(power, shift)))
    special = lax.bitwise_or(lax.eq(x, _full_like(x, 0)), lax.bitwise_not(lax.is_finite(x)))
    power = lax.select_n(special, power, _full_like(power, 0))
    return lax.select_n(special, ldexp(x, lax.neg(power)), x), power  # a product: it has a slope


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2, exact also where 2**x2 alone would overflow.

    >>> jnp.ldexp(jnp.array([1.0, 0.75]), jnp.array([3, 2]))
    Array([8., 3.], dtype=float32)
    """
    exponent = operand("ldexp", x2)
    if kind(exponent.dtype) not in "biu":
        raise DTypeError(f"functrans.numpy.ldexp: the exponent is an integer, and not "
                         f"{exponent.dtype}.", where=user_source())
    (x,) = promote_inexact("ldexp", x1)
    shape = broadcast_shapes(x.shape, exponent.shape, name="ldexp")
    x = broadcast(x, shape)
    exponent = broadcast(cast(exponent, np.dtype(np.int32)), shape)
    limit = int(dtypes.finfo(x.dtype).maxexp)
    bits_dtype, mantissa_bits, bias = _float_bits(x.dtype)
    # Four steps of bounded size keep every factor a normal number, made from its bits.
    for _ in range(4):
        step = lax.clamp(_full_like(exponent, 2 - limit), exponent,
                         _full_like(exponent, limit - 1))
        bits = lax.convert_element_type(lax.add(step, _full_like(step, bias)), bits_dtype)
        bits = lax.shift_left(bits, _full_like(bits, mantissa_bits))
        x = lax.mul(x, lax.bitcast_convert_type(bits, x.dtype))
        exponent = lax.sub(exponent, step)
    return x


def _copysign(x: Array, y: Array) -> Array:
    size = lax.abs(x)
    return lax.select_n(_signbit(y), size, lax.neg(size))


def _both_shaped(op: Callable[..., Array]) -> Callable[..., Array]:
    """op with rank-0 operands and Python numbers broadcast to the shape of the other."""

    def shaped(x: Any, y: Any) -> Array:
        if type(x) is float:
            x = scalar_like(y, x)
        elif type(y) is float:
            y = scalar_like(x, y)
        return op(*broadcast_all("broadcast", x, y))

    return shaped


copysign: BinaryFunction = binary("copysign", _both_shaped(_copysign),
                                  "|x| with the sign of y.", np.copysign, kinds="fc", refused="c")


def _heaviside(x: Array, y: Array) -> Array:
    step = lax.select_n(lax.lt(x, _full_like(x, 0)), _full_like(x, 1), _full_like(x, 0))
    result = lax.select_n(lax.eq(x, _full_like(x, 0)), step, y)
    return lax.select_n(isnan(x), result, x)


heaviside: BinaryFunction = binary("heaviside", _both_shaped(_heaviside),
                                   "0 where x < 0, y where x is 0, 1 where x > 0.", np.heaviside,
                                   kinds="fc", refused="c")


def _hypot(x: Array, y: Array) -> Array:
    """Scaled by the larger operand: no square overflows; the derivative at (0, 0) is 0."""
    # signs stay, and a tie is one of the cases: each formula is smooth where it is used
    swap = lax.lt(lax.abs(x), lax.abs(y))
    large, small = lax.select_n(swap, x, y), lax.select_n(swap, y, x)
    zero, one = _full_like(x, 0), _full_like(x, 1)
    plain = lax.bitwise_or(lax.eq(large, zero), isinf(large))
    ratio = lax.div(lax.select_n(isinf(large), small, zero), lax.select_n(plain, large, one))
    result = lax.mul(lax.abs(large), lax.sqrt(lax.add(one, lax.mul(ratio, ratio))))
    infinite = lax.bitwise_or(isinf(x), isinf(y))
    return lax.select_n(infinite, result, _full_like(x, np.inf))


hypot: BinaryFunction = binary("hypot", _both_shaped(_hypot),
                               "sqrt(x**2 + y**2) without overflow.", np.hypot, kinds="fc",
                               refused="c")


def _logaddexp_base(x: Array, y: Array, exp: Callable[..., Array], log1p: Callable[..., Array]
                    ) -> Array:
    first = lax.gt(x, y)  # a tie is one of the cases: each formula is smooth up to it
    gap = lax.sub(x, y)
    unknown = isnan(gap)  # NaN, or two equal infinities: their sum is right, with no slope
    gap = lax.select_n(unknown, lax.select_n(first, gap, lax.neg(gap)), _full_like(gap, 0))
    result = lax.add(lax.select_n(first, y, x), log1p(exp(gap)))
    sums = lax.select_n(lax.eq(x, y), lax.add(x, y), lax.stop_gradient(x))
    return lax.select_n(unknown, result, sums)


def _logaddexp(x: Array, y: Array) -> Array:
    if kind(x.dtype) == "c":
        first = lax.gt(lax.real(x), lax.real(y))
        large, small = lax.select_n(first, y, x), lax.select_n(first, x, y)
        return lax.add(large, lax.log1p(lax.exp(lax.sub(small, large))))
    return _logaddexp_base(x, y, lax.exp, lax.log1p)


def _logaddexp2(x: Array, y: Array) -> Array:
    scale = _full_like(x, 1 / math.log(2))
    return _logaddexp_base(x, y, lax.exp2, lambda v: lax.mul(lax.log1p(v), scale))


logaddexp = binary("logaddexp", _both_shaped(_logaddexp), "log(exp(x) + exp(y)), elementwise.",
                   np.logaddexp, kinds="fc")
logaddexp2 = binary("logaddexp2", _both_shaped(_logaddexp2), "log2(2**x + 2**y), elementwise.",
                    np.logaddexp2, kinds="fc", refused="c")


def _fmax(x: Array, y: Array) -> Array:
    return lax.select_n(isnan(y), lax.select_n(isnan(x), lax.max(x, y), y), x)


def _fmin(x: Array, y: Array) -> Array:
    return lax.select_n(isnan(y), lax.select_n(isnan(x), lax.min(x, y), y), x)


_larger: BinaryFunction = binary("fmax", _both_shaped(_fmax), "", None)
_smaller: BinaryFunction = binary("fmin", _both_shaped(_fmin), "", None)


def _fmax_named(x1: ArrayLike, x2: ArrayLike, *, out: None = None, where: ArrayLike | None = None
                ) -> Array:
    return _larger(x1, x2, out=out, where=where)


def _fmin_named(x1: ArrayLike, x2: ArrayLike, *, out: None = None, where: ArrayLike | None = None
                ) -> Array:
    return _smaller(x1, x2, out=out, where=where)


fmax = ufunc_like("fmax", "The larger of x1 and x2, the other one where one is NaN.", _fmax_named,
                  np.fmax)
fmin = ufunc_like("fmin", "The smaller of x1 and x2, the other one where one is NaN.", _fmin_named,
                  np.fmin)


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y in floating point.

    >>> jnp.float_power(jnp.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return lax.pow(*promote_inexact("float_power", x, y))


def _scale(factor: float) -> Callable[..., Array]:
    return lambda x: lax.mul(x, wrap(np.asarray(factor, x.dtype), True))  # as weak as x


deg2rad = radians = unary("deg2rad", _scale(math.pi / 180), "Degrees to radians.", np.deg2rad, "f")
rad2deg = degrees = unary("rad2deg", _scale(180 / math.pi), "Radians to degrees.", np.rad2deg, "f")


def _sinc(x: Array) -> Array:
    """Around 0 a series: the derivatives of sin(pi x) / (pi x) cancel there."""
    angle = lax.mul(x, wrap(np.asarray(math.pi, x.dtype), True))
    size = lax.abs(angle)
    near = lax.lt(size, _full_like(size, 1))
    inner = lax.select_n(near, _full_like(angle, 0), angle)
    square = lax.mul(inner, inner)
    series = _full_like(x, 0)
    for n in reversed(range(10)):
        term = _full_like(x, (-1) ** n / math.factorial(2 * n + 1))
        series = lax.add(lax.mul(series, square), term)
    safe = lax.select_n(near, angle, _full_like(angle, 1))
    return lax.select_n(near, lax.div(lax.sin(safe), safe), series)


sinc = unary("sinc", _sinc, "sin(pi x) / (pi x), and 1 at 0.")


_I0_SPLIT = 30.0


def _horner(t: Array, ratios: list[float]) -> Array:
    """1 + r1 t (1 + r2 t (1 + ...)): a series by the ratios of its terms, which never overflow."""
    one = _full_like(t, 1)
    total = one
    for ratio in reversed(ratios):
        total = lax.add(one, lax.mul(lax.mul(t, _full_like(t, ratio)), total))
    return total


def _i0(x: Array) -> Array:
    """The power series up to 30, all of whose terms are positive, the asymptotic one beyond.

    Source: Abramowitz and Stegun, 9.6.12 and 9.7.1.
    """
    size = lax.abs(x)
    split = _full_like(x, _I0_SPLIT)
    inside = lax.le(size, split)
    low = lax.select_n(inside, split, x)
    small = _horner(lax.mul(low, low), [0.25 / k**2 for k in range(1, 61)])
    high = lax.clamp(split, size, _full_like(x, 1e4))
    tail = _horner(lax.div(_full_like(x, 1), high),
                   [(2 * k - 1) ** 2 / (8 * k) for k in range(1, 21)])
    half = lax.exp(lax.mul(high, _full_like(x, 0.5)))  # exp(x) alone would overflow earlier
    scale = lax.mul(half, lax.div(half, lax.sqrt(lax.mul(high, _full_like(x, 2 * math.pi)))))
    infinite = lax.ge(size, _full_like(x, 1e4))
    large = lax.select_n(infinite, lax.mul(scale, tail), _full_like(x, np.inf))
    result = lax.select_n(inside, large, small)
    return lax.select_n(isnan(x), result, x)


_bessel_i0 = unary("i0", _i0, "", None, "f")


def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of order 0.

    >>> jnp.i0(jnp.array([0.0, 1.0])).round(4)
    Array([1.    , 1.2661], dtype=float32)
    """
    return _bessel_i0(x)


@composite
def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0,
               posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """x with NaN and infinities replaced by finite numbers (0 and the largest by default).

    >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1.0]), posinf=9.0)
    Array([0., 9., 1.], dtype=float32)
    """
    del copy
    x = operand("nan_to_num", x)
    if kind(x.dtype) not in "fc":
        return x
    if kind(x.dtype) == "c":
        parts = (nan_to_num(p, True, nan, posinf, neginf) for p in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    info = dtypes.finfo(x.dtype)
    highest = float(info.max) if posinf is None else posinf
    lowest = float(info.min) if neginf is None else neginf

    def fill(value: ArrayLike) -> Array:
        return broadcast(converted("nan_to_num", value, x.dtype), x.shape)

    result = lax.select_n(isnan(x), x, fill(nan))
    result = lax.select_n(lax.eq(x, _full_like(x, np.inf)), result, fill(highest))
    return lax.select_n(lax.eq(x, _full_like(x, -np.inf)), result, fill(lowest))


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """The real part of a concrete complex array whose imaginary parts are below tol machine eps.

    >>> jnp.real_if_close(jnp.array([1 + 0j, 2 + 0j]))
    Array([1., 2.], dtype=float32)
    """
    x = operand("real_if_close", a)
    if kind(x.dtype) != "c":
        return x
    value = concrete("real_if_close", x, "a", "take the real part: real(a)")
    limit = tol * np.finfo(value.dtype).eps if tol > 1 else tol
    return lax.real(x) if np.all(np.abs(value.imag) < limit) else x


# integers ------------------------------------------------------------------------------------


def _integers(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    xs = broadcast_all(name, *promote_dtypes(name, x, y))
    if kind(xs[0].dtype) not in "iu":
        raise DTypeError(f"functrans.numpy.{name} takes integers, and got {xs[0].dtype}.",
                         where=user_source())
    return xs


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Greatest common divisor, elementwise; gcd(0, 0) is 0.

    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    x, y = (absolute(v) for v in _integers("gcd", x1, x2))

    def unfinished(pair: tuple[Array, Array]) -> Array:
        rest = pair[1]
        return lax.reduce_or(lax.ne(rest, _full_like(rest, 0)), tuple(range(rest.ndim)))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = pair
        done = lax.eq(b, _full_like(b, 0))
        rest = lax.rem(a, lax.select_n(done, b, _full_like(b, 1)))
        return lax.select_n(done, b, a), lax.select_n(done, rest, b)

    return lax.while_loop(unfinished, step, (x, y))[0]


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Least common multiple, elementwise; 0 if either is 0.

    >>> jnp.lcm(jnp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)
    """
    x, y = (absolute(v) for v in _integers("lcm", x1, x2))
    divisor = gcd(x, y)
    zero = lax.eq(divisor, _full_like(divisor, 0))
    safe = lax.select_n(zero, divisor, _full_like(divisor, 1))
    return lax.mul(x, lax.div(y, safe))


def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1,
           period: ArrayLike = 2 * math.pi) -> Array:
    """Phases along axis with jumps larger than half a period removed by whole periods.

    >>> jnp.unwrap(jnp.array([0.0, 3.0, -3.0])).round(4)
    Array([0.    , 3.    , 3.2832], dtype=float32)
    """
    (x,) = promote_inexact("unwrap", p)
    axis = axis % x.ndim
    size = x.shape[axis]
    jump = lax.sub(slice_axis(x, 1, size, axis), slice_axis(x, 0, size - 1, axis))
    period = converted("unwrap", period, x.dtype)
    half = lax.div(period, _full_like(period, 2))
    turns = floor(divide(jump + half, period))
    wrapped = jump - turns * period
    at_edge = lax.bitwise_and(lax.eq(wrapped, broadcast(lax.neg(half), wrapped.shape)),
                              lax.gt(jump, _full_like(jump, 0)))
    wrapped = lax.select_n(at_edge, wrapped, broadcast(half, wrapped.shape))
    correction = lax.sub(wrapped, jump)
    limit = half if discont is None else converted("unwrap", discont, x.dtype)
    small = lax.lt(lax.abs(jump), broadcast(limit, jump.shape))
    correction = lax.select_n(small, correction, _full_like(correction, 0))
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (1, 0, 0)
    return x + lax.pad(lax.cumsum(correction, axis=axis), scalar_like(x, 0), config)


@composite
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
           ) -> Array:
    """For each element the choice of the first condition that holds, else default.

    >>> x = jnp.arange(5)
    >>> jnp.select([x < 2, x > 3], [x, x * 10], default=-1)
    Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ArgumentError(f"functrans.numpy.select: {len(condlist)} conditions for "
                            f"{len(choicelist)} choices.", where=user_source())
    *choices, rest = promote_dtypes("select", *choicelist, default)
    pairs = zip(reversed(condlist), reversed(choices), strict=True)
    return functools.reduce(
        lambda result, pair: select_where(operand("select", pair[0]), pair[1], result), pairs, rest)


def piecewise(x: ArrayLike, condlist: Array | Sequence[ArrayLike],
              funclist: Sequence[ArrayLike | Callable[..., ArrayLike]], *args: Any, **kw: Any
              ) -> Array:
    """funclist[i](x) where condlist[i] holds (the last one that does), else the extra function.

    >>> jnp.piecewise(jnp.array([-2.0, 3.0]), [jnp.array([True, False])], [lambda x: -x, 0.0])
    Array([2., 0.], dtype=float32)
    """
    x = operand("piecewise", x)
    if isinstance(condlist, ARRAYS) or not isinstance(condlist, (list, tuple)):
        conditions = operand("piecewise", np.asarray(condlist) if not isinstance(
            condlist, ARRAYS) else condlist)
        condlist = ([conditions] if conditions.ndim == x.ndim and conditions.shape == x.shape
                    else [conditions[i] for i in range(conditions.shape[0])])
    elif condlist and isinstance(condlist[0], (bool, np.bool_)) and len(condlist) == x.size:
        condlist = [np.asarray(condlist)]
    functions = list(funclist)
    if len(functions) == len(condlist):
        functions.append(0)
    elif len(functions) != len(condlist) + 1:
        raise ArgumentError(f"functrans.numpy.piecewise: {len(functions)} functions for "
                            f"{len(condlist)} conditions; there may be one more.",
                            where=user_source())

    def value(f: Any) -> Array:
        return converted("piecewise", f(x, *args, **kw) if callable(f) else f, x.dtype)

    result = broadcast(value(functions[-1]), x.shape)
    for condition, f in zip(condlist, functions[:-1], strict=True):
        result = select_where(truth(operand("piecewise", condition)), value(f), result)
    return result
