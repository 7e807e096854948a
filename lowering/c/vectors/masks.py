"""Comparisons, the logic of masks, and selection."""

from __future__ import annotations

from collections.abc import Mapping

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder

__all__ = ["EMITTERS", "letter"]

_OPERATORS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# predicates of vcmpps (quiet; only ne holds for NaN) and of vpcmpd
_FLOAT_PREDICATES = {"lt": 17, "le": 18, "gt": 30, "ge": 29, "eq": 0, "ne": 4}
_INT_PREDICATES = {"lt": 1, "le": 2, "gt": 6, "ge": 5, "eq": 0, "ne": 4}


def letter(dtype: str) -> str:
    """How gcc's builtins spell an element: ps, pd, b, w, d, q."""
    d = DTYPES[dtype]
    return {4: "ps", 8: "pd"}[d.size] if d.kind == "f" else {1: "b", 2: "w", 4: "d", 8: "q"}[d.size]


def builtin_int(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The vector type that integer builtins take: signed, and char for bytes."""
    return b.type("c8" if DTYPES[dtype].size == 1 else b.int_of(dtype), lanes)


def narrow_to_int(b: VectorBuilder, stem: str, dtype: str, lanes: int, args: int) -> str | None:
    """For integers of less than a register: the same function on 32-bit lanes."""
    if not b.isa.masks or b.bits(dtype, lanes) is not None or DTYPES[dtype].size >= 4:
        return None
    wide = ("u" if DTYPES[dtype].kind == "u" else "i") + "32"
    t = b.type(wide, lanes)
    names = ("a", "b")[:args]
    return f"{b.fn(stem, wide, lanes)}(" + ", ".join(
        f"__builtin_convertvector({n}, {t})" for n in names) + ")"


def _comparison(stem: str) -> Emitter:
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, m = b.type(dtype, lanes), b.mask(dtype, lanes)
        if lanes == 1:
            body = f"return a {_OPERATORS[stem]} b;"
        elif b.wide(dtype, lanes) and b.isa.masks:
            return b.halves(stem, dtype, lanes, "m", "vv")
        elif not b.isa.masks:
            body = f"return ({m})(a {_OPERATORS[stem]} b);"
        elif converted := narrow_to_int(b, stem, dtype, lanes, 2):
            body = f"return {converted};"
        else:
            bits, d = b.bits(dtype, lanes), DTYPES[dtype]
            if d.kind == "f":
                last = ", 4" if bits == 512 else ""
                body = (f"return __builtin_ia32_cmp{letter(dtype)}{bits}_mask(a, b, "
                        f"{_FLOAT_PREDICATES[stem]}, ({m})-1{last});")
            else:
                i = builtin_int(b, dtype, lanes)
                u = "u" if d.kind == "u" else ""
                body = (f"return __builtin_ia32_{u}cmp{letter(dtype)}{bits}_mask(({i})a, ({i})b, "
                        f"{_INT_PREDICATES[stem]}, ({m})-1);")
        return b.inline(stem, dtype, lanes, m, f"{v} a, {v} b", body)
    return emit


def _isnan(b: VectorBuilder, dtype: str, lanes: int) -> str:
    return b.inline("isnan", dtype, lanes, b.mask(dtype, lanes), f"{b.type(dtype, lanes)} a",
                    f"return {b.fn('ne', dtype, lanes)}(a, a);")


def _logic(stem: str, expression: str) -> Emitter:
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        m = b.mask(dtype, lanes)
        params = f"{m} a" if stem == "mnot" else f"{m} a, {m} b"
        text = expression
        if lanes == 1:
            text = text.replace("~", "!")
        elif b.isa.masks and lanes < 8 and stem == "mnot":
            text = f"{text} & {(1 << lanes) - 1}"
        return b.inline(stem, dtype, lanes, m, params, f"return ({m})({text});")
    return emit


def _quantifier(stem: str) -> Emitter:
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        m = b.mask(dtype, lanes)
        if lanes == 1:
            body = "return m;"
        elif b.isa.masks:
            body = "return m != 0;" if stem == "any" else f"return m == ({m}){(1 << lanes) - 1}u;"
        else:
            # 64-bit words of the mask: a lane fills a part of one word with ones or zeros
            op, end = ("|", " != 0") if stem == "any" else ("&", " == -1")
            words = b.bytes(dtype, lanes) // 8
            if words == 0:
                body = f"i32 w; __builtin_memcpy(&w, &m, 4); return w{end};"
            else:
                terms = f" {op} ".join(f"u.w[{i}]" for i in range(words))
                body = f"union {{ {m} m; i64 w[{words}]; }} u; u.m = m; return ({terms}){end};"
        return b.inline(stem, dtype, lanes, "int", f"{m} m", body)
    return emit


def _select(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, m = b.type(dtype, lanes), b.mask(dtype, lanes)
    bits, float_ = b.bits(dtype, lanes), DTYPES[dtype].kind == "f"
    if lanes == 1:
        body = "return m ? a : b;"
    elif b.wide(dtype, lanes) and b.isa.x86:
        return b.halves("select", dtype, lanes, "v", "mvv")
    elif b.isa.masks and bits is None:
        t = b.type("i32", lanes)
        body = (f"return __builtin_convertvector({b.fn('select', 'i32', lanes)}(m, "
                f"__builtin_convertvector(a, {t}), __builtin_convertvector(b, {t})), {v});")
    elif b.isa.masks:
        i = v if float_ else builtin_int(b, dtype, lanes)
        name = f"blendm{letter(dtype)}_{bits}_mask"
        body = f"return ({v})__builtin_ia32_{name}(({i})b, ({i})a, m);"
    elif b.isa.x86 and bits is not None:
        suffix = "256" if bits == 256 else ""
        if float_:
            body = (f"return __builtin_ia32_blendv{letter(dtype)}{suffix}(b, a, ({v})m);")
        else:
            c = b.type("c8", bits // 8)
            suffix = suffix or "128"
            body = (f"return ({v})__builtin_ia32_pblendvb{suffix}(({c})b, ({c})a, ({c})m);")
    else:
        i = b.type(b.int_of(dtype), lanes)
        body = f"return ({v})((({i})a & m) | (({i})b & ~m));"
    return b.inline("select", dtype, lanes, v, f"{m} m, {v} a, {v} b", body)


def _narrow(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The mask of a comparison of `dtype` as the mask of a kernel."""
    m, k = b.mask(dtype, lanes), b.type("bool", lanes)
    body = "return m;" if m == k or m == "int" else f"return __builtin_convertvector(m, {k});"
    return b.inline("narrow", dtype, lanes, k, f"{m} m", body)


def _widen(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The mask of a kernel as that of comparisons of `dtype`."""
    m, k = b.mask(dtype, lanes), b.type("bool", lanes)
    body = "return m;" if m == k or m == "int" else f"return __builtin_convertvector(m, {m});"
    return b.inline("widen", dtype, lanes, m, f"{k} m", body)


def _tail(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The mask of the lanes below a count in [0, lanes]."""
    m = b.mask(dtype, lanes)
    if b.isa.masks:
        body = (f"return ({m})__builtin_ia32_bzhi_si(~0u, (u32)count);" if lanes <= 32 else
                f"return ({m})__builtin_ia32_bzhi_di(~0ull, (u64)count);")
    else:
        i = b.int_of(dtype)
        body = (f"return ({m})({b.fn('iota', i, lanes)}(0) < "
                f"{b.fn('splat', i, lanes)}(({i})count));")
    return b.inline("tail", dtype, lanes, m, "i64 count", body)


EMITTERS: Mapping[str, Emitter] = {
    **{stem: _comparison(stem) for stem in _OPERATORS},
    "isnan": _isnan,
    "mand": _logic("mand", "a & b"), "mor": _logic("mor", "a | b"),
    "mxor": _logic("mxor", "a ^ b"), "mnot": _logic("mnot", "~a"),
    "mandnot": _logic("mandnot", "a & ~b"),
    "any": _quantifier("any"), "all": _quantifier("all"),
    "select": _select, "narrow": _narrow, "widen": _widen, "tail": _tail,
}
