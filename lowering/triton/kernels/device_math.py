"""Functions that Triton's language does not have, or not at full precision: CUDA's libdevice.

Kernels call them as `fm.name`; under the interpreter `host_math` stands in.
"""

# types are Triton's: functions here are compiled for the device
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice
from triton.language.extra.cuda.libdevice import (  # noqa: F401 (kernels call them)
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    ceil,
    cos,
    cosh,
    div_rn,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    expm1,
    floor,
    fmod,
    lgamma,
    log,
    log1p,
    nextafter,
    pow,
    rint,
    rsqrt,
    sin,
    sinh,
    sqrt,
    sqrt_rn,
    tan,
    tanh,
    trunc,
)

from functrans.lowering.triton.kernels.radix_tile import constraints
from functrans.lowering.triton.kernels.series_math import (  # noqa: F401
    digamma,
    igamma,
    igammac,
    random_gamma_grad,
    zeta,
)
from functrans.lowering.triton.kernels.trigonometry import sine_cosine  # noqa: F401


@triton.jit
def thread_index(count: tl.constexpr):
    """The number of the thread, of so many in a program: a scalar that differs among them."""
    return tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.int32,
                                     is_pure=True, pack=1)


@triton.jit
def store_scalar(p, x):
    """Store a number of this thread: Triton stores a scalar once for all of them."""
    bits: tl.constexpr = p.dtype.element_ty.primitive_bitwidth
    at = p.to(tl.uint64)
    if bits == 64:
        tl.inline_asm_elementwise("st.global.b64 [$1], $2; mov.u32 $0, 0;", "=r,l,l",
                                  [at, x.to(p.dtype.element_ty).to(tl.int64, bitcast=True)],
                                  dtype=tl.int32, is_pure=False, pack=1)
    elif bits == 32:
        tl.inline_asm_elementwise("st.global.b32 [$1], $2; mov.u32 $0, 0;", "=r,l,r",
                                  [at, x.to(p.dtype.element_ty).to(tl.int32, bitcast=True)],
                                  dtype=tl.int32, is_pure=False, pack=1)
    elif bits == 16:
        tl.inline_asm_elementwise(
            "st.global.b16 [$1], $2; mov.u32 $0, 0;", "=r,l,r",
            [at, x.to(p.dtype.element_ty).to(tl.int16, bitcast=True).to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1)
    else:
        tl.inline_asm_elementwise(
            "st.global.b8 [$1], $2; mov.u32 $0, 0;", "=r,l,r",
            [at, x.to(p.dtype.element_ty).to(tl.int32)],
            dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def sum_of_words(x, y):
    """A sum that LLVM leaves alone: in loops it makes 470 additions of the 90 of three hashes, all
    of sums of what does not change with what does."""
    return tl.inline_asm_elementwise("add.u32 $0, $1, $2;", "=r,r,r", [x, y], dtype=tl.uint32,
                                     is_pure=True, pack=1)


@triton.jit
def word_of_ones(condition):
    """32 ones where a condition holds, as a word: of more conditions than there are predicates."""
    return tl.inline_asm_elementwise("sub.u32 $0, 0, $1;", "=r,r", [condition.to(tl.int32)],
                                     dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def _reciprocal(x):
    """Within an ulp, where x is no denormal."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32,
                                     is_pure=True, pack=1)


@triton.jit
def divide(x, y):
    """A quotient of float32 without branches: what it lacks is computed exactly, and added.

    That of the hardware has a branch for unusual exponents, so that no two quotients of a thread
    overlap: 60 cycles each. This one is as exact, but for one in a million (Markstein, IA-64 and
    Elementary Functions, 2000) and for denormal numerators; y is scaled into the range where it
    and its reciprocal are no denormals.
    """
    size = tl.abs(y)
    scale = tl.where(size > 2.0**96, 2.0**-32, tl.where(size < 2.0**-96, 2.0**32, 1.0))
    y = y * scale
    x = x * scale
    inverse = _reciprocal(y)
    quotient = x * inverse
    rest = tl.fma(-quotient, y, x)
    lacks = (rest != 0) & (tl.abs(rest) < float("inf"))
    return tl.where(lacks, tl.fma(rest, inverse, quotient), quotient)


@triton.jit
def divisor(y):
    """What `divided` needs of a divisor of float32: a scale, and the reciprocal in two parts."""
    size = tl.abs(y)
    scale = tl.where(size > 2.0**96, 2.0**-32, tl.where(size < 2.0**-96, 2.0**32, 1.0))
    y = y * scale
    high = tl.inline_asm_elementwise("rcp.rz.f32 $0, $1;", "=f,f", [y], dtype=tl.float32,
                                     is_pure=True, pack=1)
    low = tl.fma(-y, high, 1.0) * high
    low = tl.where(low == 0, tl.where(high < 0, -(2.0**-126), 2.0**-126), low)
    is_ordinary = (high != 0) & (tl.abs(high) < float("inf"))
    return scale, high, tl.where(is_ordinary, low, high)


@triton.jit
def divided(x, scale, high, low):
    """A quotient of float32 by what is known of the divisor (Brisebarre, Muller and Raina 2004).

    Rounded once from 48 bits: 2^21 of 2^21 random quotients are exact, of denormal ones the last
    bit may differ. Both parts have one sign, so that zeros keep theirs.
    """
    x = x * scale
    return tl.fma(x, high, x * low)


@triton.jit
def inverse_root_cubed(x):
    """x ** -1.5 of float32 without branches, within 4 units of the last place.

    The reciprocal root of the hardware lacks 1 + e; of 0, infinity and what overflows it is right.
    """
    root = tl.inline_asm_elementwise("rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [x],
                                     dtype=tl.float32, is_pure=True, pack=1)
    lacks = _within_one(-(x * root), root, 1.0 + 2.0**-20)
    return root * root * tl.abs(root) * tl.fma(lacks, 1.5, 1.0 - 1.5 * 2.0**-20)


@triton.jit
def _within_one(x, y, z):
    """x * y + z, at least zero and at most one; NaN is zero."""
    return tl.inline_asm_elementwise("fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f", [x, y, z],
                                     dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def root_like_power(x, c: tl.constexpr):
    """x to a constant of at most 1/2 in size, in float32 without branches, within 2 ulp.

    x is m * 2^k with m about 1, and log2(m) of the hardware lacks 2^-22 at most, of which c leaves
    half and less. Such powers are the roots that choose the next step of a solver.
    """
    size = tl.abs(x)
    is_small = size < 2.0**-126
    bits = tl.where(is_small, size * 2.0**24, size).to(tl.int32, bitcast=True)
    k = (bits - 0x3F3504F3) >> 23
    m = (bits - (k << 23)).to(tl.float32, bitcast=True)
    logarithm = tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [m],
                                          dtype=tl.float32, is_pure=True, pack=1)
    k = k.to(tl.float32) - tl.where(is_small, 24.0, 0.0)
    shifted = tl.fma(logarithm, c, k * c) + 1.5 * 2.0**23  # the last bits are the whole part
    whole = shifted - 1.5 * 2.0**23
    rest = tl.fma(logarithm, c, tl.fma(k, c, -whole))
    power = tl.fma(rest, 1.5352e-4, 1.339887e-3)
    power = tl.fma(power, rest, 9.618437e-3)
    power = tl.fma(power, rest, 5.5503324e-2)
    power = tl.fma(power, rest, 2.402264791e-1)
    power = tl.fma(power, rest, 6.931472028e-1)
    power = tl.fma(power, rest, 1.0)
    power = (power.to(tl.int32, bitcast=True) + (shifted.to(tl.int32, bitcast=True) << 23)).to(
        tl.float32, bitcast=True)
    power = tl.where(x > 0, power, float("nan"))
    power = tl.where(size == float("inf"), 0.0 if c < 0 else float("inf"), power)
    return tl.where(size == 0, float("inf") if c < 0 else 0.0, power)


@triton.jit
def square_root(x):
    """A square root of float32 without branches, as `divide` is a quotient."""
    small = x < 2.0**-64
    x = tl.where(small, x * 2.0**64, x)
    inverse = tl.inline_asm_elementwise("rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [x],
                                        dtype=tl.float32, is_pure=True, pack=1)
    root = x * inverse
    root = tl.fma(tl.fma(-root, root, x), 0.5 * inverse, root) * tl.where(small, 2.0**-32, 1.0)
    other = tl.where(x < 0, float("nan"), x)
    return tl.where((x > 0) & (x < float("inf")), root, other)


@triton.jit
def tanh_half(x):
    """For results in half precision: within 4e-6 of the value, by two special instructions."""
    small = x - x * x * x * (1 / 3)
    large = 1 - libdevice.fast_dividef(2.0, 1 + tl.exp2(x * 2.885390081777927))
    return tl.where(tl.abs(x) < 0.04, small, large)


@triton.jit
def logistic(x):
    """By an exponential that does not overflow: results below 1e-38 are there, too."""
    e = libdevice.exp(-tl.abs(x))
    numerator = tl.where(x < 0, e, 1.0)
    if x.dtype.scalar == tl.float64:
        return numerator / (1.0 + e)
    inverse = _reciprocal(1.0 + e)
    quotient = numerator * inverse
    return tl.fma(tl.fma(-quotient, 1.0 + e, numerator), inverse, quotient)


@triton.jit
def by_lanes(i):
    """Numbers of which Triton does not see that they are neighbours, and LLVM does."""
    return i ^ 1 ^ 2 ^ 3


@triton.jit
def sign(x):
    one = tl.where(x > 0, 1, tl.where(x < 0, -1, 0)).to(x.dtype)
    return tl.where(x == x, tl.where(x == 0, x, one), x)


@triton.jit
def int_div(x, y):
    safe = tl.where(y == 0, 1, y).to(y.dtype)
    return tl.where(y == 0, ~(y & 0), x // safe).to(x.dtype)  # all bits: -1, or the largest


@triton.jit
def int_rem(x, y):
    safe = tl.where(y == 0, 1, y).to(y.dtype)
    return tl.where(y == 0, x, x % safe).to(x.dtype)


@triton.jit
def saturate(x, low: tl.constexpr, high: tl.constexpr, above: tl.constexpr):
    """Numbers as they fit an integer type; cvt.rzi saturates, which a comparison makes sure of."""
    x = tl.where(x == x, x, 0.0)
    return tl.where(x >= above, high * 1.0, tl.where(x <= low * 1.0, low * 1.0, x))


@triton.jit
def population_count(x, bits: tl.constexpr):
    if bits == 64:
        count = libdevice.popc(x.to(tl.int64))
    elif bits == 32:
        count = libdevice.popc(x.to(tl.int32))
    else:  # not the copies of the sign
        count = libdevice.popc(x.to(tl.int32) & ((1 << bits) - 1))
    return count.to(x.dtype)


@triton.jit
def clz(x, bits: tl.constexpr):
    if bits == 64:
        count = libdevice.clz(x.to(tl.int64))
    elif bits == 32:
        count = libdevice.clz(x.to(tl.int32))
    else:
        count = libdevice.clz(x.to(tl.int32) & ((1 << bits) - 1)) - (32 - bits)
    return count.to(x.dtype)


@triton.jit
def bfloat16(x):
    return x.to(tl.bfloat16)


@triton.jit
def _to_float8(x, fraction: tl.constexpr, bias: tl.constexpr, top: tl.constexpr,
               over: tl.constexpr, nan: tl.constexpr):
    """The bits of the nearest number of 8 bits, ties to even; beyond `top` they are `over`.

    The hardware's own conversion gives the largest number there, where NumPy's has NaN or infinity.
    """
    bits = x.to(tl.float32).to(tl.uint32, bitcast=True)
    size = bits & 0x7FFFFFFF
    drop: tl.constexpr = 23 - fraction
    normal = (size + ((1 << (drop - 1)) - 1) + ((size >> drop) & 1)) >> drop
    normal = normal - ((127 - bias) << fraction)
    magic: tl.constexpr = (127 + 24 - bias - fraction) << 23  # its last bit is that of the smallest
    start = (size * 0 + magic).to(tl.float32, bitcast=True)
    small = (size.to(tl.float32, bitcast=True) + start).to(tl.uint32, bitcast=True) - magic
    code = tl.where(size < ((128 - bias) << 23), small, normal)
    code = tl.where(size > top, over, code)
    code = tl.where(size > 0x7F800000, nan, code)
    return (code | ((bits >> 31) << 7)).to(tl.uint8)


@triton.jit
def to_f8e4(x):
    return _to_float8(x, 3, 7, 0x43E80000, 0x7F, 0x7F)  # 464, half way to what would be next


@triton.jit
def to_f8e5(x):
    return _to_float8(x, 2, 15, 0x476FFFFF, 0x7C, 0x7E)  # below 61440


@triton.jit
def from_f8e4(x):
    bits = x.to(tl.uint32)
    value = (((bits & 0x80) << 24) | ((bits & 0x7F) << 20)).to(tl.float32, bitcast=True)
    return tl.where((bits & 0x7F) == 0x7F, float("nan"), value * 1.329227995784916e36)  # 2^120


@triton.jit
def from_f8e5(x):
    return (x.to(tl.uint16) << 8).to(tl.float16, bitcast=True).to(tl.float32)


@tl.core.extern
def radix_counted(ptx, zero, operands, _semantic=None):
    """`radix_tile.counted`."""
    return _on_block(ptx, 1, operands, _semantic)[0]


@tl.core.extern
def radix_spread(ptx, sets, zero, operands, _semantic=None):
    """`radix_tile.spread`."""
    slots = (len(operands) - 2) // sets.value
    return _on_block(ptx, slots * (sets.value + 1), operands, _semantic)


@tl.core.extern
def radix_arranged(ptx, sets, zero, operands, _semantic=None):
    """`radix_tile.arranged`."""
    return _on_block(ptx, len(operands) - 1, operands, _semantic)


def _on_block(ptx, outs, operands, semantic):
    """The text is written once, and does what it does for the whole block."""
    return tl.inline_asm_elementwise(
        ptx, constraints(outs, len(operands)), list(operands), (tl.int32,) * outs, is_pure=False,
        pack=1, _semantic=semantic)


@triton.jit
def opaque(x):
    """The same value, of which the compiler does not know where it comes from."""
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=True,
                                     pack=32 // x.dtype.primitive_bitwidth)


@triton.jit
def tf32(x):
    """The nearest number of 10 bits of fraction: tensor cores would cut off the others."""
    return tl.inline_asm_elementwise("cvt.rna.tf32.f32 $0, $1;", "=r,r", [x], dtype=tl.float32,
                                     is_pure=True, pack=1)


@triton.jit
def tf32_once(x):
    """The same of what stays in shared memory: tensor cores read it there, not from registers."""
    return tl.inline_asm_elementwise("cvt.rna.tf32.f32 $0, $1;", "=r,r", [x], dtype=tl.float32,
                                     is_pure=False, pack=1)


@triton.jit
def next_copies_round():
    """Tiles that the next descriptor copies are rounded to TensorFloat-32 on the way."""
    tl.inline_asm_elementwise("// the next descriptor rounds\n\tmov.u32 $0, 0;", "=r", [], tl.int32,
                              is_pure=False, pack=1)


@triton.jit
def products_by_warps():
    """Products of this kernel are instructions of one warp, whose operands are in registers."""


@triton.jit
def grid_dependency_wait():
    """What comes behind may read what earlier launches write; what comes before does not."""
    tl.inline_asm_elementwise("// earlier launches end\n\tmov.u32 $0, 0;", "=r", [], tl.int32,
                              is_pure=False, pack=1)
