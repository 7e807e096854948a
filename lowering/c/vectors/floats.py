"""Floating operations beyond C's operators: fused, rounded, NaN-propagating, on bits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from functrans.lowering.c.vectors.builder import Emitter, VectorBuilder, letter

__all__ = ["EMITTERS", "literal"]

# the instruction of AArch64, and the rounding mode of vroundps and vrndscaleps (8: no exception)
_ROUNDINGS = {"round": ("frintx", 8), "floor": ("frintm", 9), "ceil": ("frintp", 10),
              "trunc": ("frintz", 11)}
_C_NAMES = {"round": "rint"}


def literal(dtype: str, value: float) -> str:
    """An exactly representable constant in C."""
    return f"{value!r}{'f' if dtype == 'f32' else ''}"


def _c(dtype: str) -> str:
    return "f" if dtype == "f32" else ""


def _neon(b: VectorBuilder, instruction: str, dtype: str, lanes: int, operands: str) -> str:
    """The body of one NEON instruction; one of three operands adds to the last.

    Assembly is what GCC and Clang have in common: their builtins differ, those of GCC 12 for fmax
    and fmin from others of GCC, too, and arm_neon.h takes longer to read than a kernel to compile.
    """
    v, shape = b.type(dtype, lanes), f"{lanes}{'s' if dtype == 'f32' else 'd'}"
    start, constraint = (" = c", "+w") if len(operands) == 3 else ("", "=w")
    inputs = operands[:2]
    places = ", ".join(f"%{k}.{shape}" for k in range(len(inputs) + 1))
    given = ", ".join(f'"w"({x})' for x in inputs)
    assembly = f'__asm__("{instruction} {places}" : "{constraint}"(r) : {given});'
    return f"{v} r{start}; {assembly} return r;"


def _lanes_of(b: VectorBuilder, dtype: str, lanes: int, call: str) -> str:
    """A body that calls a scalar function for every lane; `call` uses the index i."""
    v = b.type(dtype, lanes)
    return f"{v} r; for (int i = 0; i < {lanes}; i++) r[i] = {call}; return r;"


def _fma(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, bits, c = b.type(dtype, lanes), b.bits(dtype, lanes), _c(dtype)
    if lanes == 1:
        body = f"return __builtin_fma{c}(a, b, c);"
    elif bits is None:
        return b.halves("fma", dtype, lanes, "v", "vvv")
    elif bits == 512:
        body = f"return __builtin_ia32_vfmadd{letter(dtype)}512_mask(a, b, c, -1, 4);"
    elif b.isa.x86:
        width = "256" if bits == 256 else ""
        body = f"return __builtin_ia32_vfmadd{letter(dtype)}{width}(a, b, c);"
    elif b.isa.name == "neon":
        body = _neon(b, "fmla", dtype, lanes, "abc")
    else:
        body = _lanes_of(b, dtype, lanes, f"__builtin_fma{c}(a[i], b[i], c[i])")
    return b.inline("fma", dtype, lanes, v, f"{v} a, {v} b, {v} c", body)


def _sqrt(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, bits = b.type(dtype, lanes), b.bits(dtype, lanes)
    if lanes == 1:
        body = f"return __builtin_sqrt{_c(dtype)}(a);"
    elif bits is None:
        return b.halves("sqrt", dtype, lanes, "v", "v")
    elif bits == 512:
        body = f"return __builtin_ia32_sqrt{letter(dtype)}512_mask(a, a, -1, 4);"
    elif b.isa.x86:
        body = f"return __builtin_ia32_sqrt{letter(dtype)}{'256' if bits == 256 else ''}(a);"
    elif b.isa.name == "neon":
        body = _neon(b, "fsqrt", dtype, lanes, "a")
    else:
        body = _lanes_of(b, dtype, lanes, f"__builtin_sqrt{_c(dtype)}(a[i])")
    return b.inline("sqrt", dtype, lanes, v, f"{v} a", body)


def _rounding(stem: str) -> Emitter:
    instruction, mode = _ROUNDINGS[stem]

    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, bits = b.type(dtype, lanes), b.bits(dtype, lanes)
        if lanes == 1:
            body = f"return __builtin_{_C_NAMES.get(stem, stem)}{_c(dtype)}(a);"
        elif bits is None:
            return b.halves(stem, dtype, lanes, "v", "v")
        elif bits == 512:
            body = f"return __builtin_ia32_rndscale{letter(dtype)}_mask(a, {mode}, a, -1, 4);"
        elif b.isa.x86:
            width = "256" if bits == 256 else ""
            body = f"return __builtin_ia32_round{letter(dtype)}{width}(a, {mode});"
        elif b.isa.name == "neon":
            body = _neon(b, instruction, dtype, lanes, "a")
        else:
            body = _rounded_by_adding(b, stem, dtype, lanes)
        return b.inline(stem, dtype, lanes, v, f"{v} a", body)
    return emit


def _rounded_by_adding(b: VectorBuilder, stem: str, dtype: str, lanes: int) -> str:
    """Adding and taking away 2**mantissa bits rounds to even what is smaller; no SSE4.1 needed."""
    f = partial(b.fn, dtype=dtype, lanes=lanes)
    big = f"{f('splat')}({literal(dtype, float(2 ** (23 if dtype == 'f32' else 52)))})"
    one, zero = (f"{f('splat')}({literal(dtype, float(x))})" for x in (1, 0))
    v = b.type(dtype, lanes)
    fix = {"round": "",
           "floor": f"r -= {f('select')}({f('gt')}(r, a), {one}, {zero});",
           "ceil": f"r += {f('select')}({f('lt')}(r, a), {one}, {zero});",
           "trunc": f"r -= {f('copysign')}({f('select')}({f('gt')}({f('abs')}(r), x), {one}, "
                    f"{zero}), a);"}[stem]
    return (f"{v} big = {big}, x = {f('abs')}(a), r = {f('copysign')}((x + big) - big, a); {fix} "
            f"return {f('select')}({f('lt')}(x, big), {f('copysign')}(r, a), a);")


def _round_away(b: VectorBuilder, dtype: str, lanes: int) -> str:
    f, v = partial(b.fn, dtype=dtype, lanes=lanes), b.type(dtype, lanes)
    half, one = (f"{f('splat')}({literal(dtype, x)})" for x in (0.5, 1.0))
    return b.inline("round_away", dtype, lanes, v, f"{v} a",
                    f"{v} t = {f('trunc')}(a); return {f('select')}({f('ge')}({f('abs')}(a - t), "
                    f"{half}), t + {f('copysign')}({one}, a), t);")


def _bits(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    body = f"return ({i})a;" if lanes > 1 else \
        f"union {{ {v} f; {i} i; }} u; u.f = a; return u.i;"
    return b.inline("bits", dtype, lanes, i, f"{v} a", body)


def _float(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    body = f"return ({v})a;" if lanes > 1 else \
        f"union {{ {v} f; {i} i; }} u; u.i = a; return u.f;"
    return b.inline("float", dtype, lanes, v, f"{i} a", body)


def _masks(dtype: str) -> tuple[str, str]:
    """All bits but the sign, and the sign bit."""
    return ("0x7fffffff", "(-0x7fffffff - 1)") if dtype == "f32" else (
        "0x7fffffffffffffffll", "(-0x7fffffffffffffffll - 1)")


def _abs(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v = b.type(dtype, lanes)
    if lanes == 1:
        body = f"return __builtin_fabs{_c(dtype)}(a);"
    else:
        body = f"return ({v})(({b.type(b.int_of(dtype), lanes)})a & {_masks(dtype)[0]});"
    return b.inline("abs", dtype, lanes, v, f"{v} a", body)


def _copysign(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v = b.type(dtype, lanes)
    if lanes == 1:
        body = f"return __builtin_copysign{_c(dtype)}(a, b);"
    else:
        i = b.type(b.int_of(dtype), lanes)
        rest, sign = _masks(dtype)
        body = f"return ({v})((({i})a & {rest}) | (({i})b & {sign}));"
    return b.inline("copysign", dtype, lanes, v, f"{v} a, {v} b", body)


def _extremum(stem: str) -> Emitter:
    """NaN where either operand is: x86 takes the second operand for NaN, so only a needs a look."""
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, bits = b.type(dtype, lanes), b.bits(dtype, lanes)
        f = partial(b.fn, dtype=dtype, lanes=lanes)
        if lanes == 1:
            sign = ">" if stem == "max" else "<"
            # one instruction that does not branch, and a branch that is hardly ever taken
            body = f"{v} m = a {sign} b ? a : b; return a != a ? a : m;"
        elif b.wide(dtype, lanes):
            return b.halves(stem, dtype, lanes, "v", "vv")
        elif b.isa.masks:
            width, last = {512: ("512", ", 4"), 256: ("256", ""), 128: ("", "")}[bits or 0]
            ordered = (f"__builtin_ia32_cmp{letter(dtype)}{bits}_mask(a, a, 7, "
                       f"({b.mask(dtype, lanes)})-1{last})")
            body = (f"return __builtin_ia32_{stem}{letter(dtype)}{width}_mask(a, b, a, {ordered}"
                    f"{last});")
        elif b.isa.x86:
            body = (f"return {f('select')}({f('isnan')}(a), a, __builtin_ia32_{stem}"
                    f"{letter(dtype)}{'256' if bits == 256 else ''}(a, b));")
        elif b.isa.name == "neon":
            body = _neon(b, f"f{stem}", dtype, lanes, "ab")
        else:
            first = f("gt" if stem == "max" else "lt")
            body = f"return {f('select')}({f('mor')}({first}(a, b), {f('isnan')}(a)), a, b);"
        return b.inline(stem, dtype, lanes, v, f"{v} a, {v} b", body)
    return emit


def _sign(b: VectorBuilder, dtype: str, lanes: int) -> str:
    f, v = partial(b.fn, dtype=dtype, lanes=lanes), b.type(dtype, lanes)
    one, zero = (f"{f('splat')}({literal(dtype, x)})" for x in (1.0, 0.0))
    body = (f"{v} r = {f('select')}({f('eq')}(a, {zero}), {zero}, {f('copysign')}({one}, a)); "
            f"return {f('select')}({f('isnan')}(a), a, r);")
    return b.inline("sign", dtype, lanes, v, f"{v} a", body)


def _is_finite(b: VectorBuilder, dtype: str, lanes: int) -> str:
    f, v = partial(b.fn, dtype=dtype, lanes=lanes), b.type(dtype, lanes)
    infinity = f"{f('splat')}(__builtin_inf{_c(dtype)}())"
    return b.inline("is_finite", dtype, lanes, b.mask(dtype, lanes), f"{v} a",
                    f"return {f('lt')}({f('abs')}(a), {infinity});")


def _nextafter(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The integer of the bits, one further from zero or nearer to it."""
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    f = partial(b.fn, dtype=dtype, lanes=lanes)
    g = partial(b.fn, dtype=b.int_of(dtype), lanes=lanes)
    zero = f"{f('splat')}({literal(dtype, 0.0)})"
    away = f"{f('mor')}({f('eq')}(a, {zero}), {_away(b, dtype, lanes)})"
    # from zero the first step is the smallest number with the sign of b
    first = f"{f('copysign')}({f('float')}({g('splat')}(1)), b)"
    body = (f"{i} x = {f('bits')}(a); "
            f"x += {g('select')}({away}, {g('splat')}(1), {g('splat')}(-1)); "
            f"{v} r = {f('select')}({f('eq')}(a, {zero}), {first}, {f('float')}(x)); "
            f"r = {f('select')}({f('eq')}(a, b), b, r); "
            f"return {f('select')}({f('mor')}({f('isnan')}(a), {f('isnan')}(b)), a + b, r);")
    return b.inline("nextafter", dtype, lanes, v, f"{v} a, {v} b", body)


def _away(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """Whether b is further from zero than a, on its side: a < b for positive a, b < a else."""
    f = partial(b.fn, dtype=dtype, lanes=lanes)
    zero = f"{f('splat')}({literal(dtype, 0.0)})"
    return (f"{f('mnot')}({f('mxor')}({f('lt')}(a, b), {f('gt')}(a, {zero})))")


def _rem(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """fmod, exactly: a - trunc(a / b) * b is a number of the type, and one rounding of a / b makes
    the quotient at most 1 too large. Lanes with infinities, NaN or quotients beyond the mantissa go
    to the C library (4.8 ns an element against 0.24 here)."""
    v, c = b.type(dtype, lanes), _c(dtype)
    slow = f"return __builtin_fmod{c}(a, b);" if lanes == 1 else \
        _lanes_of(b, dtype, lanes, f"__builtin_fmod{c}(a[i], b[i])")
    body = slow
    if b.isa.fma:
        f = partial(b.fn, dtype=dtype, lanes=lanes)
        g = partial(b.fn, dtype=b.int_of(dtype), lanes=lanes)
        largest = literal(dtype, float(2 ** (23 if dtype == "f32" else 52)))
        fits = (f"{f('mand')}({f('lt')}({f('abs')}(q), {f('splat')}({largest})), "
                f"{f('is_finite')}(b))")
        other = (f"{f('mand')}({f('ne')}(r, {f('splat')}(0)), "
                 f"{g('lt')}({f('bits')}(r) ^ {f('bits')}(a), {g('splat')}(0)))")
        body = (f"{v} q = {f('trunc')}(a / b); if (__builtin_expect({f('all')}({fits}), 1)) {{ "
                f"{v} r = {f('fma')}(-q, b, a); "
                f"r = {f('select')}({other}, r + {f('copysign')}(b, a), r); "
                f"return {f('copysign')}(r, a); }} {slow}")
    return b.inline("rem", dtype, lanes, v, f"{v} a, {v} b", body)


def _ldexpfast(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    bias, shift = (127, 23) if dtype == "f32" else (1023, 52)
    return b.inline("ldexpfast", dtype, lanes, v, f"{v} a, {i} e",
                    f"return a * {b.fn('float', dtype, lanes)}((e + {bias}) << {shift});")


def _scale(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """a times 2^n, rounded once, where t is n and 1.5 times 2 to the bits of the mantissa.

    Of two factors only the last product may be denormal.
    """
    v, i, bits = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes), b.bits(dtype, lanes)
    magic, shift, one = ("0x1.8p23f", 23, "0x3f800000") if dtype == "f32" else (
        "0x1.8p52", 52, "0x3ff0000000000000")
    if b.wide(dtype, lanes):
        return b.halves("scale", dtype, lanes, "v", "vv")
    if b.isa.masks and bits is not None:
        last = ", 4" if bits == 512 else ""
        body = (f"return __builtin_ia32_scalef{letter(dtype)}{bits}_mask(a, t - {magic}, a, "
                f"-1{last});")
    else:
        f, u = b.fn("float", dtype, lanes), b.type(b.int_of(dtype).replace("i", "u"), lanes)
        body = (f"{i} n = {b.fn('bits', dtype, lanes)}(t), h = ({i})(({u})n >> 1); "
                f"a = a * {f}((h << {shift}) + {one}); "
                f"return a * {f}(((n - h) << {shift}) + {one});")
    return b.inline("scale", dtype, lanes, v, f"{v} a, {v} t", body)


def _clip(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """x between two numbers; NaN stays: x86 takes the second operand for NaN."""
    v, bits = b.type(dtype, lanes), b.bits(dtype, lanes)
    if b.wide(dtype, lanes):
        return b.halves("clip", dtype, lanes, "v", "vvv")
    if b.isa.x86 and bits is not None:
        kind = letter(dtype)
        call = "__builtin_ia32_{}" + kind + {512: "512_mask", 256: "256", 128: ""}[bits]
        last = ", x, -1, 4" if bits == 512 else ""
        body = (f"{v} c = {call.format('min')}(high, x{last}); "
                f"return {call.format('max')}(low, c{last});")
    elif lanes == 1:
        body = "x = x > high ? high : x; return x < low ? low : x;"
    else:
        f = partial(b.fn, dtype=dtype, lanes=lanes)
        body = (f"x = {f('select')}({f('gt')}(x, high), high, x); "
                f"return {f('select')}({f('lt')}(x, low), low, x);")
    return b.inline("clip", dtype, lanes, v, f"{v} x, {v} low, {v} high", body)


def _sine_cosine(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """Sine and cosine of one angle, side by side in twice as many lanes."""
    v, both = b.type(dtype, lanes), b.type(dtype, 2 * lanes)
    body = (f"{v} s, c; {b.fn('sin_and_cos', dtype, lanes)}(a, &s, &c); "
            f"return {b.join(dtype, 2 * lanes, 's', 'c')};")
    return b.inline("sine_cosine", dtype, lanes, both, f"{v} a", body)


EMITTERS: Mapping[str, Emitter] = {
    "fma": _fma, "sqrt": _sqrt, "round_away": _round_away,
    **{stem: _rounding(stem) for stem in _ROUNDINGS},
    "bits": _bits, "float": _float, "abs": _abs, "copysign": _copysign,
    "max": _extremum("max"), "min": _extremum("min"), "sign": _sign, "is_finite": _is_finite,
    "nextafter": _nextafter, "rem": _rem, "ldexpfast": _ldexpfast,
    "scale": _scale, "clip": _clip, "sine_cosine": _sine_cosine,
}
