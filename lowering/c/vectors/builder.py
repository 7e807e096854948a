"""Functions on vector registers: the frame in which all are written, operators, masks, reductions.

A `VectorBuilder` keeps types, names, functions and their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from functrans.core.record import Record
from functrans.lowering.c.isa import Isa
from functrans.lowering.rules.elementwise import ELEMENTWISE

__all__ = ["DTYPES", "MASKS_AND_REDUCTIONS", "MASK_OPERATIONS", "STORED", "CType", "Emitter",
           "VectorBuilder", "arithmetic", "builtin_int", "letter", "math_functions",
           "register_dtype"]

MATH = Path(__file__).parent.parent / "math"

class CType(Record):
    """An element type: kind f, i, u or b; `c` is its type in C, `size` its bytes."""

    kind: str
    size: int
    c: str


DTYPES: Mapping[str, CType] = {
    "f32": CType("f", 4, "float"), "f64": CType("f", 8, "double"),
    **{f"{kind}{8 * size}": CType(kind, size, f"{kind}{8 * size}")
       for kind in "iu" for size in (1, 2, 4, 8)},
    "c8": CType("i", 1, "char"),  # what the byte builtins of gcc take
}
STORED: Mapping[str, str] = {"f16": "u16", "bf16": "u16", "bool": "u8"}
"""The element in memory of the dtypes that live otherwise in registers."""

_SCALARS = """\
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef u16 bf16; typedef u16 f16;
#define INL static inline __attribute__((always_inline))
"""


# functions on the integers of a template's width
_INTEGER_FUNCTIONS = {"lti": "lt", "lei": "le", "gti": "gt", "gei": "ge", "eqi": "eq", "nei": "ne",
                      "selecti": "select", "splati": "splat"}
_TOKEN = re.compile(r"\b(?:(\w+)_([VD])|F|I|U|M|SI|S|L|D|MD)\b")


def register_dtype(dtype: str) -> str:
    """The dtype in which values of `dtype` live in registers."""
    return "f32" if dtype in ("f16", "bf16") else dtype


class VectorBuilder:
    """Collects typedefs and functions, dependencies first.

    A function is known by its stem, its dtype and its lanes: `add` of f32 in 16 lanes is
    `add_f32x16`, in one lane (plain scalars) `add_f32`. `emitters` maps a stem to what writes it.
    """

    def __init__(self, isa: Isa, emitters: Mapping[str, Emitter]) -> None:
        self.isa = isa
        self._emitters = emitters
        self._types: dict[str, str] = {}
        self._functions: dict[str, str | None] = {}
        self._order: list[str] = []

    def source(self) -> str:
        """The typedefs and functions that were asked for, dependencies first."""
        return "".join((_SCALARS, *self._types.values(), *self._order))

    def functions(self) -> Mapping[str, str]:
        """The texts of the functions that were asked for, by name, in that order."""
        names = {text: name for name, text in self._functions.items() if text is not None}
        return {names[text]: text for text in self._order}

    # types ---------------------------------------------------------------------------------------

    def type(self, dtype: str, lanes: int) -> str:
        """The C type of a register value; "bool" is the mask of a kernel."""
        if dtype == "bool":
            return self.mask("i32", lanes)
        dtype = register_dtype(dtype)
        if lanes == 1:
            return DTYPES[dtype].c
        return self._typedef(f"{dtype}x{lanes}", dtype, DTYPES[dtype].size * lanes)

    def _typedef(self, name: str, dtype: str, size: int, attributes: str = "") -> str:
        if name not in self._types:
            self._types[name] = (f"typedef {DTYPES[dtype].c} {name} "
                                 f"__attribute__((vector_size({size}){attributes}));\n")
        return name

    def unaligned(self, dtype: str, lanes: int) -> str:
        """The type through which `lanes` elements are read and written anywhere in memory."""
        size = DTYPES[dtype].size
        return self._typedef(f"{dtype}x{lanes}u", dtype, size * lanes,
                             f", aligned({size}), may_alias")

    def mask(self, dtype: str, lanes: int) -> str:
        """The type of a comparison of `dtype`: bits with mask registers, else 0/-1 of its width."""
        if lanes == 1:
            return "int"
        if not self.isa.masks:
            if DTYPES[dtype].size != 4:
                return self.type(self.int_of(dtype), lanes)
            self._types.setdefault(
                f"maskx{lanes}", f"typedef {self.type('i32', lanes)} maskx{lanes};\n")
        self._types.setdefault(f"maskx{lanes}", f"typedef u{max(lanes, 8)} maskx{lanes};\n")
        return f"maskx{lanes}"

    def int_of(self, dtype: str) -> str:
        return f"i{8 * DTYPES[dtype].size}"

    def uint_of(self, dtype: str) -> str:
        return f"u{8 * DTYPES[dtype].size}"

    def suffix(self, dtype: str, lanes: int) -> str:
        return dtype if lanes == 1 else f"{dtype}x{lanes}"

    def bytes(self, dtype: str, lanes: int) -> int:
        return DTYPES[dtype].size * lanes

    def bits(self, dtype: str, lanes: int) -> int | None:
        """The width in bits of the one register that holds the value; None if none does."""
        size = self.bytes(dtype, lanes)
        return 8 * size if lanes > 1 and 16 <= size <= self.isa.vector_bytes else None

    def wide(self, dtype: str, lanes: int) -> bool:
        """Whether the value takes several registers."""
        return lanes > 1 and self.bytes(dtype, lanes) > self.isa.vector_bytes

    # functions -----------------------------------------------------------------------------------

    def fn(self, stem: str, dtype: str, lanes: int) -> str:
        """The name of a function, which is written first if it does not exist yet.

        A math template hides an emitter of its name, and that the function of an entry.
        """
        name = f"{stem}_{self.suffix(dtype, lanes)}"
        if name in self._functions:
            return name
        template = math_functions(dtype).get(stem) if dtype in ("f32", "f64") else None
        if template is None and stem in self._emitters:
            return self.define(name, lambda: self._emitters[stem](self, dtype, lanes))
        needs, text = template or _template_of_entry(stem, dtype)

        def emit() -> str:
            for need in needs:
                self._name(need, dtype, lanes)
            return _TOKEN.sub(lambda m: self._token(m, dtype, lanes), text)

        return self.define(name, emit)

    def define(self, name: str, emit: Callable[[], str]) -> str:
        """Write the function `name` unless it was; what `emit` asks for comes before it."""
        if name not in self._functions:
            self._functions[name] = None
            text = emit()
            self._functions[name] = text
            self._order.append(text)
        return name

    def inline(self, stem: str, dtype: str, lanes: int, result: str, params: str, body: str) -> str:
        return f"INL {result} {stem}_{self.suffix(dtype, lanes)}({params}) {{ {body} }}\n"

    def lo(self, dtype: str, lanes: int, value: str) -> str:
        return f"{self.fn('lo', dtype, lanes)}({value})"

    def hi(self, dtype: str, lanes: int, value: str) -> str:
        return f"{self.fn('hi', dtype, lanes)}({value})"

    def join(self, dtype: str, lanes: int, low: str, high: str) -> str:
        return f"{self.fn('join', dtype, lanes)}({low}, {high})"

    def halves(self, stem: str, dtype: str, lanes: int, result: str, args: str) -> str:
        """A lane-wise function in terms of its halves; `result` and the letters of `args` are
        v (of dtype), i (signed of its width), m (its mask)."""
        half = self.fn(stem, dtype, lanes // 2)
        names = [chr(ord("a") + i) for i in range(len(args))]

        def pieces(side: str) -> str:
            return ", ".join(self._half(side, kind, dtype, lanes, name)
                             for kind, name in zip(args, names))

        params = ", ".join(f"{self._kind(kind, dtype, lanes)} {name}"
                           for kind, name in zip(args, names))
        low, high = f"{half}({pieces('lo')})", f"{half}({pieces('hi')})"
        if result == "m" and self.isa.masks:
            joined = f"({self.mask(dtype, lanes)})({low} | (u64){high} << {lanes // 2})"
        else:
            joined = self.join(dtype if result == "v" else self.int_of(dtype), lanes, low, high)
        return self.inline(stem, dtype, lanes, self._kind(result, dtype, lanes), params,
                           f"return {joined};")

    def _kind(self, kind: str, dtype: str, lanes: int) -> str:
        if kind == "m":
            return self.mask(dtype, lanes)
        return self.type(dtype if kind == "v" else self.int_of(dtype), lanes)

    def _half(self, side: str, kind: str, dtype: str, lanes: int, name: str) -> str:
        if kind == "m" and self.isa.masks:
            half = self.mask(dtype, lanes // 2)
            shift = 0 if side == "lo" else lanes // 2
            keep = f" & {(1 << lanes // 2) - 1}" if lanes // 2 < 8 else ""
            return f"({half})({name} >> {shift}{keep})"
        return f"{self.fn(side, dtype if kind == 'v' else self.int_of(dtype), lanes)}({name})"

    # math templates ------------------------------------------------------------------------------

    def _name(self, word: str, dtype: str, lanes: int) -> str:
        stem, _, kind = word.rpartition("_")
        if kind == "D":
            dtype = "f64"
        if stem in _INTEGER_FUNCTIONS:
            return self.fn(_INTEGER_FUNCTIONS[stem], self.int_of(dtype), lanes)
        if stem == "todouble":
            return self.fn("to_f64", "f32", lanes)
        if stem == "tofloat":
            return self.fn("to_f32", "f64", lanes)
        if stem == "gather":
            return self.fn(f"gather_{self.int_of(dtype)}", dtype, lanes)
        if stem in ("mtodouble", "mtofloat"):
            return self._mask_between(stem, lanes)
        return self.fn(stem, dtype, lanes)

    def _mask_between(self, stem: str, lanes: int) -> str:
        """A mask of f32 comparisons as one of f64 comparisons, or back."""
        source, target = ("f32", "f64") if stem == "mtodouble" else ("f64", "f32")
        name = f"{stem}_{self.suffix(source, lanes)}"
        return self.define(name, lambda: (
            f"INL {self.mask(target, lanes)} {name}({self.mask(source, lanes)} m) {{ return "
            f"{self.fn('widen', target, lanes)}("
            f"{self.fn('narrow', source, lanes)}(m)); }}\n"))

    def _token(self, match: re.Match[str], dtype: str, lanes: int) -> str:
        word = match.group()
        if match.group(2):
            return self._name(word, dtype, lanes)
        if word == "L":
            return str(lanes)
        if word == "M":
            return self.mask(dtype, lanes)
        if word == "MD":
            return self.mask("f64", lanes)
        if word in ("S", "SI"):
            return DTYPES[dtype if word == "S" else self.int_of(dtype)].c
        return self.type({"F": dtype, "D": "f64", "I": self.int_of(dtype),
                          "U": self.uint_of(dtype)}[word], lanes)


Emitter = Callable[[VectorBuilder, str, int], str]


Template = tuple[tuple[str, ...], str]
"""What a function needs, and its text."""


def _template_of_entry(stem: str, dtype: str) -> Template:
    """The template of a function of floats that the entry of an operation has."""
    entry = ELEMENTWISE.operation(stem)
    if entry is None or not entry.c or dtype not in ("f32", "f64"):
        raise KeyError(stem)
    return _parsed(entry.c, f"the entry of {stem}")[stem]


@cache
def math_functions(dtype: str) -> Mapping[str, Template]:
    """The templates for f32 or f64, with those that serve both."""
    found: dict[str, Template] = {}
    for path in [*sorted(MATH.glob(f"*_{dtype}.c")), *MATH.glob("shared.c")]:
        found.update(_parsed(path.read_text(), str(path)))
    return found


@lru_cache(maxsize=256)
def _parsed(source: str, where: str) -> Mapping[str, Template]:
    found: dict[str, Template] = {}
    for piece in re.split(r"^//: ", source, flags=re.MULTILINE)[1:]:
        head, _, text = piece.partition("\n")
        while text.startswith("//:+"):
            more, _, text = text.partition("\n")
            head += more[4:]
        name, *needs = head.split()
        if needs[:1] not in ([], ["needs"]):
            raise ValueError(f"{where}: '//: {head}' does not read '//: name_V needs ...'")
        found[name.removesuffix("_V")] = (tuple(needs[1:]), text.strip() + "\n")
    return found


# --- operators

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "is_finite", "isnan")
_ALIASES = {"round_even": "round", "clamp_min": "max", "clamp_max": "min"}

MASK_OPERATIONS: Mapping[str, Callable[[Callable[..., str], Sequence[str]], str]] = {
    "and": lambda m, x: m("mand", *x), "mul": lambda m, x: m("mand", *x),
    "min": lambda m, x: m("mand", *x), "or": lambda m, x: m("mor", *x),
    "max": lambda m, x: m("mor", *x), "add": lambda m, x: m("mor", *x),
    "xor": lambda m, x: m("mxor", *x), "ne": lambda m, x: m("mxor", *x),
    "eq": lambda m, x: m("mnot", m("mxor", *x)), "not": lambda m, x: m("mnot", *x),
    "gt": lambda m, x: m("mandnot", *x), "lt": lambda m, x: m("mandnot", x[1], x[0]),
    "le": lambda m, x: m("mnot", m("mandnot", *x)),
    "ge": lambda m, x: m("mnot", m("mandnot", x[1], x[0])),
    "any": lambda m, x: m("any", *x), "all": lambda m, x: m("all", *x),
    "select": lambda m, x: m("mor", m("mand", x[0], x[1]), m("mandnot", x[2], x[0])),
}
"""Operations on the masks of a kernel (booleans), from calls of the mask functions."""


_CONSTANT = re.compile(r"(?:splat_\w+\()?(?:\([iu]\d+\))?\(?(\d+)(?:u|ll|ull)?\)*")


def _constant(text: str) -> int | None:
    """The value of a decimal literal, also of one that was broadcast."""
    match = _CONSTANT.fullmatch(text)
    return int(match[1]) if match and int(match[1]) < 2**31 else None


def arithmetic(b: VectorBuilder, name: str, dtype: str, args: Sequence[str], lanes: int) -> str:
    """The expression `name` of values of `dtype` (no booleans)."""
    name, d = _ALIASES.get(name, name), DTYPES[dtype]
    # narrow scalars are computed as int in C
    back = f"({d.c})" if lanes == 1 and d.size < 4 else ""
    if name in _INFIX or (name == "div" and d.kind == "f"):
        return f"{back}({args[0]} {_INFIX.get(name, '/')} {args[1]})"
    if name in ("neg", "not"):
        return f"{back}({'-' if name == 'neg' else '~'}{args[0]})"
    if name == "square":
        return f"{b.fn('square', dtype, lanes)}({args[0]})"
    constant = _constant(args[1]) if len(args) == 2 else None
    if name in ("div", "rem") and constant and d.size >= 4:  # by multiplication; no special cases
        return f"({args[0]} {'/' if name == 'div' else '%'} {constant})"
    if name.startswith("shift") and constant is not None and constant < 8 * d.size:
        signed = name == "shift_right_arithmetic"
        t = b.type(b.int_of(dtype) if signed else b.uint_of(dtype), lanes)
        operator = "<<" if name == "shift_left" else ">>"
        return f"(({b.type(dtype, lanes)})(({t}){args[0]} {operator} {constant}))"
    if name == "select":
        mask = f"{b.fn('widen', dtype, lanes)}({args[0]})"
        return f"{b.fn('select', dtype, lanes)}({mask}, {args[1]}, {args[2]})"
    call = f"{b.fn(name, dtype, lanes)}({', '.join(args)})"
    return f"{b.fn('narrow', dtype, lanes)}({call})" if name in _COMPARISONS else call


# --- masks: comparisons, their logic, selection

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


# --- a vector to one scalar: halves are combined until one element is left, a pairwise tree

_REDUCTIONS = ("add", "mul", "max", "min", "and", "or", "xor")


def _reduce(op: str) -> Emitter:
    stem = f"reduce_{op}"

    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, s = b.type(dtype, lanes), DTYPES[dtype].c
        if lanes == 1:
            body = "return v;"
        elif b.bytes(dtype, lanes) > 16:
            low, high = b.lo(dtype, lanes, "v"), b.hi(dtype, lanes, "v")
            both = arithmetic(b, op, dtype, (low, high), lanes // 2)
            body = f"return {b.fn(stem, dtype, lanes // 2)}({both});"
        else:
            terms = [f"v[{l}]" for l in range(lanes)]
            while len(terms) > 1:
                half = len(terms) // 2
                terms = [arithmetic(b, op, dtype, pair, 1)
                         for pair in zip(terms[:half], terms[half:])]
            body = f"return {terms[0]};"
        return b.inline(stem, dtype, lanes, s, f"{v} v", body)
    return emit


def _square(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v = b.type(dtype, lanes)
    return b.inline("square", dtype, lanes, v, f"{v} a",
                    f"return {arithmetic(b, 'mul', dtype, ('a', 'a'), lanes)};")


MASKS_AND_REDUCTIONS: Mapping[str, Emitter] = {
    **{stem: _comparison(stem) for stem in _OPERATORS},
    "isnan": _isnan,
    "mand": _logic("mand", "a & b"), "mor": _logic("mor", "a | b"),
    "mxor": _logic("mxor", "a ^ b"), "mnot": _logic("mnot", "~a"),
    "mandnot": _logic("mandnot", "a & ~b"),
    "any": _quantifier("any"), "all": _quantifier("all"),
    "select": _select, "narrow": _narrow, "widen": _widen, "tail": _tail,
    **{f"reduce_{op}": _reduce(op) for op in _REDUCTIONS}, "square": _square,
}
