"""Arithmetic: the four operations, remainders, powers, signs, rounding, complex parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.primitive import Linear, Sample
from functrans.core.trace import Tracer
from functrans.primitives.base import sample_array
from functrans.primitives.compare import eq, lt, where
from functrans.primitives.convert import convert_element_type
from functrans.primitives.elementwise import Elementwise, Operation, bilinear, fit, unary_linear

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike


class Neg(Elementwise):
    """-x, elementwise."""

    kinds = "iufc"
    evaluate = np.negative
    derivatives = (lambda t, out, x: neg(t),)
    transpose = unary_linear


class Add(Elementwise):
    """x + y, elementwise."""

    takes_scalars = True
    kinds = "iufc"
    evaluate = np.add
    derivatives = (lambda t, out, x, y: t, lambda t, out, x, y: t)
    transpose = bilinear(lambda ct, y: ct, lambda ct, x: ct)


class Sub(Elementwise):
    """x - y, elementwise."""

    takes_scalars = True
    kinds = "iufc"
    evaluate = np.subtract
    derivatives = (lambda t, out, x, y: t, lambda t, out, x, y: neg(t))
    transpose = bilinear(lambda ct, y: ct, lambda ct, x: neg(ct))


class Mul(Elementwise):
    """x * y, elementwise."""

    takes_scalars = True
    kinds = "biufc"
    evaluate = np.multiply
    derivatives = (lambda t, out, x, y: mul(t, y), lambda t, out, x, y: mul(x, t))
    transpose = bilinear(lambda ct, y: mul(ct, y), lambda ct, x: mul(x, ct))
    sample_dtype = np.dtype(np.float32)


class Div(Elementwise):
    """x / y, elementwise; integers divide towards zero, by zero giving -1 (as in XLA)."""

    takes_scalars = True
    kinds = "iufc"
    domain = ((-2.0, 2.0), (0.5, 2.0))
    derivatives = (lambda t, out, x, y: div(t, y),
                   lambda t, out, x, y: neg(mul(t, div(out, y))))
    ufunc = np.true_divide
    arity = 2

    def evaluate(self, x: Any, y: Any) -> Any:
        dtype = np.result_type(x, y)
        if dtype.kind not in "iu":
            return np.true_divide(x, y)
        safe = np.where(y == 0, 1, y)
        # two's complement: the smallest number divided by -1 is itself
        quotient = np.where(safe == -1, np.negative(x), np.floor_divide(x, safe)) \
            if dtype.kind == "i" else np.floor_divide(x, safe)
        if dtype.kind == "i":
            inexact = (np.remainder(x, safe) != 0) & ((x < 0) != (safe < 0)) & (safe != -1)
            quotient = quotient + inexact
        minus_one = np.array(-1).astype(dtype)
        return np.where(y == 0, minus_one, quotient).astype(dtype)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, None]:
        return fit(div(ct, y), x), None

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        yield Sample((np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)))


class Rem(Elementwise):
    """Remainder of x / y with the sign of x, elementwise; x itself for integers where y is 0."""

    kinds = "iuf"
    domain = ((-2.0, 2.0), (0.7, 0.9))
    derivatives = (lambda t, out, x, y: t, lambda t, out, x, y: neg(mul(t, trunc(div(x, y)))))
    arity = 2

    def evaluate(self, x: Any, y: Any) -> Any:
        if np.result_type(x, y).kind == "f":
            return np.fmod(x, y)
        zero = y == 0
        return np.where(zero, x, np.fmod(x, np.where(zero, 1, y)))

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, None]:
        return fit(ct, x), None


class Pow(Elementwise):
    """x ** y for floating or complex x and y, elementwise."""

    evaluate = np.power
    domain = ((0.3, 2.0), (-2.0, 2.0))
    derivatives = (
        lambda t, out, x, y: mul(t, mul(y, pow(_base(out, x, y), _minus_one(y)))),
        lambda t, out, x, y: mul(t, _power_times_log(out, x, y)))


class IntegerPow(Elementwise):
    """x ** y for a Python int y, elementwise."""

    kinds = "iufc"
    domain = ((0.5, 2.0),)
    derivatives = (lambda t, out, x, *, y: _integer_pow_derivative(t, x, y),)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if params["y"] == 2 and isinstance(args[0], ArrayBase) and args[0].dtype != np.bool_:
            return mul_p.evaluate_eagerly((args[0], args[0]), {})
        return super().evaluate_eagerly(args, params)

    def evaluate(self, x: Any, *, y: int) -> Any:
        if y == 2:
            return np.multiply(x, x)
        if y < 0 or x.dtype.kind in "fc":
            return np.power(x, np.asarray(y).astype(x.dtype))
        return np.power(x, y)

    def samples(self) -> Iterator[Sample]:
        for y in (2, 3, -1, 0, 1):
            yield Sample((sample_array(3, low=0.5, high=2.0),), {"y": y})


class Log(Elementwise):
    """The natural logarithm of x."""

    evaluate = np.log
    domain = ((0.2, 3.0),)
    derivatives = (lambda t, out, x: div(t, x),)


class Max(Elementwise):
    """The larger of x and y, elementwise; NaN if either is. Ties share the derivative.

    Complex numbers are ordered by their real and then by their imaginary parts.
    """

    kinds = "biufc"
    evaluate = np.maximum
    derivatives = (lambda t, out, x, y: mul(t, _chosen(x, out, y)),
                   lambda t, out, x, y: mul(t, _chosen(y, out, x)))
    sample_dtype = np.dtype(np.float32)


class Min(Elementwise):
    """The smaller of x and y, elementwise, in the order of `Max`; NaN if either is."""

    kinds = "biufc"
    evaluate = np.minimum
    derivatives = (lambda t, out, x, y: mul(t, _chosen(x, out, y)),
                   lambda t, out, x, y: mul(t, _chosen(y, out, x)))
    sample_dtype = np.dtype(np.float32)


class Sign(Elementwise):
    """-1, 0 or 1 by the sign of x; x / |x| for complex x; NaN stays."""

    kinds = "iufc"
    evaluate = np.sign
    derivatives = (None,)


class Floor(Elementwise):
    """The largest integer not above x, as a floating number."""

    kinds = "f"
    evaluate = np.floor
    derivatives = (None,)


class Ceil(Elementwise):
    """The smallest integer not below x, as a floating number."""

    kinds = "f"
    evaluate = np.ceil
    derivatives = (None,)


class Trunc(Elementwise):
    """x without its fraction, as a floating number."""

    kinds = "f"
    evaluate = np.trunc
    derivatives = (None,)


class Round(Elementwise):
    """The nearest integer, ties to even, as a floating number."""

    kinds = "f"
    evaluate = np.rint
    derivatives = (None,)


class Abs(Elementwise):
    """|x|, elementwise; real for complex x."""

    kinds = "iufc"
    evaluate = np.absolute
    derivatives = (lambda t, out, x: _abs_derivative(t, out, x),)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return dtypes.real_dtype(dtype)


class Nextafter(Elementwise):
    """The next representable number after x towards y."""

    kinds = "f"
    widens_halves = False
    derivatives = (lambda t, out, x, y: t, None)

    def evaluate(self, x: Any, y: Any) -> Any:
        # before 2.5 NumPy's float16 gave the first of two equal zeros
        return np.where(x == y, y, np.nextafter(x, y))


class Real(Elementwise):
    """The real part of complex x."""

    kinds = "c"
    derivatives = (lambda t, out, x: real(t),)

    def evaluate(self, x: Any) -> Any:
        return np.real(x)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return dtypes.real_dtype(dtype)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (convert_element_type(ct, x.aval.dtype),)


class Imag(Elementwise):
    """The imaginary part of complex x."""

    kinds = "c"
    derivatives = (lambda t, out, x: imag(t),)

    def evaluate(self, x: Any) -> Any:
        return np.imag(x)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return dtypes.real_dtype(dtype)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        # linear transposition without conjugation: the transpose of z -> Im z is c -> -i c
        return (mul(convert_element_type(ct, x.aval.dtype), -1j),)


class Complex(Elementwise):
    """x + i y of real floating x and y."""

    kinds = "f"
    widens_halves = False  # parts are joined as they are
    derivatives = (lambda t, out, x, y: complex(t, mul(t, 0.0)),
                   lambda t, out, x, y: complex(mul(t, 0.0), t))
    arity = 2

    def evaluate(self, x: Any, y: Any) -> Any:
        # not x + 1j * y, in which an infinite y makes the real part NaN
        dtype = np.result_type(x, y)
        out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), dtypes.complex_dtype(dtype))
        out.real, out.imag = x, y
        return out.astype(self.result_dtype(dtype), copy=False)

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return dtypes.complex32 if dtype == dtypes.float16 else dtypes.complex_dtype(dtype)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return (fit(real(ct), x) if isinstance(x, Linear) else None,
                fit(neg(imag(ct)), y) if isinstance(y, Linear) else None)


class Conj(Elementwise):
    """The complex conjugate of x."""

    kinds = "c"
    evaluate = np.conjugate
    derivatives = (lambda t, out, x: conj(t),)
    # as a real-linear map, the transpose of conjugation under <a, b> = Re(a b) is itself
    transpose = unary_linear


neg_p, add_p, sub_p, mul_p, div_p, rem_p = Neg(), Add(), Sub(), Mul(), Div(), Rem()
pow_p, integer_pow_p, max_p, min_p = Pow(), IntegerPow(), Max(), Min()
sign_p, floor_p, ceil_p, trunc_p, round_p = Sign(), Floor(), Ceil(), Trunc(), Round()
log_p = Log()
abs_p, nextafter_p = Abs(), Nextafter()
real_p, imag_p, complex_p, conj_p = Real(), Imag(), Complex(), Conj()

# annotated where rules above refer to them: a type checker infers names only after class bodies
neg: Operation = neg_p.eager
mul: Operation = mul_p.eager
div: Operation = div_p.eager
pow: Operation = pow_p.eager
trunc: Operation = trunc_p.eager
real: Operation = real_p.eager
imag: Operation = imag_p.eager
complex: Operation = complex_p.eager
conj: Operation = conj_p.eager
add, sub, rem, log = add_p.eager, sub_p.eager, rem_p.eager, log_p.eager
max, min, sign, abs = max_p.eager, min_p.eager, sign_p.eager, abs_p.eager
floor, ceil, rint, nextafter = floor_p.eager, ceil_p.eager, round_p.eager, nextafter_p.eager


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a Python int y.

    >>> import functrans as ft
    >>> float(ft.lax.integer_pow(ft.numpy.float32(2.0), 3))
    8.0
    """
    return integer_pow_p.bind(x, y=y)


def _integer_pow_derivative(t: Any, x: Any, y: int) -> Any:
    if y == 0:
        return None
    if y == 1:
        return t
    factor = x if y == 2 else integer_pow(x, y - 1)
    return mul(t, mul(factor, float(y)))


def _minus_one(y: Any) -> Any:
    """y - 1; a Python number stays one, so that it takes the dtype of the base."""
    return y - 1 if isinstance(y, (int, float)) else sub(y, 1.0)


def _base(out: Any, x: Any, y: Any) -> Any:
    """The base of x ** (y - 1), and 1 where that is infinite and y is 0.

    There 0 * x ** -1 would be NaN; elsewhere even at y = 0 the product has a derivative in y.
    """
    if not isinstance(y, Tracer) and np.all(np.asarray(y) != 0):
        return x
    tiny = lt(abs(x), 1 / float(dtypes.finfo(get_aval(out).dtype).max))
    return where(eq(y, 0.0), where(tiny, 1.0, x), x, like=out)


def _power_times_log(out: Any, x: Any, y: Any) -> Any:
    """x ** y log x, and 0 where x is 0, so that 0 ** y has no NaN derivative in y.

    The derivative in x at x = 0, y = 1 is that of y x ** (y - 1) in y: the Hessian is symmetric.
    """
    zero = eq(x, 0.0)
    return where(zero, where(eq(y, 1.0), x, 0.0, like=out),
                 mul(out, log(where(zero, 1.0, x))), like=out)


def _chosen(x: Any, out: Any, y: Any) -> Any:
    """How much of the derivative goes to x where `out` was chosen from x and y."""
    return where(eq(x, out), where(eq(y, out), 0.5, 1.0, like=out), 0.0, like=out)


def _abs_derivative(t: Any, out: Any, x: Any) -> Any:
    if dtypes.kind(get_aval(x).dtype) != "c":
        return mul(t, sign(x))
    safe = where(eq(out, 0.0), 1.0, out)
    return div(add(mul(real(t), real(x)), mul(imag(t), imag(x))), safe)
