"""What generated kernels are written in: vector types, operations, loads, stores, math templates.

A `Prelude` gives the C expression of every operation and collects the functions that these need;
`source()` is their text, and nothing else, because parsing costs compile time. A value of dtype
`f32` in 16 lanes has the type `f32x16`; in one lane it is a plain `float`, so that the same
functions serve scalar code. Booleans are `maskx16`: a bit a lane with AVX-512, an `i32x16` of 0 and
-1 elsewhere, an `int` of 0 or 1 in one lane. `f16` and `bf16` are `f32` in registers; memory holds
them, and booleans, as `u16` and `u8`.

Math templates are the files math/*_f32.c and math/*_f64.c, and math/shared.c for both. A function
follows a line
`//: exp_V needs fma_V select_V`, which may go on in lines `//:+ ...`; what stands before the first
such line is for readers only. Whole words are replaced: F is the float vector, I and U the signed
and unsigned integer vectors of its width, M the mask of its comparisons, S the scalar element, SI
the scalar integer, L the lanes; `exp_V` becomes `exp_f32x16`, and `lti_V`, `selecti_V`, `splati_V`
... the integer functions. In f32 files D, MD and `_D` are the float64 vector of as many lanes, its
mask and its functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from functrans.lowering.c.isa import Isa
from functrans.lowering.c.vectors import convert, floats, integers, memory
from functrans.lowering.c.vectors.builder import (
    DTYPES,
    MASK_OPERATIONS,
    MASKS_AND_REDUCTIONS,
    STORED,
    Emitter,
    VectorBuilder,
    arithmetic,
    register_dtype,
)
from functrans.lowering.loops.permuted_reads import windows_of

__all__ = ["Prelude"]


def _by_kind(stem: str) -> Emitter:
    """The emitter for floats or that for integers."""
    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        is_float = dtype in DTYPES and DTYPES[dtype].kind == "f"
        emitters = floats.EMITTERS if is_float else integers.EMITTERS
        return emitters[stem](b, dtype, lanes)
    return emit


_EMITTERS: Mapping[str, Emitter] = {
    **MASKS_AND_REDUCTIONS, **memory.EMITTERS, **convert.EMITTERS, **floats.EMITTERS,
    **integers.EMITTERS,
    **{stem: _by_kind(stem) for stem in floats.EMITTERS.keys() & integers.EMITTERS.keys()},
}

class Prelude:
    """The operations of kernels for one instruction set, and the functions that they need."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self._b = VectorBuilder(isa, _EMITTERS)
        self._permutations: dict[tuple[str, int, tuple[int, ...]], str] = {}

    def source(self) -> str:
        """The typedefs and functions that were asked for, dependencies first."""
        return self._b.source()

    def functions(self) -> Mapping[str, str]:
        """The texts of these functions by name, in that order."""
        return self._b.functions()

    def function(self, name: str, dtypes: Sequence[str] | str, lanes: int) -> str:
        """The C name of a function of the layer or of a math template."""
        dtype = register_dtype(dtypes if isinstance(dtypes, str) else dtypes[0])
        return self._b.fn(name, dtype, lanes)

    # values ---------------------------------------------------------------------------------------

    def vtype(self, dtype: str, lanes: int) -> str:
        """The C type of a value in registers."""
        return self._b.type(dtype, lanes)

    def stored_type(self, dtype: str) -> str:
        """The C type of an element in memory."""
        return DTYPES[STORED.get(dtype, dtype)].c

    def literal(self, value: Any, dtype: str) -> str:
        """An exact C constant of one lane."""
        if dtype == "bool":
            return "1" if value else "0"
        d = DTYPES[register_dtype(dtype)]
        if d.kind != "f":
            number = int(value)
            suffix = ("u" if d.kind == "u" and d.size >= 4 else "") + ("ll" if d.size == 8 else "")
            if number == -(2 ** (8 * d.size - 1)) and d.size >= 4:
                return f"(-{-number - 1}{suffix} - 1)"
            return f"({number}{suffix})" if number < 0 else f"{number}{suffix}"
        x, c = float(value), "f" if d.size == 4 else ""
        if math.isnan(x):
            return f'__builtin_nan{c}("")'
        if math.isinf(x):
            return f"({'-' if x < 0 else ''}__builtin_inf{c}())"
        text = x.hex() + c
        return f"({text})" if text[0] == "-" else text

    def broadcast(self, dtype: str, lanes: int, scalar: str) -> str:
        """A scalar expression in every lane."""
        return f"{self.function('splat', dtype, lanes)}({scalar})"

    def iota(self, dtype: str, lanes: int, start: str) -> str:
        """start, start + 1, ...; start is an integer expression."""
        return f"{self.function('iota', dtype, lanes)}({start})"

    # operations -----------------------------------------------------------------------------------

    def op(self, name: str, dtypes: Sequence[str], args: Sequence[str], lanes: int) -> str:
        """The expression of an operation, by the name of its primitive.

        `dtypes` are those of the operands; that of the values decides ("select" takes its mask
        first). A function of math/ is an operation too. A constant shift is best given as a
        decimal literal.
        """
        name = "select" if name == "select_n" else name
        dtype = dtypes[-1]
        if name in ("clamp", "bitcast"):
            raise ValueError(f"{name}: use max and min, or bitcast()")
        if dtype == "bool":
            return MASK_OPERATIONS[name](
                lambda f, *x: f"{self._b.fn(f, 'i32', lanes)}({', '.join(x)})", args)
        if name == "nextafter" and dtype in STORED:
            return self._half_nextafter(dtype, args, lanes)
        return arithmetic(self._b, name, register_dtype(dtype), args, lanes)

    def convert(self, src: str, dst: str, value: str, lanes: int) -> str:
        """astype: floats to integers truncate and saturate, NaN to 0; rounded for half types."""
        if src == dst:
            return value
        half = dst in ("f16", "bf16")
        target, source = register_dtype(dst), register_dtype(src)
        if dst == "f16" and src == "f64":
            value, source = f"{self._b.fn('odd_f32', 'f64', lanes)}({value})", "f32"
        if source != target:
            value = f"{self._b.fn(f'to_{target}', source, lanes)}({value})"
        # of the narrower types every value is one of f32's 8 or 11 bits
        exact = src in ("bool", "i8", "u8")
        if half and not exact:
            value = f"{self._b.fn(f'round_{dst}', 'f32', lanes)}({value})"
        return value

    def bitcast(self, src: str, dst: str, value: str, lanes: int) -> str:
        """The bits of a value as those of another dtype of the same width."""
        if src == dst:
            return value
        value, dtype = self._compressed(src, lanes, value), STORED.get(src, src)
        target = STORED.get(dst, dst)
        if "f" in (DTYPES[dtype].kind, DTYPES[target].kind):
            wide = "f32" if DTYPES[dtype].size == 4 else "f64"
            if DTYPES[dtype].kind == "f":
                value, dtype = f"{self._b.fn('bits', wide, lanes)}({value})", self._b.int_of(wide)
            if DTYPES[target].kind == "f":
                integer = self._b.type(self._b.int_of(wide), lanes)
                return f"{self._b.fn('float', wide, lanes)}(({integer}){value})"
        if dtype != target:
            value = f"(({self._b.type(target, lanes)}){value})"
        return self._expanded(dst, lanes, value)

    def reduce(self, op: str, dtype: str, lanes: int, value: str) -> str:
        """One scalar of all lanes, by a pairwise tree; max and min propagate NaN."""
        if dtype != "bool":
            return f"{self.function(f'reduce_{op}', dtype, lanes)}({value})"
        stem = {"and": "all", "min": "all", "mul": "all", "or": "any", "max": "any",
                "add": "any"}[op]
        return f"{self._b.fn(stem, 'i32', lanes)}({value})"

    def select_tail(self, dtype: str, lanes: int, value: str, count: str, fill: str) -> str:
        """The value in the lanes below count, elsewhere the scalar `fill`."""
        fill = self.broadcast(dtype, lanes, fill)
        if lanes == 1:
            return f"(({count}) > 0 ? {value} : {fill})"
        tail = f"{self._b.fn('tail', 'i32' if dtype == 'bool' else register_dtype(dtype), lanes)}"
        if dtype == "bool":
            return self.op("select", ("bool", "bool", "bool"), (f"{tail}({count})", value, fill),
                           lanes)
        return f"{self.function('select', dtype, lanes)}({tail}({count}), {value}, {fill})"

    # memory ---------------------------------------------------------------------------------------

    def load(self, dtype: str, lanes: int, pointer: str, count: str | None = None) -> str:
        """The elements at `pointer`, of any alignment; only the first `count` if that is given
        (at most `lanes`; the other lanes are 0)."""
        return self._read("load", dtype, lanes, (pointer,), count)

    def gather(self, dtype: str, lanes: int, pointer: str, index: str, index_dtype: str,
               count: str | None = None) -> str:
        """pointer[index[l]] for an i32 or i64 vector; only the first `count` are read."""
        stem = f"gather_{index_dtype}" if count is None else f"gather_part_{index_dtype}"
        return self._read(stem, dtype, lanes, (pointer, index), count)

    def strided(self, dtype: str, lanes: int, pointer: str, stride: str,
                count: str | None = None) -> str:
        """pointer[l * stride]."""
        return self._read("strided", dtype, lanes, (pointer, stride), count)

    def permuted(self, dtype: str, lanes: int, pointer: str,
                 offsets: Sequence[int]) -> str | None:
        """pointer[offsets[l]], by few vectors of neighbours; None where no few have them all."""
        element = STORED.get(dtype, dtype)
        begins = windows_of(offsets, lanes)
        if begins is None or self._b.bits(element, lanes) is None or DTYPES[element].size < 4:
            return None
        name = self._permutations.setdefault(
            (element, lanes, tuple(offsets)),
            f"permuted{len(self._permutations)}_{self._b.suffix(element, lanes)}")
        call = self._b.define(name, lambda: memory.permuted(
            self._b, name, element, lanes, offsets, begins))
        return self._expanded(dtype, lanes, f"{call}({pointer})")

    def _read(self, stem: str, dtype: str, lanes: int, args: tuple[str, ...],
              count: str | None) -> str:
        if count is not None:
            stem, args = stem if "_part" in stem else f"{stem}_part", (*args, count)
        element = STORED.get(dtype, dtype)
        call = f"{self._b.fn(stem, element, lanes)}({', '.join(args)})"
        return self._expanded(dtype, lanes, call)

    def store(self, dtype: str, lanes: int, pointer: str, value: str,
              count: str | None = None) -> str:
        """Write all lanes, or the first `count`; half types are rounded to nearest even."""
        element = STORED.get(dtype, dtype)
        stem, rest = ("store", "") if count is None else ("store_part", f", {count}")
        value = self._compressed(dtype, lanes, value)
        return f"{self._b.fn(stem, element, lanes)}({pointer}, {value}{rest})"

    def stream(self, dtype: str, lanes: int, pointer: str, value: str) -> str | None:
        """Write all lanes past the cache to aligned memory; None where there is no such store.

        `fence()` must follow before other threads read.
        """
        if not self.isa.x86 or dtype not in ("f32", "f64") \
                or lanes * (4 if dtype == "f32" else 8) != self.isa.vector_bytes:
            return None
        bits = 8 * self.isa.vector_bytes
        suffix = str(bits) if bits > 128 else ""
        ctype = "float" if dtype == "f32" else "double"
        return (f"__builtin_ia32_movntp{'s' if dtype == 'f32' else 'd'}{suffix}"
                f"(({ctype} *)({pointer}), {value})")

    @staticmethod
    def fence() -> str:
        """After the last streaming store of a function."""
        return "__builtin_ia32_sfence()"

    def load_scalar(self, dtype: str, pointer: str) -> str:
        return self.load(dtype, 1, pointer)

    def store_scalar(self, dtype: str, pointer: str, value: str) -> str:
        return self.store(dtype, 1, pointer, value)

    def transpose(self, dtype: str, lanes: int, part: bool = False) -> str:
        """The name of `f(const T *src, i64 src_stride, T *dst, i64 dst_stride)`, which transposes
        a tile of lanes x lanes stored elements; with `part` also (..., i64 rows, i64 cols)."""
        return self._b.fn("transpose_part" if part else "transpose", STORED.get(dtype, dtype),
                          lanes)

    def _expanded(self, dtype: str, lanes: int, value: str) -> str:
        """A stored element as a value in registers."""
        if dtype == "bool":
            return f"{self._b.fn('to_bool', 'u8', lanes)}({value})"
        if dtype in STORED:
            return f"{self._b.fn(f'expand_{dtype}', 'u16', lanes)}({value})"
        return value

    def _compressed(self, dtype: str, lanes: int, value: str) -> str:
        if dtype == "bool":
            return f"{self._b.fn('to_u8', 'bool', lanes)}({value})"
        if dtype in STORED:
            return f"{self._b.fn(f'compress_{dtype}', 'f32', lanes)}({value})"
        return value

    def _half_nextafter(self, dtype: str, args: Sequence[str], lanes: int) -> str:
        """The next number of the half type, not of f32: a step in its own bits."""
        name = f"nextafter_{dtype}_{self._b.suffix('f32', lanes)}"
        b, v = self._b, self._b.type("f32", lanes)

        def emit() -> str:
            f, g = partial(b.fn, dtype="f32", lanes=lanes), partial(b.fn, dtype="i32", lanes=lanes)
            h, i = b.type("u16", lanes), b.type("i32", lanes)
            zero = f"{f('splat')}(0.0f)"
            wide = convert.cast(b, "i32", lanes, f"{f(f'compress_{dtype}')}(a)")
            away = (f"{f('mor')}({f('eq')}(a, {zero}), "
                    f"{f('mnot')}({f('mxor')}({f('lt')}(a, b), {f('gt')}(a, {zero}))))")
            narrow = convert.cast(b, "u16", lanes, "x")
            step = f"{b.fn(f'expand_{dtype}', 'u16', lanes)}(y)"
            return (f"INL {v} {name}({v} a, {v} b) {{ {i} x = {wide}; "
                    f"x = {g('select')}({f('eq')}(a, {zero}), {g('splat')}(1), "
                    f"x + {g('select')}({away}, {g('splat')}(1), {g('splat')}(-1))); "
                    f"{h} y = {narrow}; {v} r = {step}; "
                    f"r = {f('select')}({f('eq')}(a, {zero}), {f('copysign')}(r, b), r); "
                    f"r = {f('select')}({f('eq')}(a, b), b, r); "
                    f"return {f('select')}("
                    f"{f('mor')}({f('isnan')}(a), {f('isnan')}(b)), a + b, r); }}\n")

        return f"{b.define(name, emit)}({', '.join(args)})"
