"""Making vectors and moving them: splats, counts, halves; loads and stores of whole and part;
transposition of a tile of lanes x lanes elements in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder, builtin_int, letter

__all__ = ["EMITTERS", "permuted"]


def _splat(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    body = "return s;" if lanes == 1 else f"return ({v}){{{', '.join(['s'] * lanes)}}};"
    return b.inline("splat", dtype, lanes, v, f"{s} s", body)


def _splat_mask(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """The mask of a kernel from an int that is 0 or 1."""
    m = b.type("bool", lanes)
    if lanes == 1:
        body = "return s;"
    elif b.isa.masks:
        body = f"return ({m})(s ? {'~0ull' if lanes == 64 else hex((1 << lanes) - 1)} : 0);"
    else:
        body = f"return {b.fn('splat', 'i32', lanes)}(-s);"
    return b.inline("splat", "bool", lanes, m, "int s", body)


def _iota(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """start, start + 1, ...; in integers, so that large float32 values are rounded once."""
    v, d = b.type(dtype, lanes), DTYPES[dtype]
    if lanes == 1:
        return b.inline("iota", dtype, 1, v, "i64 start", f"return ({v})start;")
    steps = "{" + ", ".join(map(str, range(lanes))) + "}"
    if dtype == "f32":
        body = (f"return __builtin_convertvector({b.fn('iota', 'i32', lanes)}(start), {v});")
    else:
        body = f"return {b.fn('splat', dtype, lanes)}(({d.c})start) + ({v}){steps};"
    return b.inline("iota", dtype, lanes, v, "i64 start", body)


def _half(stem: str) -> Emitter:
    # the union is free: gcc 12 at -O1 keeps both halves in registers
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, h = b.type(dtype, lanes), b.type(dtype, lanes // 2)
        index = 0 if stem == "lo" else 1
        return b.inline(stem, dtype, lanes, h, f"{v} v",
                        f"union {{ {v} v; {h} h[2]; }} u; u.v = v; return u.h[{index}];")
    return emit


def _join(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, h = b.type(dtype, lanes), b.type(dtype, lanes // 2)
    return b.inline("join", dtype, lanes, v, f"{h} l, {h} h",
                    f"union {{ {v} v; {h} h[2]; }} u; u.h[0] = l; u.h[1] = h; return u.v;")


def _load(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    if lanes == 1:
        body = "return *p;"
    elif b.wide(dtype, lanes):
        half = b.fn("load", dtype, lanes // 2)
        body = f"return {b.join(dtype, lanes, f'{half}(p)', f'{half}(p + {lanes // 2})')};"
    else:
        body = f"return *(const {b.unaligned(dtype, lanes)} *)p;"
    return b.inline("load", dtype, lanes, v, f"const {s} *p", body)


def _store(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    if lanes == 1:
        body = "*p = v;"
    elif b.wide(dtype, lanes):
        half = b.fn("store", dtype, lanes // 2)
        body = (f"{half}(p, {b.lo(dtype, lanes, 'v')}); "
                f"{half}(p + {lanes // 2}, {b.hi(dtype, lanes, 'v')});")
    else:
        body = f"*({b.unaligned(dtype, lanes)} *)p = v;"
    return b.inline("store", dtype, lanes, "void", f"{s} *p, {v} v", body)


def _masked(b: VectorBuilder, dtype: str, verb: str, bits: int) -> str:
    """The masked moves of AVX-512."""
    if DTYPES[dtype].kind == "f":
        return f"__builtin_ia32_{verb}u{letter(dtype)}{bits}_mask"
    name = {1: "qi", 2: "hi", 4: "si", 8: "di"}[DTYPES[dtype].size]
    return f"__builtin_ia32_{verb}dqu{name}{bits}_mask"


def _avx2_masked(b: VectorBuilder, dtype: str, lanes: int) -> tuple[str, str, str]:
    """The builtins' suffix, their pointer type and that of their mask, for AVX2."""
    d, width = DTYPES[dtype], "256" if b.bits(dtype, lanes) == 256 else ""
    v = b.type(dtype if d.kind == "f" else b.int_of(dtype), lanes)
    return letter(dtype) + width, v, b.type(b.int_of(dtype), lanes)


def _padded(b: VectorBuilder, dtype: str, lanes: int) -> int:
    """The lanes of a whole register for what fills less than one."""
    return 16 // DTYPES[dtype].size


def _split_counts(lanes: int) -> str:
    half = lanes // 2
    return f"i64 m = n < {half} ? n : {half}, k = n - m;"


def _load_part(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s, size = b.type(dtype, lanes), DTYPES[dtype].c, DTYPES[dtype].size
    bits = b.bits(dtype, lanes)
    if lanes == 1:
        body = "return n > 0 ? *p : 0;"
    elif b.wide(dtype, lanes) and (b.isa.masks or (b.isa.x86 and size >= 4)):
        half = b.fn("load_part", dtype, lanes // 2)
        low, high = f"{half}(p, m)", f"{half}(p + {lanes // 2}, k)"
        body = f"{_split_counts(lanes)} return {b.join(dtype, lanes, low, high)};"
    elif b.isa.masks and bits is not None:
        i = v if DTYPES[dtype].kind == "f" else builtin_int(b, dtype, lanes)
        # the pointer of the float builtins is to an element, that of the integer ones as well
        e = DTYPES["c8" if size == 1 else dtype if i == v else b.int_of(dtype)].c
        body = (f"return ({v}){_masked(b, dtype, 'load', bits)}((const {e} *)p, ({i}){{0}}, "
                f"{b.fn('tail', dtype, lanes)}(n));")
    elif b.isa.masks:
        full = _padded(b, dtype, lanes)
        w = b.type(dtype, full)
        body = (f"union {{ {w} w; {v} v; }} u; u.w = {b.fn('load_part', dtype, full)}(p, n); "
                f"return u.v;")
    elif b.isa.x86 and size >= 4 and bits is not None:
        name, t, i = _avx2_masked(b, dtype, lanes)
        name = f"maskload{name}"
        body = (f"return ({v})__builtin_ia32_{name}((const {t} *)p, "
                f"({i}){b.fn('tail', dtype, lanes)}(n));")
    else:
        body = f"{v} v = {{0}}; __builtin_memcpy(&v, p, n * {size}); return v;"
    return b.inline("load_part", dtype, lanes, v, f"const {s} *p, i64 n", body)


def _store_part(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s, size = b.type(dtype, lanes), DTYPES[dtype].c, DTYPES[dtype].size
    bits = b.bits(dtype, lanes)
    if lanes == 1:
        body = "if (n > 0) *p = v;"
    elif b.wide(dtype, lanes) and (b.isa.masks or (b.isa.x86 and size >= 4)):
        half = b.fn("store_part", dtype, lanes // 2)
        body = (f"{_split_counts(lanes)} {half}(p, {b.lo(dtype, lanes, 'v')}, m); "
                f"{half}(p + {lanes // 2}, {b.hi(dtype, lanes, 'v')}, k);")
    elif b.isa.masks and bits is not None:
        i = v if DTYPES[dtype].kind == "f" else builtin_int(b, dtype, lanes)
        e = DTYPES["c8" if size == 1 else dtype if i == v else b.int_of(dtype)].c
        body = (f"{_masked(b, dtype, 'store', bits)}(({e} *)p, ({i})v, "
                f"{b.fn('tail', dtype, lanes)}(n));")
    elif b.isa.masks:
        full = _padded(b, dtype, lanes)
        w = b.type(dtype, full)
        body = (f"union {{ {w} w; {v} v; }} u; u.w = ({w}){{0}}; u.v = v; "
                f"{b.fn('store_part', dtype, full)}(p, u.w, n);")
    elif b.isa.x86 and size >= 4 and bits is not None:
        name, t, i = _avx2_masked(b, dtype, lanes)
        name = f"maskstore{name}"
        body = f"__builtin_ia32_{name}(({t} *)p, ({i}){b.fn('tail', dtype, lanes)}(n), ({t})v);"
    else:
        body = f"__builtin_memcpy(p, &v, n * {size});"
    return b.inline("store_part", dtype, lanes, "void", f"{s} *p, {v} v, i64 n", body)


def _gather(index: str) -> Emitter:
    """p[index[l]] by scalar loads: measured 0.30 ns an element from L1 in 16 lanes of f32 on Zen 5,
    0.38 by the gather instruction (strided: 0.20 and 0.38)."""
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, s, i = b.type(dtype, lanes), DTYPES[dtype].c, b.type(index, lanes)
        body = "return p[i];" if lanes == 1 else \
            f"return ({v}){{{', '.join(f'p[i[{l}]]' for l in range(lanes))}}};"
        return b.inline(f"gather_{index}", dtype, lanes, v, f"const {s} *p, {i} i", body)
    return emit


def _some(vector: str, element: str, lanes: int) -> str:
    """The first n elements one by one; in registers where n is a constant."""
    one_by_one = ", ".join([f"{l} < n ? {element.format(l)} : 0" for l in range(lanes)])
    return (f"if (__builtin_constant_p(n)) return ({vector}){{{one_by_one}}}; "
            f"{vector} v = {{0}}; for (i64 l = 0; l < n; l++) v[l] = {element.format('l')}; "
            "return v;")


def _gather_part(index: str) -> Emitter:
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, s, i = b.type(dtype, lanes), DTYPES[dtype].c, b.type(index, lanes)
        body = "return n > 0 ? p[i] : 0;" if lanes == 1 else _some(v, "p[i[{}]]", lanes)
        return b.inline(f"gather_part_{index}", dtype, lanes, v, f"const {s} *p, {i} i, i64 n",
                        body)
    return emit


def _strided(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    body = "return *p;" if lanes == 1 else \
        f"return ({v}){{{', '.join(f'p[{l} * stride]' for l in range(lanes))}}};"
    return b.inline("strided", dtype, lanes, v, f"const {s} *p, i64 stride", body)


def _strided_part(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    body = "return n > 0 ? *p : 0;" if lanes == 1 else _some(v, "p[{} * stride]", lanes)
    return b.inline("strided_part", dtype, lanes, v, f"const {s} *p, i64 stride, i64 n", body)


# GCC has __builtin_shufflevector from version 12 on, Clang no __builtin_shuffle.
_SHUFFLE = """\
#ifdef __clang__
#define SHUFFLE(x, y, type, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, type, ...) __builtin_shuffle(x, y, (type){__VA_ARGS__})
#endif
"""


def permuted(b: VectorBuilder, name: str, dtype: str, lanes: int, offsets: Sequence[int],
             begins: Sequence[int]) -> str:
    """A function that reads p[offsets[l]]: vectors that begin at `begins` after the least of these
    places are taken together one after another."""
    v, i, s = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes), DTYPES[dtype].c
    shuffle, load = b.define("SHUFFLE", lambda: _SHUFFLE), b.fn("load", dtype, lanes)
    least = min(offsets)
    places = [o - least for o in offsets]
    width = min(lanes, max(places) + 1)
    if width == lanes:
        text = f"{load}(q)"
    elif b.bits(dtype, lanes) is not None and (
            b.isa.masks or (b.isa.x86 and DTYPES[dtype].size >= 4)):
        # parts that are put together go through memory, and wait for it: 8 ns
        text = f"{b.fn('load_part', dtype, lanes)}(q, {width})"
    else:
        text = f"({v}){{{', '.join(f'q[{k}]' for k in range(width))}}}"
    lines = [f"const {s} *q = p + ({least}); {v} x = {text};"]
    if len(begins) == 1:
        lines.append(f"x = {shuffle}(x, x, {i}, {', '.join(map(str, places))});")
    known = lanes  # places below are in x
    for k, begin in enumerate(begins[1:]):
        end = begin + lanes
        picks = [(l if k else o) if o < known else lanes + o - begin if o < end else 0
                 for l, o in enumerate(places)]
        lines.append(f"{{ const {v} y = {load}(q + {begin}); "
                     f"x = {shuffle}(x, y, {i}, {', '.join(map(str, picks))}); }}")
        known = end
    return f"INL {v} {name}(const {s} *p) {{ {' '.join(lines)} return x; }}\n"


def _shuffles(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """log2(lanes) rounds; a round swaps the off-diagonal blocks of 1, 2, 4, ... elements."""
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    shuffle = b.define("SHUFFLE", lambda: _SHUFFLE)
    lines = []
    step = 1
    while step < lanes:
        # rows r and r + step, in blocks of `step`: the first keeps its even blocks
        low = [l if not l & step else l - step + lanes for l in range(lanes)]
        high = [l + step if not l & step else l + lanes for l in range(lanes)]
        masks = [f"{i}, {', '.join(map(str, m))}" for m in (low, high)]
        lines.append(f"{{ {v} t; ")
        for row in range(lanes):
            if not row & step:
                x, y = f"r{row}", f"r{row + step}"
                lines.append(f"t = {shuffle}({x}, {y}, {masks[0]}); "
                             f"{y} = {shuffle}({x}, {y}, {masks[1]}); {x} = t;\n")
        lines.append("}\n")
        step *= 2
    return "".join(lines)


def _transpose(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    load, store = b.fn("load", dtype, lanes), b.fn("store", dtype, lanes)
    reads = ", ".join(f"r{r} = {load}(src + {r} * src_stride)" for r in range(lanes))
    writes = " ".join(f"{store}(dst + {r} * dst_stride, r{r});" for r in range(lanes))
    return (f"static void transpose_{b.suffix(dtype, lanes)}(const {s} *src, i64 src_stride, "
            f"{s} *dst, i64 dst_stride) {{ {v} {reads};\n{_shuffles(b, dtype, lanes)}{writes} }}\n")


def _transpose_part(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """A tile of rows x cols of the source at the border."""
    s = DTYPES[dtype].c
    return (f"static void transpose_part_{b.suffix(dtype, lanes)}(const {s} *src, i64 src_stride, "
            f"{s} *dst, i64 dst_stride, i64 rows, i64 cols) {{ for (i64 c = 0; c < cols; c++) "
            f"for (i64 r = 0; r < rows; r++) dst[c * dst_stride + r] = src[r * src_stride + c]; "
            f"}}\n")


EMITTERS: Mapping[str, Emitter] = {
    "splat": lambda b, dtype, lanes: (_splat_mask if dtype == "bool" else _splat)(b, dtype, lanes),
    "iota": _iota, "lo": _half("lo"), "hi": _half("hi"), "join": _join,
    "load": _load, "store": _store, "load_part": _load_part, "store_part": _store_part,
    "strided": _strided, "strided_part": _strided_part,
    **{f"gather_{i}": _gather(i) for i in ("i32", "i64")},
    **{f"gather_part_{i}": _gather_part(i) for i in ("i32", "i64")},
    "transpose": _transpose, "transpose_part": _transpose_part,
}
