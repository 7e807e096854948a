"""Sine and cosine of a number of a thread, from one reduction of the angle.

CUDA's library reduces it for each, and branches to a loop over an array in memory where it is
large. Formulas and coefficients are those of `c/math/trig_f32.c`: Cody and Waite below 2^17, Payne
and Hanek above, in integers of 64 bits.
"""

# types are Triton's: functions here are compiled for the device
import triton
import triton.language as tl


@triton.jit
def _word(k, first: tl.constexpr, second: tl.constexpr, third: tl.constexpr, fourth: tl.constexpr,
          fifth: tl.constexpr):
    """Word k of five."""
    found = tl.where(k == 1, tl.full((), second, tl.uint32), tl.full((), first, tl.uint32))
    found = tl.where(k == 2, tl.full((), third, tl.uint32), found)
    found = tl.where(k == 3, tl.full((), fourth, tl.uint32), found)
    return tl.where(k == 4, tl.full((), fifth, tl.uint32), found).to(tl.uint64)


@triton.jit
def _turn(x):
    """x 2/pi modulo 4, times 2^62, for x >= 2^17.

    Of 2/pi the 96 bits that count are taken from four words of 32, of which the first is 0.
    """
    bits = x.to(tl.uint32, bitcast=True)
    place = (bits >> 23).to(tl.int32) - 120
    k = place >> 5
    shift = (place & 31).to(tl.uint64)
    m = ((bits & 0x7FFFFF) | 0x800000).to(tl.uint64)
    a = (_word(k, 0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0) << 32) \
        | _word(k, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599)
    b = (_word(k, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041) << 32) \
        | _word(k, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
    high = (a << shift) | ((b >> 1) >> (63 - shift))
    low = (b << shift) >> 32
    return m * high + ((m * low) >> 32)


@triton.jit
def _with_sign(x, sign):
    """x, negated where the highest bit of a word is set."""
    bits = x.to(tl.uint32, bitcast=True) ^ (sign & 0x80000000)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def sine_cosine(x):
    """Sine and cosine of x in radians; a scalar in float32."""
    a = tl.abs(x)
    turns = tl.fma(a, tl.full((), 0.6366197466850281, tl.float32),
                   tl.full((), 12582912.0, tl.float32))
    k = turns - 12582912.0
    r = tl.fma(k, tl.full((), -1.5707963705062866, tl.float32), a)
    r = tl.fma(k, tl.full((), 4.371138828673793e-08, tl.float32), r)
    r = tl.fma(k, tl.full((), 1.7151245100058819e-15, tl.float32), r)
    n = turns.to(tl.uint32, bitcast=True)
    if a >= 131072.0:
        turn = _turn(a)
        angle = (turn << 2).to(tl.int64, bitcast=True).to(tl.float64) * 8.515303950216386e-20
        r = angle.to(tl.float32) + (a - a)
        n = ((turn + 0x2000000000000000) >> 62).to(tl.uint32)
    z = r * r
    s = (-0.00019505523960106075 * z + 0.008332095108926296) * z - 0.16666653752326965
    s = r * z * s + r
    c = (2.442863660689909e-05 * z - 0.0013887290842831135) * z + 0.04166664555668831
    c = (c * z - 0.5) * z + 1.0
    is_odd = (n & 1) != 0
    sine = _with_sign(tl.where(is_odd, c, s), (n << 30) ^ x.to(tl.uint32, bitcast=True))
    return sine, _with_sign(tl.where(is_odd, s, c), (n + 1) << 30)
