"""Conversions by value between dtypes, and the half types between memory and registers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder
from functrans.lowering.c.vectors.floats import literal
from functrans.lowering.c.vectors.integers import limits

__all__ = ["EMITTERS"]

_TARGETS = ("f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def cast(b: VectorBuilder, dtype: str, lanes: int, value: str) -> str:
    """C's own conversion of every lane."""
    t = b.type(dtype, lanes)
    return f"({t})({value})" if lanes == 1 else f"__builtin_convertvector({value}, {t})"


def _convert(target: str) -> Emitter:
    def emit(b: VectorBuilder, source: str, lanes: int) -> str:
        v = b.type(source, lanes)
        if source == "bool":
            body = _from_mask(b, target, lanes)
        elif DTYPES[source].kind == "f" and DTYPES[target].kind != "f":
            body = _saturated(b, source, target, lanes)
        else:
            body = f"return {cast(b, target, lanes, 'a')};"
        return b.inline(f"to_{target}", source, lanes, b.type(target, lanes), f"{v} a", body)
    return emit


def _from_mask(b: VectorBuilder, target: str, lanes: int) -> str:
    v = b.type(target, lanes)
    if lanes == 1:
        return f"return ({v})a;"
    if b.isa.masks:
        f = partial(b.fn, dtype=target, lanes=lanes)
        return f"return {f('select')}(a, {f('splat')}(1), {f('splat')}(0));"
    if target == "f32":
        return f"return ({v})(a & 0x3f800000);"
    return f"return __builtin_convertvector(a & 1, {v});"


def _saturated(b: VectorBuilder, source: str, target: str, lanes: int) -> str:
    """Truncated; NaN gives 0, what is out of range the nearest integer."""
    f, v = partial(b.fn, dtype=source, lanes=lanes), b.type(source, lanes)
    low, high = limits(target)

    def number(x: int) -> str:
        return f"{f('splat')}({literal(source, float(x))})"

    if DTYPES[target].size < 4:  # the limits are floats: clamp, then drop bits
        t = cast(b, target, lanes, cast(b, "i32", lanes, "c"))
        return (f"{v} c = {f('select')}({f('gt')}(a, {number(low)}), a, {number(low)}); "
                f"c = {f('select')}({f('lt')}(c, {number(high)}), c, {number(high)}); "
                f"c = {f('select')}({f('isnan')}(a), {number(0)}, c); return {t};")
    g, t, m = partial(b.fn, dtype=target, lanes=lanes), b.type(target, lanes), b.mask(source, lanes)

    def over(mask: str) -> str:
        return mask if b.isa.masks or lanes == 1 else f"{g('widen')}({f('narrow')}({mask}))"

    suffix = {"i32": "", "u32": "u", "i64": "ll", "u64": "ull"}[target]
    minimum = f"(-{high}{suffix} - 1)" if low else "0"
    return (f"{m} h = {f('ge')}(a, {number(high + 1)}), l = {f('le')}(a, {number(low)}); "
            f"{m} out = {f('mor')}({f('mor')}(h, l), {f('isnan')}(a)); "
            f"{v} c = {f('select')}(out, {number(0)}, a); {t} r = {cast(b, target, lanes, 'c')}; "
            f"r = {g('select')}({over('h')}, {g('splat')}({high}{suffix}), r); "
            f"return {g('select')}({over('l')}, {g('splat')}({minimum}), r);")


def _to_bool(b: VectorBuilder, source: str, lanes: int) -> str:
    f = partial(b.fn, dtype=source, lanes=lanes)
    return b.inline("to_bool", source, lanes, b.type("bool", lanes), f"{b.type(source, lanes)} a",
                    f"return {f('narrow')}({f('ne')}(a, {f('splat')}(0)));")


# float <-> integer of the same width, for values that fit -----------------------------------------

_MAGIC = {"f64": ("6755399441055744.0", "0x4338000000000000ll")}  # 1.5 * 2**52 and its bits


def _toint(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """64 bits without AVX-512 have no instruction: adding 1.5 * 2**52 leaves the integer in the
    low bits (for less than 2**51)."""
    i, v = b.int_of(dtype), b.type(dtype, lanes)
    if dtype == "f64" and lanes > 1 and not b.isa.masks and b.isa.name != "neon":
        value, bits = _MAGIC[dtype]
        body = f"return ({b.type(i, lanes)})(a + {value}) - {bits};"
    else:
        body = f"return {cast(b, i, lanes, 'a')};"
    return b.inline("toint", dtype, lanes, b.type(i, lanes), f"{v} a", body)


def _fromint(b: VectorBuilder, dtype: str, lanes: int) -> str:
    i, v = b.type(b.int_of(dtype), lanes), b.type(dtype, lanes)
    if dtype == "f64" and lanes > 1 and not b.isa.masks and b.isa.name != "neon":
        value, bits = _MAGIC[dtype]
        body = f"return ({v})(a + {bits}) - {value};"
    else:
        body = f"return {cast(b, dtype, lanes, 'a')};"
    return b.inline("fromint", dtype, lanes, v, f"{i} a", body)


# half types ---------------------------------------------------------------------------------------

def _expand_bf16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    h, v = b.type("u16", lanes), b.type("f32", lanes)
    bits = f"(({b.type('i32', lanes)})({cast(b, 'u32', lanes, 'a')} << 16))"
    return b.inline("expand_bf16", dtype, lanes, v, f"{h} a",
                    f"return {b.fn('float', 'f32', lanes)}({bits});")


def _round_bf16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """To the nearest even of 8 bits; NaN stays one. (vcvtneps2bf16 would lose denormals.)"""
    f, v, u = partial(b.fn, dtype="f32", lanes=lanes), b.type("f32", lanes), b.type("u32", lanes)
    i = b.type("i32", lanes)
    body = (f"{u} x = ({u}){f('bits')}(a), r = (x + 0x7fff + ((x >> 16) & 1)) & 0xffff0000u; "
            f"r = {b.fn('select', 'u32', lanes)}({f('isnan')}(a), (x | 0x400000) & 0xffff0000u, r);"
            f" return {f('float')}(({i})r);")
    return b.inline("round_bf16", dtype, lanes, v, f"{v} a", body)


def _compress_bf16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, u = b.type("f32", lanes), b.type("u32", lanes)
    rounded = f"{b.fn('bits', 'f32', lanes)}({b.fn('round_bf16', 'f32', lanes)}(a))"
    return b.inline("compress_bf16", dtype, lanes, b.type("u16", lanes), f"{v} a",
                    f"return {cast(b, 'u16', lanes, f'(({u}){rounded} >> 16)')};")


def _expand_f16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    h, v = b.type("u16", lanes), b.type("f32", lanes)
    i, u = b.type("i32", lanes), b.type("u32", lanes)
    bits = b.bits("f32", lanes)
    if b.isa.f16c and b.wide("f32", lanes):
        half = b.fn("expand_f16", dtype, lanes // 2)
        parts = (f"{half}({b.fn(side, 'u16', lanes)}(a))" for side in ("lo", "hi"))
        body = f"return {b.join('f32', lanes, *parts)};"
    elif b.isa.f16c and bits is not None:
        w = b.type("i16", max(lanes, 8))
        if bits == 512:
            body = (f"return __builtin_ia32_vcvtph2ps512_mask(({w})a, ({v}){{0}}, -1, 4);")
        elif bits == 256:
            body = f"return __builtin_ia32_vcvtph2ps256(({w})a);"
        else:
            body = (f"union {{ {w} w; {h} v; }} u; u.w = ({w}){{0}}; u.v = a; "
                    f"return __builtin_ia32_vcvtph2ps(u.w);")
    else:
        f, g = partial(b.fn, dtype="f32", lanes=lanes), partial(b.fn, dtype="u32", lanes=lanes)
        # F. Giesen, "half to float done quick": the exponent is moved, ends are mended
        body = (f"{u} x = {cast(b, 'u32', lanes, 'a')}, o = (x & 0x7fff) << 13, "
                f"e = o & 0xf800000; o += 0x38000000; "
                f"{u} inf = o + 0x38000000, sub = ({u}){f('bits')}("
                f"{f('float')}(({i})(o + 0x800000)) - {f('splat')}(0x1p-14f)); "
                f"o = {g('select')}({g('eq')}(e, {g('splat')}(0xf800000)), inf, o); "
                f"o = {g('select')}({g('eq')}(e, {g('splat')}(0)), sub, o); "
                f"return {f('float')}(({i})(o | (x & 0x8000) << 16));")
    return b.inline("expand_f16", dtype, lanes, v, f"{h} a", body)


def _compress_f16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    h, v = b.type("u16", lanes), b.type("f32", lanes)
    i, u = b.type("i32", lanes), b.type("u32", lanes)
    bits = b.bits("f32", lanes)
    if b.isa.f16c and b.wide("f32", lanes):
        half = b.fn("compress_f16", dtype, lanes // 2)
        parts = (f"{half}({b.fn(side, 'f32', lanes)}(a))" for side in ("lo", "hi"))
        body = f"return {b.join('u16', lanes, *parts)};"
    elif b.isa.f16c and bits is not None:
        w = b.type("i16", max(lanes, 8))
        if bits == 512:
            body = f"return ({h})__builtin_ia32_vcvtps2ph512_mask(a, 0, ({w}){{0}}, -1);"
        elif bits == 256:
            body = f"return ({h})__builtin_ia32_vcvtps2ph256(a, 0);"
        else:
            body = (f"union {{ {w} w; {h} v; }} u; u.w = __builtin_ia32_vcvtps2ph(a, 0); "
                    f"return u.v;")
    else:
        f, g = partial(b.fn, dtype="f32", lanes=lanes), partial(b.fn, dtype="u32", lanes=lanes)
        # F. Giesen: adding 0.5 rounds what becomes subnormal, adding to the bits the others
        body = (f"{u} x = ({u}){f('bits')}(a), s = x & 0x80000000u; x ^= s; "
                f"{u} big = {g('select')}({g('gt')}(x, {g('splat')}(0x7f800000)), "
                f"((x >> 13) & 0x3ff) | 0x7e00, {g('splat')}(0x7c00)); "
                f"{u} sub = ({u}){f('bits')}({f('float')}(({i})x) + {f('splat')}(0.5f)); "
                f"sub -= 0x3f000000; {u} o = (x + 0xc8000fffu + ((x >> 13) & 1)) >> 13; "
                f"o = {g('select')}({g('lt')}(x, {g('splat')}(0x38800000)), sub, o); "
                f"o = {g('select')}({g('ge')}(x, {g('splat')}(0x47800000)), big, o) | (s >> 16); "
                f"return {cast(b, 'u16', lanes, 'o')};")
    return b.inline("compress_f16", dtype, lanes, h, f"{v} a", body)


def _round_f16(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v = b.type("f32", lanes)
    return b.inline("round_f16", dtype, lanes, v, f"{v} a",
                    f"return {b.fn('expand_f16', 'u16', lanes)}"
                    f"({b.fn('compress_f16', 'f32', lanes)}(a));")


def _odd_f32(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """float64 -> float32 rounded to odd, so that rounding once more is as if done once."""
    d, v, i = b.type("f64", lanes), b.type("f32", lanes), b.type("i32", lanes)
    f, g = partial(b.fn, dtype="f64", lanes=lanes), partial(b.fn, dtype="f32", lanes=lanes)
    s = b.fn("select", "i32", lanes)

    def over(mask: str) -> str:
        return mask if b.isa.masks or lanes == 1 else f"{f('narrow')}({mask})"

    gt, ne = f"{f('gt')}({f('abs')}(w), {f('abs')}(a))", f"{f('ne')}(w, a)"
    body = (f"{v} r = {cast(b, 'f32', lanes, 'a')}; {d} w = {cast(b, 'f64', lanes, 'r')}; "
            f"{i} x = {g('bits')}(r); x = {s}({over(gt)}, x - 1, x); "
            f"return {g('float')}({s}({over(ne)}, x | 1, x));")
    return b.inline("odd_f32", dtype, lanes, v, f"{d} a", body)


EMITTERS: Mapping[str, Emitter] = {
    **{f"to_{target}": _convert(target) for target in _TARGETS}, "to_bool": _to_bool,
    "toint": _toint, "fromint": _fromint,
    "expand_bf16": _expand_bf16, "compress_bf16": _compress_bf16, "round_bf16": _round_bf16,
    "expand_f16": _expand_f16, "compress_f16": _compress_f16, "round_f16": _round_f16,
    "odd_f32": _odd_f32,
}
