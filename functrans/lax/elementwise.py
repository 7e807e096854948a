"""The elementwise primitives as functions with jax.lax's names of arguments.

Two operands have one shape, or one is a scalar, or they have one rank and where their sizes differ
one size is 1: as in jax.lax, ranks are not promoted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from functrans._runtime import EagerOp, get_trace
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim
from functrans.core.errors import ShapeError
from functrans.core.example_text import with_example
from functrans.lax.elementwise_examples import EXAMPLES
from functrans.lax.next_numbers import next_number
from functrans.primitives import arithmetic, compare, special, transcendental
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.convert import convert_element_type
from functrans.primitives.elementwise import Elementwise
from functrans.typing import Array, ArrayLike, DTypeLike

if TYPE_CHECKING:
    from functrans._array_types import Binary, Unary

F = TypeVar("F", bound=Callable[..., Array])


def _named(primitive: Elementwise, name: str, fallback: F) -> F:
    """`fallback` under its public name, with the primitive's ufunc as fast path."""
    fallback.__name__ = fallback.__qualname__ = name
    doc = with_example(primitive.__doc__, EXAMPLES.get(name))
    fallback.__doc__ = doc
    eager = primitive.eager
    if not isinstance(eager, EagerOp):
        return fallback
    op = EagerOp(eager.ufunc, fallback, name, doc, primitive.fast_kinds, False)
    op.__module__ = __name__  # by which it is pickled
    return cast("F", op)


def _unary(primitive: Elementwise, name: str = "",
           bind: Callable[[ArrayLike], Array] | None = None) -> Unary:
    bind = primitive.bind if bind is None else bind

    def fallback(x: ArrayLike) -> Array:
        return bind(x)

    return cast("Unary", _named(primitive, name or primitive.name, fallback))


def _binary(primitive: Elementwise, name: str = "",
            bind: Callable[[ArrayLike, ArrayLike], Array] | None = None) -> Binary:
    bind = primitive.bind if bind is None else bind

    def fallback(x: ArrayLike, y: ArrayLike) -> Array:
        try:
            return bind(x, y)
        except ShapeError:
            return bind(*_broadcast(x, y))

    return _named(primitive, name or primitive.name, fallback)


def _broadcast(x: Any, y: Any) -> tuple[Any, Any]:
    """Operands of one rank repeated along axes of size 1; as they are where they do not fit."""
    first, second = get_aval(x).shape, get_aval(y).shape
    if len(first) != len(second):
        return x, y
    shape = tuple(b if _is_one(a) else a for a, b in zip(first, second, strict=True))
    return _repeated(x, first, shape), _repeated(y, second, shape)


def _repeated(x: Any, own: tuple[Any, ...], shape: tuple[Any, ...]) -> Any:
    if own == shape or any(a != b and not _is_one(a) for a, b in zip(own, shape, strict=True)):
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))))


def _is_one(size: Any) -> bool:
    return not isinstance(size, Dim) and size == 1


def _conj(x: ArrayLike) -> Array:
    """Of a real number the complex one, as in jax.lax."""
    aval = get_aval(x)
    if dtypes.kind(aval.dtype) == "f":
        return arithmetic.complex(x, full(aval.shape, 0, aval.dtype))
    return arithmetic.conj_p.bind(x)


def _pow(x: ArrayLike, y: ArrayLike) -> Array:
    """An exponent of integers beside a base of floats becomes one of these."""
    base, exponent = get_aval(x), get_aval(y)
    if dtypes.kind(base.dtype) in "fc" and dtypes.kind(exponent.dtype) in "iu":
        y = convert_element_type(y, base.dtype)
    return arithmetic.pow_p.bind(x, y)


abs = _unary(arithmetic.abs_p)
ceil = _unary(arithmetic.ceil_p)
conj = _unary(arithmetic.conj_p, bind=_conj)
floor = _unary(arithmetic.floor_p)
imag = _unary(arithmetic.imag_p)
neg = _unary(arithmetic.neg_p)
real = _unary(arithmetic.real_p)
sign = _unary(arithmetic.sign_p)
trunc = _unary(arithmetic.trunc_p)
bitwise_not = _unary(compare.not_p, "bitwise_not")
clz = _unary(compare.clz_p)
is_finite = _unary(compare.is_finite_p)
population_count = _unary(compare.population_count_p)
acos = _unary(transcendental.acos_p)
acosh = _unary(transcendental.acosh_p)
asin = _unary(transcendental.asin_p)
asinh = _unary(transcendental.asinh_p)
atan = _unary(transcendental.atan_p)
atanh = _unary(transcendental.atanh_p)
cbrt = _unary(transcendental.cbrt_p)
cos = _unary(transcendental.cos_p)
cosh = _unary(transcendental.cosh_p)
digamma = _unary(transcendental.digamma_p)
erf = _unary(transcendental.erf_p)
erf_inv = _unary(transcendental.erf_inv_p)
erfc = _unary(transcendental.erfc_p)
exp = _unary(transcendental.exp_p)
exp2 = _unary(transcendental.exp2_p)
expm1 = _unary(transcendental.expm1_p)
lgamma = _unary(transcendental.lgamma_p)
log = _unary(arithmetic.log_p)
log1p = _unary(transcendental.log1p_p)
logistic = _unary(transcendental.logistic_p)
rsqrt = _unary(transcendental.rsqrt_p)
sin = _unary(transcendental.sin_p)
sinh = _unary(transcendental.sinh_p)
sqrt = _unary(transcendental.sqrt_p)
tan = _unary(transcendental.tan_p)
tanh = _unary(transcendental.tanh_p)
bessel_i0e = _unary(special.bessel_i0e_p)
bessel_i1e = _unary(special.bessel_i1e_p)

add = _binary(arithmetic.add_p)
complex = _binary(arithmetic.complex_p)
div = _binary(arithmetic.div_p)
max = _binary(arithmetic.max_p)
min = _binary(arithmetic.min_p)
pow = _binary(arithmetic.pow_p, bind=_pow)
rem = _binary(arithmetic.rem_p)
sub = _binary(arithmetic.sub_p)
atan2 = _binary(transcendental.atan2_p)
bitwise_and = _binary(compare.and_p, "bitwise_and")
bitwise_or = _binary(compare.or_p, "bitwise_or")
bitwise_xor = _binary(compare.xor_p, "bitwise_xor")
eq = _binary(compare.eq_p)
ge = _binary(compare.ge_p)
gt = _binary(compare.gt_p)
le = _binary(compare.le_p)
lt = _binary(compare.lt_p)
ne = _binary(compare.ne_p)
shift_left = _binary(compare.shift_left_p)
shift_right_arithmetic = _binary(compare.shift_right_arithmetic_p)
shift_right_logical = _binary(compare.shift_right_logical_p)
_nextafter = _binary(arithmetic.nextafter_p)
_igamma = _binary(special.igamma_p)
_igammac = _binary(special.igammac_p)
_random_gamma_grad = _binary(special.random_gamma_grad_p)
_zeta = _binary(special.zeta_p)
_mul = arithmetic.mul_p.bind


def _typed_mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    try:
        return _mul(x, y)
    except ShapeError:
        return _mul(*_broadcast(x, y))


mul = _named(arithmetic.mul_p, "mul", _typed_mul)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable number after x1 towards x2.

    >>> lax.nextafter(jnp.float32(0), jnp.float32(1))
    Array(1.e-45, dtype=float32)
    """
    if get_trace() is not None:
        a, b = to_array(x1, "nextafter: x1"), to_array(x2, "nextafter: x2")
        if a.dtype == b.dtype and dtypes.is_half(a.dtype):
            shape = a.shape or b.shape
            return next_number(*_broadcast(*(v if v.shape else broadcast_in_dim(v, shape, ())
                                             for v in (a, b))))
    return _nextafter(x1, x2)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x).

    >>> lax.igamma(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(4)
    Array([0.6321, 0.2642], dtype=float32)
    """
    return _igamma(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function Q(a, x).

    >>> lax.igammac(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(4)
    Array([0.3679, 0.7358], dtype=float32)
    """
    return _igammac(a, x)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of samples x of a gamma distribution in its shape a.

    >>> lax.random_gamma_grad(jnp.array([2.0]), jnp.array([1.5])).round(4)
    Array([0.9366], dtype=float32)
    """
    return _random_gamma_grad(a, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of (k + q) ** -x over k >= 0.

    >>> lax.zeta(jnp.array([2.0, 4.0]), jnp.array([1.0, 1.0])).round(4)
    Array([1.6449, 1.0823], dtype=float32)
    """
    return _zeta(x, q)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order m of digamma at x > 0; m is whole, or the result NaN.

    >>> import functrans as ft
    >>> round(float(ft.lax.polygamma(1, ft.numpy.float32(1.0))), 4)
    1.6449
    """
    if isinstance(m, (int, np.integer)) and m > 0:
        return transcendental.polygamma(x, int(m))
    x, m = to_array(x, "polygamma: x"), to_array(m, "polygamma: m")
    if x.weak_type and not m.weak_type and dtypes.kind(m.dtype) == "f":
        x = convert_element_type(x, m.dtype)
    order = convert_element_type(m, x.dtype, m.weak_type and x.weak_type)
    shape = x.shape or m.shape
    order, x = (v if v.shape else broadcast_in_dim(v, shape, ()) for v in (order, x))
    one = add(order, 1.0)
    sign_of = sub(mul(rem(order, 2.0), 2.0), 1.0)  # (-1) ** (m + 1)
    value = mul(sign_of, mul(exp(lgamma(one)), zeta(one, x)))
    is_whole = eq(rem(order, 1.0), 0.0)
    nan = convert_element_type(np.asarray(np.nan, x.dtype), x.dtype, value.weak_type)
    value = compare.select_n(is_whole, broadcast_in_dim(nan, shape, ()), value)
    return compare.select_n(eq(order, 0.0), value, digamma(x))
