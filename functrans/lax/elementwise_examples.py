"""An example of each of JAX's elementwise operations, which are made from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from functrans.core.example_text import parsed

__all__ = ["EXAMPLES"]

EXAMPLES: Final[Mapping[str, str]] = parsed("""\
abs
>>> lax.abs(jnp.array([-3.0, 2.0]))
Array([3., 2.], dtype=float32)

ceil
>>> lax.ceil(jnp.array([0.2, -0.2]))
Array([ 1., -0.], dtype=float32)

conj
>>> lax.conj(jnp.array([1 + 2j]))
Array([1.-2.j], dtype=complex64)

floor
>>> lax.floor(jnp.array([0.9, -0.1]))
Array([ 0., -1.], dtype=float32)

imag
>>> lax.imag(jnp.array([1 + 2j]))
Array([2.], dtype=float32)

neg
>>> lax.neg(jnp.array([1, -2]))
Array([-1,  2], dtype=int32)

real
>>> lax.real(jnp.array([1 + 2j]))
Array([1.], dtype=float32)

sign
>>> lax.sign(jnp.array([-4, 0, 4]))
Array([-1,  0,  1], dtype=int32)

trunc
>>> lax.trunc(jnp.array([2.9, -2.9]))
Array([ 2., -2.], dtype=float32)

bitwise_not
>>> lax.bitwise_not(jnp.array([0, 7]))
Array([-1, -8], dtype=int32)

clz
>>> lax.clz(jnp.array([1, 255]))
Array([31, 24], dtype=int32)

is_finite
>>> lax.is_finite(jnp.array([0.0, jnp.inf, jnp.nan]))
Array([ True, False, False], dtype=bool)

population_count
>>> lax.population_count(jnp.array([7, 256]))
Array([3, 1], dtype=int32)

acos
>>> lax.acos(jnp.array([1.0, -1.0])).round(4)
Array([0.    , 3.1416], dtype=float32)

acosh
>>> lax.acosh(jnp.array([1.0, 3.0])).round(4)
Array([0.    , 1.7627], dtype=float32)

asin
>>> lax.asin(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 1.5708], dtype=float32)

asinh
>>> lax.asinh(jnp.array([0.0, 2.0])).round(4)
Array([0.    , 1.4436], dtype=float32)

atan
>>> lax.atan(jnp.array([1.0, -1.0])).round(4)
Array([ 0.7854, -0.7854], dtype=float32)

atanh
>>> lax.atanh(jnp.array([0.0, 0.25])).round(4)
Array([0.    , 0.2554], dtype=float32)

cbrt
>>> lax.cbrt(jnp.array([27.0, -8.0])).round(4)
Array([ 3., -2.], dtype=float32)

cos
>>> lax.cos(jnp.array([0.0, 1.0])).round(4)
Array([1.    , 0.5403], dtype=float32)

cosh
>>> lax.cosh(jnp.array([0.0, 2.0])).round(4)
Array([1.    , 3.7622], dtype=float32)

digamma
>>> lax.digamma(jnp.array([1.0, 2.0])).round(4)
Array([-0.5772,  0.4228], dtype=float32)

erf
>>> lax.erf(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 0.8427], dtype=float32)

erf_inv
>>> lax.erf_inv(jnp.array([0.0, 0.5, 1.0])).round(4)
Array([0.    , 0.4769,    inf], dtype=float32)

erfc
>>> lax.erfc(jnp.array([0.0, 0.5])).round(4)
Array([1.    , 0.4795], dtype=float32)

exp
>>> lax.exp(jnp.array([0.0, 1.0])).round(4)
Array([1.    , 2.7183], dtype=float32)

exp2
>>> lax.exp2(jnp.array([10.0, -2.0]))
Array([1.024e+03, 2.500e-01], dtype=float32)

expm1
>>> lax.expm1(jnp.array([0.0, 0.5])).round(4)
Array([0.    , 0.6487], dtype=float32)

lgamma
>>> lax.lgamma(jnp.array([1.0, 5.0])).round(4)
Array([0.    , 3.1781], dtype=float32)

log
>>> lax.log(jnp.array([1.0, 10.0])).round(4)
Array([0.    , 2.3026], dtype=float32)

log1p
>>> lax.log1p(jnp.array([0.0, 0.5])).round(4)
Array([0.    , 0.4055], dtype=float32)

logistic
>>> lax.logistic(jnp.array([0.0, 4.0])).round(4)
Array([0.5  , 0.982], dtype=float32)

rsqrt
>>> lax.rsqrt(jnp.array([4.0, 0.25]))
Array([0.5, 2. ], dtype=float32)

sin
>>> lax.sin(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 0.8415], dtype=float32)

sinh
>>> lax.sinh(jnp.array([0.0, 2.0])).round(4)
Array([0.    , 3.6269], dtype=float32)

sqrt
>>> lax.sqrt(jnp.array([9.0, 2.0])).round(4)
Array([3.    , 1.4142], dtype=float32)

tan
>>> lax.tan(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 1.5574], dtype=float32)

tanh
>>> lax.tanh(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 0.7616], dtype=float32)

bessel_i0e
>>> lax.bessel_i0e(jnp.array([0.0, 1.0])).round(4)
Array([1.    , 0.4658], dtype=float32)

bessel_i1e
>>> lax.bessel_i1e(jnp.array([0.0, 1.0])).round(4)
Array([0.    , 0.2079], dtype=float32)

add
>>> lax.add(jnp.array([1, 2]), jnp.array([10, 20]))
Array([11, 22], dtype=int32)

complex
>>> lax.complex(jnp.array([1.0, 2.0]), jnp.array([0.0, -1.0]))
Array([1.+0.j, 2.-1.j], dtype=complex64)

div
>>> lax.div(jnp.array([7, -7]), jnp.array([2, 2]))
Array([ 3, -3], dtype=int32)

max
>>> lax.max(jnp.array([1.0, 5.0]), jnp.array([3.0, 3.0]))
Array([3., 5.], dtype=float32)

min
>>> lax.min(jnp.array([1.0, 5.0]), jnp.array([3.0, 3.0]))
Array([1., 3.], dtype=float32)

pow
>>> lax.pow(jnp.array([2.0, 9.0]), jnp.array([3.0, 0.5]))
Array([8., 3.], dtype=float32)

rem
>>> lax.rem(jnp.array([7, -7]), jnp.array([3, 3]))
Array([ 1, -1], dtype=int32)

sub
>>> lax.sub(jnp.array([5, 1]), jnp.array([2, 2]))
Array([ 3, -1], dtype=int32)

mul
>>> lax.mul(jnp.array([2.0, 3.0]), jnp.array([4.0, 5.0]))
Array([ 8., 15.], dtype=float32)

atan2
>>> lax.atan2(jnp.array([1.0, -1.0]), jnp.array([0.0, 0.0])).round(4)
Array([ 1.5708, -1.5708], dtype=float32)

bitwise_and
>>> lax.bitwise_and(jnp.array([12]), jnp.array([10]))
Array([8], dtype=int32)

bitwise_or
>>> lax.bitwise_or(jnp.array([12]), jnp.array([10]))
Array([14], dtype=int32)

bitwise_xor
>>> lax.bitwise_xor(jnp.array([12]), jnp.array([10]))
Array([6], dtype=int32)

eq
>>> lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
Array([ True, False], dtype=bool)

ge
>>> lax.ge(jnp.array([1, 2]), jnp.array([2, 2]))
Array([False,  True], dtype=bool)

gt
>>> lax.gt(jnp.array([1, 3]), jnp.array([2, 2]))
Array([False,  True], dtype=bool)

le
>>> lax.le(jnp.array([1, 3]), jnp.array([2, 2]))
Array([ True, False], dtype=bool)

lt
>>> lax.lt(jnp.array([1, 2]), jnp.array([2, 2]))
Array([ True, False], dtype=bool)

ne
>>> lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
Array([False,  True], dtype=bool)

shift_left
>>> lax.shift_left(jnp.array([1, 5]), jnp.array([3, 1]))
Array([ 8, 10], dtype=int32)

shift_right_arithmetic
>>> lax.shift_right_arithmetic(jnp.array([-16]), jnp.array([2]))
Array([-4], dtype=int32)

shift_right_logical
>>> lax.shift_right_logical(jnp.array([-16]), jnp.array([28]))
Array([15], dtype=int32)
""")
