"""Integer operations beyond C's operators: division without traps, shifts of any count, bits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder

__all__ = ["EMITTERS", "limits"]


def limits(dtype: str) -> tuple[int, int]:
    """The smallest and the largest value."""
    d = DTYPES[dtype]
    bits = 8 * d.size
    return (0, 2**bits - 1) if d.kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _divide(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """Towards zero; x / 0 is -1, the smallest number / -1 itself.

    The quotient in floats with twice the bits is exact once truncated: a quotient that is no
    integer is at least 1/y away from one. Vector division of doubles is several times faster than
    scalar division of integers; 64-bit lanes have no wider float.
    """
    v, d = b.type(dtype, lanes), DTYPES[dtype]
    f = partial(b.fn, dtype=dtype, lanes=lanes)
    if lanes == 1 or d.size == 8:
        index = "" if lanes == 1 else "[i]"
        one = f"b{index} == 0 ? ({d.c})-1 : "
        if d.kind == "i":  # the compiler may not assume that INT_MIN / -1 does not happen
            one += f"b{index} == -1 ? ({d.c})(0 - ({b.uint_of(dtype)})a{index}) : "
        one += f"({d.c})(a{index} / b{index})"
        body = f"return {one};" if lanes == 1 else \
            f"{v} r; for (int i = 0; i < {lanes}; i++) r[i] = {one}; return r;"
    else:
        t = b.type("f64" if d.size == 4 else "f32", lanes)
        # the float quotient is in range but for x / 0 and INT_MIN / -1: divide by 1 there
        zero = f"{f('eq')}(b, {f('splat')}(0))"
        special = zero
        fixed = f"{f('splat')}(-1)"
        value = f"{f('select')}(z, {fixed}, q)"
        if d.kind == "i":
            special = f"{f('mor')}({zero}, {f('eq')}(b, {f('splat')}(-1)))"
            value = f"{f('select')}(z, {fixed}, {f('select')}(s, -a, q))"
        m = b.mask(dtype, lanes)
        through = "i32" if d.size < 4 else dtype
        convert = f"__builtin_convertvector(__builtin_convertvector(x / y, " \
                  f"{b.type(through, lanes)}), {v})" if through != dtype else \
                  f"{_from_f64(b, dtype, lanes)}(x / y)"
        body = (f"{m} z = {zero}, s = {special}; {v} c = {f('select')}(s, {f('splat')}(1), b); "
                f"{t} x = {_to_float(b, dtype, lanes, 'a', t)}, y = "
                f"{_to_float(b, dtype, lanes, 'c', t)}; {v} q = {convert}; return {value};")
    return b.inline("div", dtype, lanes, v, f"{v} a, {v} b", body)


def _to_float(b: VectorBuilder, dtype: str, lanes: int, value: str, target: str) -> str:
    if DTYPES[dtype].size < 4:  # through 32 bits: gcc has no direct conversion
        value = f"__builtin_convertvector({value}, {b.type('i32', lanes)})"
    return f"__builtin_convertvector({value}, {target})"


def _from_f64(b: VectorBuilder, dtype: str, lanes: int) -> str:
    return b.fn("truncated", dtype, lanes)


def _truncated(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """A double that is in range of a 32-bit integer, without its fraction."""
    v, t = b.type(dtype, lanes), b.type("f64", lanes)
    return b.inline("truncated", dtype, lanes, v, f"{t} a",
                    f"return __builtin_convertvector(a, {v});")


def _rem(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, c = b.type(dtype, lanes), DTYPES[dtype].c
    cast = f"({c})" if lanes == 1 else ""
    return b.inline("rem", dtype, lanes, v, f"{v} a, {v} b",
                    f"return {cast}(a - {b.fn('div', dtype, lanes)}(a, b) * b);")


def _abs(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, d = b.type(dtype, lanes), DTYPES[dtype]
    if d.kind == "u":
        body = "return a;"
    else:
        shift = f"({v})(a >> {8 * d.size - 1})"
        body = f"{v} s = {shift}; return ({v})((a ^ s) - s);"
    return b.inline("abs", dtype, lanes, v, f"{v} a", body)


def _sign(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, d = b.type(dtype, lanes), DTYPES[dtype]
    u, last = b.type(b.uint_of(dtype), lanes), 8 * d.size - 1
    if d.kind == "u":
        body = f"return ({v})((({u})(a | ({v})-a)) >> {last});"
    else:
        body = f"return ({v})(({v})(a >> {last}) | ({v})((({u})-a) >> {last}));"
    return b.inline("sign", dtype, lanes, v, f"{v} a", body)


def _extremum(stem: str) -> Emitter:
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, bits, d = b.type(dtype, lanes), b.bits(dtype, lanes), DTYPES[dtype]
        compare = "gt" if stem == "max" else "lt"
        if lanes > 1 and d.size == 4 and b.isa.x86:
            if bits is None:
                return b.halves(stem, dtype, lanes, "v", "vv")
            i = b.type("i32", lanes)
            name = f"p{stem}{'s' if d.kind == 'i' else 'u'}d{bits}"
            extra = f", ({i})a, -1" if bits == 512 else ""
            body = (f"return ({v})__builtin_ia32_{name}{'_mask' if bits == 512 else ''}(({i})a, "
                    f"({i})b{extra});")
        else:
            mask = f"{b.fn(compare, dtype, lanes)}(a, b)"
            body = f"return {b.fn('select', dtype, lanes)}({mask}, a, b);"
        return b.inline(stem, dtype, lanes, v, f"{v} a, {v} b", body)
    return emit


def _shift(stem: str) -> Emitter:
    """x86 shifts by a vector give what we want of counts beyond the width; C does not."""
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, d, bits = b.type(dtype, lanes), DTYPES[dtype], b.bits(dtype, lanes)
        width, u = 8 * d.size, b.type(b.uint_of(dtype), lanes)
        i = b.type(b.int_of(dtype), lanes)
        operator = "<<" if stem == "shift_left" else ">>"
        operand = i if stem == "shift_right_arithmetic" else u
        native = b.isa.masks or (b.isa.x86 and not (operand == i and d.size == 8))
        if lanes == 1:
            beyond = "a < 0 ? -1 : 0" if operand == i else "0"
            beyond = beyond if d.kind == "i" or operand != i else f"({i})a < 0 ? -1 : 0"
            body = (f"return ({v})(({u})b < {width} ? ({operand})a {operator} "
                    f"(({u})b & {width - 1}) : {beyond});")
        elif d.size >= 4 and native:
            if bits is None:
                return b.halves(stem, dtype, lanes, "v", "vv")
            kind = {"shift_left": "sll", "shift_right_logical": "srl",
                    "shift_right_arithmetic": "sra"}[stem]
            name = f"p{kind}v{lanes}{'si' if d.size == 4 else 'di'}"
            masked = bits == 512 or (kind == "sra" and d.size == 8)
            if kind == "sra" and d.size == 8 and bits != 512:
                name = f"psravq{bits}"
            extra = f", ({i})a, -1" if masked else ""
            body = (f"return ({v})__builtin_ia32_{name}{'_mask' if masked else ''}(({i})a, ({i})b"
                    f"{extra});")
        else:
            t = b.uint_of(dtype)
            f = partial(b.fn, dtype=t, lanes=lanes)
            inside = f"{f('lt')}(({u})b, {f('splat')}({width}))"
            count = f"({operand})(({u})b & {width - 1})"
            beyond = f"{f('splat')}(0)" if operand != i else f"({u})(({i})a >> {width - 1})"
            shifted = f"({u})(({operand})a {operator} {count})"
            body = f"return ({v}){f('select')}({inside}, {shifted}, {beyond});"
        return b.inline(stem, dtype, lanes, v, f"{v} a, {v} b", body)
    return emit


def _mul_high(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The upper half of the product of words; x86 multiplies those in even lanes at once."""
    v, bits = b.type(dtype, lanes), b.bits(dtype, lanes)
    w = b.type("u64", max(lanes // 2, 1))
    if lanes == 1:
        body = "return (u32)((u64)a * b >> 32);"
    elif b.isa.x86 and bits is None:
        return b.halves("mul_high", dtype, lanes, "v", "vv")
    elif b.isa.x86:
        i, half = b.type("i32", lanes), b.type("i64", lanes // 2)
        name, extra = (f"pmuludq{bits}_mask", f", ({half}){{0}}, -1") if bits == 512 else \
            (f"pmuludq{bits}", "")
        even, odd = (f"({w})__builtin_ia32_{name}(({i}){x}, ({i}){y}{extra})"
                     for x, y in (("a", "b"), (f"(({w})a >> 32)", f"(({w})b >> 32)")))
        body = f"return ({v})(({even} >> 32) | ({odd} & 0xffffffff00000000ull));"
    else:
        wide = b.type("u64", lanes)
        body = (f"return __builtin_convertvector(__builtin_convertvector(a, {wide}) * "
                f"__builtin_convertvector(b, {wide}) >> 32, {v});")
    return b.inline("mul_high", dtype, lanes, v, f"{v} a, {v} b", body)


def _population_count(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """Sums of neighbouring 1, 2 and 4 bits, then of the bytes by a multiplication."""
    v, d = b.type(dtype, lanes), DTYPES[dtype]
    u, size = b.type(b.uint_of(dtype), lanes), d.size
    if lanes == 1:
        body = f"return ({v})__builtin_popcountll(({u})a);"
    elif b.isa.popcount and size >= 4 and lanes * size == 64:
        i, name = (b.type(f"i{8 * size}", lanes), "d_v16si" if size == 4 else "q_v8di")
        body = f"return ({v})__builtin_ia32_vpopcount{name}(({i})a);"
    else:
        low, pairs, fours, ones = (f"({DTYPES[b.uint_of(dtype)].c})0x{byte * size}ull"
                                   for byte in ("55", "33", "0f", "01"))
        total = f"(x * {ones}) >> {8 * size - 8}" if size > 1 else "x"
        body = (f"{u} x = ({u})a; x -= (x >> 1) & {low}; x = (x & {pairs}) + ((x >> 2) & {pairs}); "
                f"x = (x + (x >> 4)) & {fours}; return ({v})({total});")
    return b.inline("population_count", dtype, lanes, v, f"{v} a", body)


def _clz(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The highest bit is copied to all below; what is left are the zeros above."""
    v, size = b.type(dtype, lanes), DTYPES[dtype].size
    u, cast = b.type(b.uint_of(dtype), lanes), f"({DTYPES[dtype].c})" if lanes == 1 else ""
    smear = " ".join(f"x |= ({u})(x >> {1 << k});" for k in range((8 * size - 1).bit_length()))
    count = b.fn("population_count", b.uint_of(dtype), lanes)
    return b.inline("clz", dtype, lanes, v, f"{v} a",
                    f"{u} x = ({u})a; {smear} return {cast}(({v}){count}(({u})~x));")


EMITTERS: Mapping[str, Emitter] = {
    "div": _divide, "rem": _rem, "abs": _abs, "sign": _sign, "truncated": _truncated,
    "max": _extremum("max"), "min": _extremum("min"),
    **{stem: _shift(stem) for stem in ("shift_left", "shift_right_logical",
                                       "shift_right_arithmetic")},
    "mul_high": _mul_high, "population_count": _population_count, "clz": _clz,
}
