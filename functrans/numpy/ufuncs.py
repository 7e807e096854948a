"""The elementwise functions that are one operation of functrans.lax: a table of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from typing import cast as cast_type

import numpy as np

from functrans import lax
from functrans.core.dims import same_shape
from functrans.core.dtypes import as_dtype, complex32, default_float, default_int, kind
from functrans.core.errors import ArgumentError, DTypeError
from functrans.core.source import user_source
from functrans.core.trace import ARRAYS
from functrans.device import find_device
from functrans.numpy.common import (
    cast,
    operand,
    promote,
    promote_inexact,
    scalar_like,
    wrap,
)
from functrans.numpy.ufunc_dispatch import (
    Operation,
    applied_where,
    binary,
    predicate,
    truth,
    ufunc_like,
    unary,
)
from functrans.typing import Array, ArrayLike, DeviceLike, DTypeLike

if TYPE_CHECKING:
    from functrans._array_types import BinaryUfunc


# trigonometry --------------------------------------------------------------------------------

sin = unary("sin", lax.sin, "Sine of x in radians, elementwise.", np.sin)
cos = unary("cos", lax.cos, "Cosine of x in radians, elementwise.", np.cos)
tan = unary("tan", lax.tan, "Tangent of x in radians, elementwise.", np.tan)
arcsin = unary("arcsin", lax.asin, "Angle in [-pi/2, pi/2] whose sine is x.", np.arcsin)
arccos = unary("arccos", lax.acos, "Angle in [0, pi] whose cosine is x.", np.arccos)
arctan = unary("arctan", lax.atan, "Angle in [-pi/2, pi/2] whose tangent is x.", np.arctan)
sinh = unary("sinh", lax.sinh, "Hyperbolic sine, elementwise.", np.sinh)
cosh = unary("cosh", lax.cosh, "Hyperbolic cosine, elementwise.", np.cosh)
tanh = unary("tanh", lax.tanh, "Hyperbolic tangent, elementwise.", np.tanh)
arcsinh = unary("arcsinh", lax.asinh, "Inverse hyperbolic sine, elementwise.", np.arcsinh)
arccosh = unary("arccosh", lax.acosh, "Inverse hyperbolic cosine, elementwise.", np.arccosh)
arctanh = unary("arctanh", lax.atanh, "Inverse hyperbolic tangent, elementwise.", np.arctanh)
arctan2 = binary("arctan2", lax.atan2, "Angle of the point (y, x) in (-pi, pi]: arctan2(y, x).",
                 np.arctan2, kinds="fc", refused="c")

# exponentials and logarithms -----------------------------------------------------------------

_LN2 = float(np.log(2.0))
_LN10 = float(np.log(10.0))


def _log2(x: Array) -> Array:
    return _over(lax.log(x), _LN2)


def _log10(x: Array) -> Array:
    return _over(lax.log(x), _LN10)


def _over(x: Array, divisor: float) -> Array:
    """x / divisor: of complex x each part, as the quotient of complex infinities is NaN."""
    if kind(x.dtype) == "c":
        return lax.complex(_over(lax.real(x), divisor), _over(lax.imag(x), divisor))
    return lax.div(x, wrap(np.asarray(divisor).astype(x.dtype), x.weak_type))


exp = unary("exp", lax.exp, "e to the power x, elementwise.", np.exp)
exp2 = unary("exp2", lax.exp2, "2 to the power x, elementwise.", np.exp2)
expm1 = unary("expm1", lax.expm1, "exp(x) - 1 without cancellation near 0.", np.expm1,
              fast_kinds="f")
log = unary("log", lax.log, "Natural logarithm, elementwise.", np.log)
log1p = unary("log1p", lax.log1p, "log(1 + x) without cancellation near 0.", np.log1p)
log2 = unary("log2", _log2, "Logarithm to base 2, elementwise.", np.log2)
log10 = unary("log10", _log10, "Logarithm to base 10, elementwise.", np.log10)
sqrt = unary("sqrt", lax.sqrt, "Square root, elementwise; NaN for negative reals.", np.sqrt)
cbrt = unary("cbrt", lax.cbrt, "Real cube root, elementwise.", np.cbrt, kinds="f")

# rounding and signs --------------------------------------------------------------------------


def _same(x: Array) -> Array:
    return x


_TO_EVEN = 1


def _rint(x: Array) -> Array:
    rounded = lax.round(x.real if kind(x.dtype) == "c" else x, _TO_EVEN)
    if kind(x.dtype) != "c":
        return rounded
    return lax.complex(rounded, lax.round(lax.imag(x), _TO_EVEN))


def _trunc(x: Array) -> Array:
    return lax.select_n(lax.lt(x, 0.0), lax.floor(x), lax.ceil(x))


def _abs(x: Array) -> Array:
    return lax.abs(x)


def _of_bools(op: Operation) -> Operation:
    """An operation on integers, of booleans: they are 0 and 1, and the result is an integer."""
    def on_bools(*values: Any) -> Array:
        return op(*[lax.convert_element_type(v, default_int()) for v in values])

    return on_bools


def _square(x: Array) -> Array:
    return lax.integer_pow(x, 2)


def _reciprocal(x: Array) -> Array:
    if kind(x.dtype) != "c":
        return lax.integer_pow(x, -1)
    re, im = lax.real(x), lax.imag(x)  # R. Smith, Algorithm 116 (1962), as NumPy
    first = lax.ge(lax.abs(re), lax.abs(im))
    large, small = lax.select_n(first, im, re), lax.select_n(first, re, im)
    ratio = lax.div(small, large)
    size = lax.add(large, lax.mul(small, ratio))
    one, ratio = lax.div(_one(size), size), lax.div(ratio, size)
    return lax.complex(lax.select_n(first, ratio, one), lax.neg(lax.select_n(first, one, ratio)))


def _boolean_reject(name: str) -> Operation:
    def reject(x: Array, *_: Array) -> Array:
        raise DTypeError(f"functrans.numpy.{name} does not take booleans.", where=user_source(),
                         fix="logical_not(x), or logical_xor(x, y) for a difference")

    return reject


def _sign_of_natural(x: Array) -> Array:
    if kind(x.dtype) == "b":
        return _boolean_reject("sign")(x)
    return lax.convert_element_type(truth(x), x.dtype)


def _negative(x: Array) -> Array:
    return lax.neg(x)


def _conjugate(x: Array) -> Array:
    return lax.conj(x) if kind(x.dtype) == "c" else x


floor = unary("floor", lax.floor, "Largest integer value <= x, in x's dtype.", np.floor, "f", _same)
ceil = unary("ceil", lax.ceil, "Smallest integer value >= x, in x's dtype.", np.ceil, "f", _same)
_truncated = unary("trunc", _trunc, "", None, "f", _same)


def _named_trunc(x: ArrayLike, *, out: None = None, where: ArrayLike | None = None) -> Array:
    return _truncated(x, out=out, where=where)


trunc = ufunc_like("trunc", "x rounded towards zero, in x's dtype.", _named_trunc, np.trunc, "f")
rint = unary("rint", _rint, "x rounded to the nearest integer value, halves to even.", np.rint)
fabs = unary("fabs", _abs, "Absolute value as floating point.", np.fabs, "f")
abs = absolute = unary("absolute", _abs, "Absolute value; the modulus of a complex number.",
                       np.absolute, "ifc", _same)
sign = unary("sign", lax.sign, "-1, 0 or 1 by sign; x/|x| for complex numbers.", np.sign, "ifc",
             _sign_of_natural)
negative = unary("negative", _negative, "-x, elementwise.", np.negative, "iufc",
                 _boolean_reject("negative"))
positive = unary("positive", _same, "x itself.", None, "biufc")
square = unary("square", _square, "x * x, elementwise.", np.square, "iufc", _of_bools(_square))
reciprocal = unary("reciprocal", _reciprocal, "1 / x, elementwise; floating.", None)
conj = conjugate = unary("conjugate", _conjugate, "Complex conjugate; a real x itself.",
                         None, "biufc")


# arithmetic ----------------------------------------------------------------------------------


def _add_scalar_docs(symbol: str, name: str, result: str) -> str:
    return f"""x {symbol} y, elementwise, with promotion and broadcasting.

    >>> import functrans.numpy as jnp
    >>> jnp.{name}(jnp.asarray([1.0, 2.0]), 2).tolist()
    {result}
    """


def _floor_divide(x: Any, y: Any) -> Array:
    x, y = _both(x, y)
    k = kind(x.dtype)
    if k == "u" or k == "b":
        return lax.div(x, y)
    if k == "i":
        quotient = lax.div(x, y)
        inexact = lax.ne(lax.rem(x, y), _zero(x))
        lower = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), inexact)
        return lax.select_n(lower, quotient, lax.sub(quotient, _one(x)))
    return _float_divmod(x, y)[0]


def _remainder(x: Any, y: Any) -> Array:
    may_be_zero = not (type(y) is int and y)
    x, y = _both(x, y)
    if kind(x.dtype) == "f":
        return _float_divmod(x, y)[1]
    rest = _rest(x, y, may_be_zero)
    if kind(x.dtype) in "ub":
        return rest
    off = lax.bitwise_and(lax.ne(rest, _zero(x)), lax.ne(lax.lt(rest, _zero(x)),
                                                         lax.lt(y, _zero(y))))
    return lax.select_n(off, rest, lax.add(rest, y))


def _fmod(x: Any, y: Any) -> Array:
    may_be_zero = not (type(y) is int and y)
    x, y = _both(x, y)
    return lax.rem(x, y) if kind(x.dtype) == "f" else _rest(x, y, may_be_zero)


def _rest(x: Array, y: Array, may_be_zero: bool) -> Array:
    """The rest of truncating division of integers; 0 where y is 0, as in NumPy."""
    rest = lax.rem(x, y)
    return lax.select_n(lax.eq(y, _zero(y)), rest, _zero(x)) if may_be_zero else rest


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """Floored quotient and a remainder with the sign of y, as Python's divmod."""
    zero = _zero(x)
    rest = lax.rem(x, y)
    quotient = lax.round(lax.div(lax.sub(x, rest), y))
    off = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.lt(rest, zero), lax.lt(y, zero)))
    rest = lax.select_n(off, rest, lax.add(rest, y))
    quotient = lax.select_n(off, quotient, lax.sub(quotient, _one(x)))
    # zeros have signs: that of y, and that of x / y
    negative = lax.lt(y, zero)
    positive = lax.add(lax.select_n(negative, rest, lax.neg(rest)), zero)
    rest = lax.select_n(negative, positive, lax.neg(positive))
    quotient = lax.select_n(lax.eq(quotient, zero), quotient, lax.mul(lax.div(x, y), zero))
    infinite = lax.eq(y, zero)
    return lax.select_n(infinite, quotient, lax.div(x, y)), rest


def _both(x: Any, y: Any) -> tuple[Array, Array]:
    """Both operands as arrays of one shape, for functions that combine them more than once."""
    if type(x) in (int, float):
        x = scalar_like(y, x)
    elif type(y) in (int, float):
        y = scalar_like(x, y)
    if not same_shape(x.shape, y.shape):
        shape = x.shape or y.shape
        x, y = (v if v.ndim else lax.broadcast_in_dim(v, shape, ()) for v in (x, y))
    return x, y


def _zero(x: Array) -> Array:
    return lax.full_like(x, 0)


def _one(x: Array) -> Array:
    return lax.full_like(x, 1)


def _divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    x, y = _both(*promote("divmod", x, y))
    if kind(x.dtype) == "b":
        x, y = (lax.convert_element_type(v, default_int()) for v in (x, y))
    if kind(x.dtype) == "f":
        return _float_divmod(x, y)
    return _floor_divide(x, y), _remainder(x, y)


def _lexicographic(real_op: Operation) -> Operation:
    """An order for complex numbers too: by real part, ties by imaginary part."""

    def op(x: Any, y: Any) -> Array:
        if type(x) is float or kind(x.dtype) != "c":
            return real_op(x, y)
        x, y = _both(x, y)
        xr, yr = lax.real(x), lax.real(y)
        tie = lax.eq(xr, yr)
        return lax.select_n(tie, real_op(xr, yr), real_op(lax.imag(x), lax.imag(y)))

    return op


def _power(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
           ) -> Array:
    """An int exponent becomes repeated multiplication: exact, and differentiable at 0."""
    if where is not None or out is not None:
        return applied_where("power", _power, (x, y), out, where)
    if type(y) is int and isinstance(x, ARRAYS) and (
            x.dtype.kind in "iufc" or x.dtype == complex32):
        if y < 0 and x.dtype.kind in "iu":
            raise ArgumentError(
                f"functrans.numpy.power: integers have no integer power {y}.",
                where=user_source(),
                fix=f"power(x.astype(float), {y})",
            )
        return lax.integer_pow(x, y)
    x, y = promote("power", x, y)
    if kind(x.dtype) in "iub":
        x, y = _both(x, y)
        return _integer_power(x, y)
    return lax.pow(x, y)


def _integer_power(x: Array, y: Array) -> Array:
    """x**y by squaring over the bits of y; a negative y gives 0 (1 or -1 for such bases)."""
    if kind(x.dtype) == "b":
        x, y = (lax.convert_element_type(v, default_int()) for v in (x, y))
    bits = x.dtype.itemsize * 8 - (kind(x.dtype) == "i")
    result, one, zero = _one(x), _one(x), _zero(x)
    remaining = y
    for bit in range(bits):
        odd = lax.ne(lax.bitwise_and(remaining, one), zero)
        result = lax.select_n(odd, result, lax.mul(result, x))
        if bit + 1 < bits:
            remaining = lax.shift_right_logical(remaining, one)
            x = lax.mul(x, x)
    return result


add = binary("add", lax.add, _add_scalar_docs("+", "add", "[3.0, 4.0]"), np.add,
             boolean=lax.bitwise_or)
subtract = binary("subtract", lax.sub, _add_scalar_docs("-", "subtract", "[-1.0, 0.0]"),
                  np.subtract, boolean=_boolean_reject("subtract"))
multiply = binary("multiply", lax.mul, _add_scalar_docs("*", "multiply", "[2.0, 4.0]"),
                  np.multiply, boolean=lax.bitwise_and)
divide = true_divide = binary(
    "divide", lax.div, _add_scalar_docs("/", "divide", "[0.5, 1.0]"), np.divide, kinds="fc")
floor_divide = binary("floor_divide", _floor_divide, "Largest integer value <= x / y.",
                      None, refused="c", boolean=_of_bools(_floor_divide))
remainder = mod = binary("remainder", _remainder, "Rest of floor division, with the sign of y.",
                         None, refused="c", boolean=_of_bools(_remainder))
fmod = binary("fmod", _fmod, "Rest of truncating division, with the sign of x.", None,
              refused="c", boolean=_of_bools(_fmod))
divmod = ufunc_like("divmod", "floor_divide(x, y) and remainder(x, y).", _divmod)
power: BinaryUfunc = cast_type("BinaryUfunc", ufunc_like("power", """x to the power y, elementwise.

    >>> import functrans.numpy as jnp
    >>> jnp.power(jnp.asarray([1.0, 3.0]), 2).tolist()
    [1.0, 9.0]
    """, _power, np.power, "fc"))
pow = power
maximum = binary("maximum", lax.max, "The larger of x and y; NaN if either is.", np.maximum)
minimum = binary("minimum", lax.min,
                 "The smaller of x and y, elementwise; NaN if either is.", np.minimum)
nextafter = binary("nextafter", lax.nextafter, "The next representable value after x towards y.",
                   np.nextafter, kinds="fc", refused="c")

# comparisons ---------------------------------------------------------------------------------


equal = binary("equal", lax.eq, "x == y, elementwise.", np.equal)
not_equal = binary("not_equal", lax.ne, "x != y, elementwise.", np.not_equal)
less = binary("less", _lexicographic(lax.lt), "x < y, elementwise.", np.less)
less_equal = binary("less_equal", _lexicographic(lax.le), "x <= y, elementwise.", np.less_equal)
greater = binary("greater", _lexicographic(lax.gt), "x > y, elementwise.", np.greater)
greater_equal = binary("greater_equal", _lexicographic(lax.ge), "x >= y, elementwise.",
                       np.greater_equal)


def _is_inf(x: Array) -> Array:
    if kind(x.dtype) == "c":
        return lax.bitwise_or(_is_inf(lax.real(x)), _is_inf(lax.imag(x)))
    return lax.eq(lax.abs(x), lax.full_like(x, np.inf))


def _is_finite(x: Array) -> Array:
    if kind(x.dtype) == "c":
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def _is_signed_inf(x: Array, value: float) -> Array:
    if kind(x.dtype) == "c":
        raise DTypeError("functrans.numpy.isposinf and isneginf do not take complex numbers.",
                         where=user_source())
    return lax.eq(x, lax.full_like(x, value))


isnan = predicate("isnan", lambda x: lax.ne(x, x), "Whether x is NaN.", False, np.isnan)
isinf = predicate("isinf", _is_inf, "Whether x is infinite.", False, np.isinf)
isfinite = predicate("isfinite", _is_finite, "Whether x is neither infinite nor NaN.", True,
                     np.isfinite)
_isposinf = predicate("isposinf", lambda x: _is_signed_inf(x, np.inf), "", False)
_isneginf = predicate("isneginf", lambda x: _is_signed_inf(x, -np.inf), "", False)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is +inf.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return _isposinf(x, out=out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is -inf.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    return _isneginf(x, out=out)


# logic and bits ------------------------------------------------------------------------------


def logical(name: str, op: Operation, doc: str, fast: np.ufunc) -> BinaryUfunc:
    """A function of truth values."""

    def fallback(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None
                 ) -> Array:
        if where is not None or out is not None:
            return applied_where(name, fallback, (x, y), out, where)
        x, y = promote(name, truth(operand(name, x)), truth(operand(name, y)))
        return op(x, y)

    return cast_type("BinaryUfunc", ufunc_like(name, doc, fallback, fast))


def bitwise(name: str, op: Operation, doc: str, fast: np.ufunc,
            boolean: Operation | None = None) -> BinaryUfunc:
    """A function of integers."""
    return binary(name, op, doc, fast, "biu", "fc", boolean)


logical_and = logical("logical_and", lax.bitwise_and, "x and y as truth values.", np.logical_and)
logical_or = logical("logical_or", lax.bitwise_or, "x or y as truth values.", np.logical_or)
logical_xor = logical("logical_xor", lax.bitwise_xor, "Whether one of x and y is true.",
                      np.logical_xor)
logical_not = unary("logical_not", lambda x: lax.bitwise_not(truth(x)), "not x as truth values.",
                    np.logical_not, "biufc")
bitwise_and = bitwise("bitwise_and", lax.bitwise_and, "Bits set in both x and y.", np.bitwise_and)
bitwise_or = bitwise("bitwise_or", lax.bitwise_or, "Bits set in x or y.", np.bitwise_or)
bitwise_xor = bitwise("bitwise_xor", lax.bitwise_xor, "Bits set in one of x and y.",
                      np.bitwise_xor)
left_shift = bitwise_left_shift = bitwise("left_shift", lax.shift_left, "x * 2**y on the bits.",
                                          np.left_shift, _of_bools(lax.shift_left))


def _right_shift(x: Array, y: Array) -> Array:
    op = lax.shift_right_logical if kind(x.dtype) == "u" else lax.shift_right_arithmetic
    return op(x, y)


def _invert(x: ArrayLike, /, *, out: None = None, where: ArrayLike | None = None) -> Array:
    if where is not None or out is not None:
        return applied_where("invert", _invert, (x,), out, where)
    x = operand("invert", x)
    if kind(x.dtype) in "fc":
        raise DTypeError(f"functrans.numpy.invert takes integers and booleans, and got {x.dtype}.",
                         where=user_source())
    return lax.bitwise_not(x)


right_shift = bitwise_right_shift = bitwise("right_shift", _right_shift,
                                            "x // 2**y on the bits, keeping the sign.",
                                            np.right_shift, _of_bools(_right_shift))
invert = bitwise_not = bitwise_invert = ufunc_like("invert", "Every bit of x flipped.", _invert,
                                                   np.invert)
bitwise_count = unary(
    "bitwise_count",
    lambda x: lax.convert_element_type(lax.population_count(_abs_bits(x)), np.dtype(np.uint8)),
    "Number of bits set in |x|, as uint8; of a boolean it is 0 or 1.", None, "biu")


def _abs_bits(x: Array) -> Array:
    if kind(x.dtype) == "b":
        return lax.convert_element_type(x, np.dtype(np.uint8))
    return lax.abs(x) if kind(x.dtype) == "i" else x


# complex parts -------------------------------------------------------------------------------


def _real(val: ArrayLike, /) -> Array:
    val = operand("real", val)
    return lax.real(val) if kind(val.dtype) == "c" else val


def _imag(val: ArrayLike, /) -> Array:
    val = operand("imag", val)
    return lax.imag(val) if kind(val.dtype) == "c" else _zero(val)


real = ufunc_like("real", "Real part; a real x itself.", _real)
imag = ufunc_like("imag", "Imaginary part; zeros for a real x.", _imag)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Angle of complex numbers to the positive real axis, in radians, or degrees if deg.

    >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = promote_inexact("angle", z)[0]
    result = lax.atan2(_imag(z), _real(z))
    return multiply(result, float(180 / np.pi)) if deg else result


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False,
           device: DeviceLike | None = None) -> Array:
    """x converted to dtype (the default float if None); complex to real drops imaginary parts.

    >>> jnp.astype(jnp.array([1.7, -1.7]), "int32")
    Array([ 1, -1], dtype=int32)
    """
    if device is not None:
        find_device(device)
        return astype(x, dtype).to_device(device)
    del copy  # arrays are immutable: a copy cannot be told from the original
    x = operand("astype", x)
    dtype = default_float() if dtype is None else as_dtype(dtype)
    if kind(x.dtype) == "c" and kind(dtype) != "c":
        x = lax.real(x) if kind(dtype) != "b" else truth(x)
    if kind(dtype) == "b":
        return truth(x)
    converted = cast(x, dtype)
    return lax.convert_element_type(x, dtype) if converted.weak_type else converted


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh
