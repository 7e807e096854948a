"""An example of each of NumPy's functions that are made from tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from functrans.core.example_text import parsed

__all__ = ["EXAMPLES"]

EXAMPLES: Final[Mapping[str, str]] = parsed("""\
sin
>>> jnp.sin(jnp.zeros(2)).tolist()
[0.0, 0.0]

exp
>>> jnp.exp(jnp.zeros(2)).tolist()
[1.0, 1.0]

absolute
>>> jnp.abs(jnp.asarray([-1, 2])).tolist()
[1, 2]

maximum
>>> jnp.maximum(jnp.asarray([-1.0, 2.0]), 0).tolist()
[0.0, 2.0]

cos
>>> jnp.cos(jnp.array([0.0, jnp.pi]))
Array([ 1., -1.], dtype=float32)

tan
>>> jnp.tan(jnp.array([0.0, jnp.pi / 4])).round(4)
Array([0., 1.], dtype=float32)

arcsin
>>> jnp.arcsin(jnp.array([-1.0, 0.5, 2.0])).round(4)
Array([-1.5708,  0.5236,     nan], dtype=float32)

arccos
>>> jnp.arccos(jnp.array([1.0, 0.0, -1.0])).round(4)
Array([0.    , 1.5708, 3.1416], dtype=float32)

arctan
>>> jnp.arctan(jnp.array([0.0, 1.0, jnp.inf])).round(4)
Array([0.    , 0.7854, 1.5708], dtype=float32)

sinh
>>> jnp.sinh(jnp.array([-1.0, 0.0, 1.0])).round(4)
Array([-1.1752,  0.    ,  1.1752], dtype=float32)

cosh
>>> jnp.cosh(jnp.array([-1.0, 0.0, 1.0])).round(4)
Array([1.5431, 1.    , 1.5431], dtype=float32)

tanh
>>> jnp.tanh(jnp.array([-100.0, 0.5, 100.0])).round(4)
Array([-1.    ,  0.4621,  1.    ], dtype=float32)

arcsinh
>>> jnp.arcsinh(jnp.array([0.0, 1.0, -1.0])).round(4)
Array([ 0.    ,  0.8814, -0.8814], dtype=float32)

arccosh
>>> jnp.arccosh(jnp.array([1.0, 2.0, 0.5])).round(4)
Array([0.   , 1.317,   nan], dtype=float32)

arctanh
>>> jnp.arctanh(jnp.array([0.0, 0.5, 1.0])).round(4)
Array([0.    , 0.5493,    inf], dtype=float32)

arctan2
>>> jnp.arctan2(jnp.array([1.0, 1.0, -1.0]), jnp.array([1.0, -1.0, 0.0])).round(4)
Array([ 0.7854,  2.3562, -1.5708], dtype=float32)

exp2
>>> jnp.exp2(jnp.array([0.0, 3.0, -1.0]))
Array([1. , 8. , 0.5], dtype=float32)

expm1
>>> f"{jnp.expm1(1e-10):.1e}", float(jnp.exp(1e-10) - 1)
('1.0e-10', 0.0)

log
>>> jnp.log(jnp.array([1.0, jnp.e, 0.0]))
Array([  0.,   1., -inf], dtype=float32)

log1p
>>> f"{jnp.log1p(1e-10):.1e}", float(jnp.log(1 + 1e-10))
('1.0e-10', 0.0)

log2
>>> jnp.log2(jnp.array([1.0, 8.0, 0.5]))
Array([ 0.,  3., -1.], dtype=float32)

log10
>>> jnp.log10(jnp.array([1.0, 1000.0, 0.01])).round(4)
Array([ 0.,  3., -2.], dtype=float32)

sqrt
>>> jnp.sqrt(jnp.array([4.0, 2.0, -1.0])).round(4)
Array([2.    , 1.4142,    nan], dtype=float32)

cbrt
>>> jnp.cbrt(jnp.array([8.0, -27.0])).round(4)
Array([ 2., -3.], dtype=float32)

floor
>>> jnp.floor(jnp.array([1.7, -1.2]))
Array([ 1., -2.], dtype=float32)

ceil
>>> jnp.ceil(jnp.array([1.2, -1.7]))
Array([ 2., -1.], dtype=float32)

trunc
>>> jnp.trunc(jnp.array([1.7, -1.7]))
Array([ 1., -1.], dtype=float32)

rint
>>> jnp.rint(jnp.array([0.5, 1.5, 2.6]))
Array([0., 2., 3.], dtype=float32)

fabs
>>> jnp.fabs(jnp.array([-3, 2]))
Array([3., 2.], dtype=float32)

sign
>>> jnp.sign(jnp.array([-2.5, 0.0, 7.0]))
Array([-1.,  0.,  1.], dtype=float32)

negative
>>> jnp.negative(jnp.array([1.0, -2.0]))
Array([-1.,  2.], dtype=float32)

positive
>>> jnp.positive(jnp.array([1.0, -2.0]))
Array([ 1., -2.], dtype=float32)

square
>>> jnp.square(jnp.array([3, -4]))
Array([ 9, 16], dtype=int32)

reciprocal
>>> jnp.reciprocal(jnp.array([2.0, -4.0, 0.0]))
Array([ 0.5 , -0.25,   inf], dtype=float32)

conjugate
>>> jnp.conjugate(jnp.array([1 + 2j, 3 - 1j]))
Array([1.-2.j, 3.+1.j], dtype=complex64)

floor_divide
>>> jnp.floor_divide(jnp.array([7, -7]), 2)
Array([ 3, -4], dtype=int32)

remainder
>>> jnp.remainder(jnp.array([7, -7]), 3)
Array([1, 2], dtype=int32)

mod
>>> jnp.mod(jnp.array([5.5, -5.5]), 2)
Array([1.5, 0.5], dtype=float32)

fmod
>>> jnp.fmod(jnp.array([7.0, -7.0]), 3)
Array([ 1., -1.], dtype=float32)

divmod
>>> jnp.divmod(jnp.array([7, -7]), 3)
(Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))

minimum
>>> jnp.minimum(jnp.array([1.0, 5.0]), 3.0)
Array([1., 3.], dtype=float32)

fmax
>>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.0)
Array([1., 0.], dtype=float32)

fmin
>>> jnp.fmin(jnp.array([1.0, jnp.nan]), 0.0)
Array([0., 0.], dtype=float32)

copysign
>>> jnp.copysign(jnp.array([1.0, 2.0]), jnp.array([-0.0, 3.0]))
Array([-1.,  2.], dtype=float32)

nextafter
>>> jnp.nextafter(jnp.float32(1), 2).round(4)
Array(1., dtype=float32)

heaviside
>>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
Array([0. , 0.5, 1. ], dtype=float32)

hypot
>>> jnp.hypot(jnp.array([3.0, 1e30]), jnp.array([4.0, 1e30])).round(4)
Array([5.0000000e+00, 1.4142135e+30], dtype=float32)

logaddexp
>>> jnp.logaddexp(jnp.array([0.0, 1000.0]), jnp.array([0.0, 1000.0])).round(4)
Array([6.9309998e-01, 1.0006932e+03], dtype=float32)

logaddexp2
>>> jnp.logaddexp2(jnp.array([1.0, 200.0]), jnp.array([1.0, 200.0]))
Array([  2., 201.], dtype=float32)

equal
>>> jnp.equal(jnp.array([1, 2, 3]), jnp.array([1, 0, 3]))
Array([ True, False,  True], dtype=bool)

not_equal
>>> jnp.not_equal(jnp.array([1, 2, 3]), jnp.array([1, 0, 3]))
Array([False,  True, False], dtype=bool)

less
>>> jnp.less(jnp.array([1, 2, 3]), 2)
Array([ True, False, False], dtype=bool)

less_equal
>>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
Array([ True,  True, False], dtype=bool)

greater
>>> jnp.greater(jnp.array([1, 2, 3]), 2)
Array([False, False,  True], dtype=bool)

greater_equal
>>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
Array([False,  True,  True], dtype=bool)

logical_and
>>> jnp.logical_and(jnp.array([0, 1, 2]), jnp.array([True, True, False]))
Array([False,  True, False], dtype=bool)

logical_or
>>> jnp.logical_or(jnp.array([0, 1, 0]), jnp.array([True, True, False]))
Array([ True,  True, False], dtype=bool)

logical_xor
>>> jnp.logical_xor(jnp.array([0, 1, 0]), jnp.array([True, True, False]))
Array([ True, False, False], dtype=bool)

logical_not
>>> jnp.logical_not(jnp.array([0.0, 0.5]))
Array([ True, False], dtype=bool)

bitwise_and
>>> jnp.bitwise_and(jnp.array([12, 10]), 6)
Array([4, 2], dtype=int32)

bitwise_or
>>> jnp.bitwise_or(jnp.array([12, 10]), 6)
Array([14, 14], dtype=int32)

bitwise_xor
>>> jnp.bitwise_xor(jnp.array([12, 10]), 6)
Array([10, 12], dtype=int32)

invert
>>> jnp.invert(jnp.array([0, 5]))
Array([-1, -6], dtype=int32)
>>> jnp.invert(jnp.array([True, False]))
Array([False,  True], dtype=bool)

bitwise_count
>>> jnp.bitwise_count(jnp.array([7, 8, -1]))
Array([3, 1, 1], dtype=uint8)

left_shift
>>> jnp.left_shift(jnp.array([1, 3]), 4)
Array([16, 48], dtype=int32)

right_shift
>>> jnp.right_shift(jnp.array([16, -16]), 2)
Array([ 4, -4], dtype=int32)

isnan
>>> jnp.isnan(jnp.array([1.0, jnp.nan, jnp.inf]))
Array([False,  True, False], dtype=bool)

isinf
>>> jnp.isinf(jnp.array([1.0, jnp.nan, -jnp.inf]))
Array([False, False,  True], dtype=bool)

isfinite
>>> jnp.isfinite(jnp.array([1.0, jnp.nan, jnp.inf]))
Array([ True, False, False], dtype=bool)

signbit
>>> jnp.signbit(jnp.array([-0.0, 0.0, -3.0]))
Array([ True, False,  True], dtype=bool)

degrees
>>> jnp.degrees(jnp.array([0.0, jnp.pi]))
Array([  0., 180.], dtype=float32)

radians
>>> jnp.radians(jnp.array([0.0, 180.0])).round(4)
Array([0.    , 3.1416], dtype=float32)

deg2rad
>>> jnp.deg2rad(jnp.array([90.0])).round(4)
Array([1.5708], dtype=float32)

rad2deg
>>> jnp.rad2deg(jnp.array([jnp.pi / 2]))
Array([90.], dtype=float32)

sinc
>>> jnp.sinc(jnp.array([0.0, 0.5, 1.5])).round(4)
Array([ 1.    ,  0.6366, -0.2122], dtype=float32)

real
>>> jnp.real(jnp.array([1 + 2j, 3 - 1j]))
Array([1., 3.], dtype=float32)

imag
>>> jnp.imag(jnp.array([1 + 2j, 3 - 1j]))
Array([ 2., -1.], dtype=float32)
""")
