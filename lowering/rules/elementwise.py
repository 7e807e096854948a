"""Elementwise primitives: what kernels need to know of each, in one entry, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.lowering.loops.expr import Expr, ExprBuilder, operation
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import (
    Define,
    Later,
    Map,
    Tensor,
    compute_dtype,
    dtype_name,
)
from functrans.lowering.rules import special
from functrans.primitives import arithmetic as a
from functrans.primitives import compare as c
from functrans.primitives import transcendental as t
from functrans.primitives.arithmetic import conj_p, integer_pow_p, real_p
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.fused import fma_p
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.random import philox4x32_p, threefry2x32_p
from functrans.primitives.shape import copy_p
from functrans.primitives.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    igamma_p,
    igammac_p,
    random_gamma_grad_p,
    zeta_p,
)

__all__ = ["BY_PASSES", "CHEAP", "DIVISION", "ELEMENTWISE", "RULES", "SPECIAL",
           "TRANSCENDENTAL", "ElementwiseLowering", "ElementwiseTable", "Rule", "pointwise",
           "rounded", "rule_of"]


# What one element costs, in additions of a vector: measured on AVX-512 in float32.
CHEAP, DIVISION, TRANSCENDENTAL, SPECIAL, SERIES = 1, 4, 12, 40, 100


class ElementwiseLowering(Record):
    """How kernels compute an elementwise primitive: by one operation, or composed of others.

    `weight`: what one element costs, in additions.
    `op`: the operation of the loop language, by default of the primitive's name.
    `is_test`: the result is a boolean, told from operands as memory has them.
    `triton`: its text in Triton, where `{0}` is the first operand, `{bits}` the width of its dtype
    and `{own}` Triton's name of that; by dtype or kind of dtype where these differ. `fm.` is the
    module `kernels/device_math.py`, `fm.libdevice.` all of CUDA's library, which the interpreter
    replaces by the primitive's own `evaluate`.
    `c`: a template of its function in C, as those in `c/math/`, for float32 and float64. None is
    needed where the prelude has the function, or these files.
    `expression(s, *operands)`: its value composed of other operations, for all backends.
    """

    weight: int = CHEAP
    op: str = ""
    is_test: bool = False
    triton: str | Mapping[str, str] = ""
    c: str = ""
    expression: Callable[..., Any] | None = None

    def triton_text(self, dtype: str) -> str | None:
        """The text for operands of a dtype; None where Triton has none."""
        if isinstance(self.triton, str):
            return self.triton or None
        return self.triton.get(dtype) or self.triton.get(dtype[0])


class ElementwiseTable(Table[ElementwiseLowering]):
    """The entries, also by the operations of the loop language."""

    __slots__ = ("_operations",)

    def __init__(self, entries: Mapping[Primitive, ElementwiseLowering],
                 without: Mapping[Primitive, str]) -> None:
        super().__init__(entries, of=Elementwise, without=without)
        self._operations = {e.op or p.name: e for p, e in entries.items()}

    def operation(self, op: str) -> ElementwiseLowering | None:
        """The entry of an operation of the loop language."""
        return self._operations.get(op)

    def weight(self, op: str) -> int:
        """What an operation of the loop language costs, in additions."""
        found = self._operations.get(op)
        return CHEAP if found is None else found.weight

    def register(self, primitive: Primitive, entry: ElementwiseLowering) -> None:
        """Add the entry of a primitive that another distribution defines."""
        op = entry.op or primitive.name
        if primitive in self or op in self._operations:
            raise ValueError(f"{primitive.name} has an entry, or its operation {op} has one")
        self._entries[primitive] = entry
        self._operations[op] = entry


def _operator(sign: str, **fields: Any) -> ElementwiseLowering:
    return ElementwiseLowering(triton=f"{{0}} {sign} {{1}}", **fields)


def _test(sign: str) -> ElementwiseLowering:
    return _operator(sign, is_test=True)


def _function(name: str, weight: int = CHEAP, operands: int = 1, op: str = "") -> \
        ElementwiseLowering:
    """A function of floats in CUDA's library."""
    text = ", ".join([f"{{{k}}}" for k in range(operands)])
    return ElementwiseLowering(weight, op, triton={"f": f"fm.{name}({text})"})


def _extremum(name: str, of_booleans: str) -> ElementwiseLowering:
    return ElementwiseLowering(triton={
        "f": f"tl.{name}({{0}}, {{1}}, propagate_nan=tl.PropagateNan.ALL)",
        **dict.fromkeys("iu", f"tl.{name}({{0}}, {{1}})"), "b": f"{{0}} {of_booleans} {{1}}"})


def _shift(value: str) -> ElementwiseLowering:
    """0 for a count that is no place of the number."""
    return ElementwiseLowering(triton=f"tl.where(({{1}} >= 0) & ({{1}} < {{bits}}), {value}, 0)")


_UNSIGNED = "tl.uint{bits}, bitcast=True"
_SIGNED = "tl.int{bits}, bitcast=True"
_T = TRANSCENDENTAL

BY_PASSES: Mapping[Primitive, str] = dict.fromkeys(
    (masked_mul_p, masked_div_p), "a pass writes it as a selection")

ELEMENTWISE = ElementwiseTable({
    add_any_p: _operator("+", op="add"),
    a.add_p: _operator("+"), a.sub_p: _operator("-"), a.mul_p: _operator("*"),
    fma_p: ElementwiseLowering(triton={"f": "tl.fma({0}, {1}, {2})"}),
    # Triton writes 0 - x for -x, which has no -0
    a.neg_p: ElementwiseLowering(triton={"f": "{0} * -1.0", **dict.fromkeys("iub", "-{0}")}),
    a.abs_p: ElementwiseLowering(triton={"u": "{0}", **dict.fromkeys("fib", "tl.abs({0})")}),
    a.max_p: _extremum("maximum", "|"), a.min_p: _extremum("minimum", "&"),
    a.sign_p: ElementwiseLowering(triton="fm.sign({0})"),
    a.floor_p: _function("floor"), a.ceil_p: _function("ceil"), a.trunc_p: _function("trunc"),
    a.round_p: _function("rint", op="round_even"),
    a.nextafter_p: _function("nextafter", operands=2),
    c.and_p: _operator("&"), c.or_p: _operator("|"), c.xor_p: _operator("^"),
    c.not_p: ElementwiseLowering(triton={"b": "{0} == 0", **dict.fromkeys("fiu", "~{0}")}),
    c.shift_left_p: _shift("{0} << {1}"),
    c.shift_right_logical_p: _shift(
        f"({{0}}.to({_UNSIGNED}) >> {{1}}.to({_UNSIGNED})).to({{own}}, bitcast=True)"),
    c.shift_right_arithmetic_p: ElementwiseLowering(triton=(
        f"({{0}}.to({_SIGNED}) >> tl.where(({{1}} >= 0) & ({{1}} < {{bits}}), {{1}}, {{last}})"
        f".to({_SIGNED})).to({{own}}, bitcast=True)")),
    c.population_count_p: ElementwiseLowering(triton="fm.population_count({0}, {bits})"),
    c.clz_p: ElementwiseLowering(triton="fm.clz({0}, {bits})"),
    c.eq_p: _test("=="), c.ne_p: _test("!="), c.lt_p: _test("<"), c.le_p: _test("<="),
    c.gt_p: _test(">"), c.ge_p: _test(">="),
    c.is_finite_p: ElementwiseLowering(is_test=True, triton="(tl.abs({0}) < float('inf'))"),
    a.div_p: ElementwiseLowering(DIVISION, triton={
        "f32": "fm.divide({0}, {1})", "f64": "({0} / {1})",
        **dict.fromkeys("iub", "fm.int_div({0}, {1})")}),
    a.rem_p: ElementwiseLowering(DIVISION, triton={
        "f": "fm.fmod({0}, {1})", **dict.fromkeys("iub", "fm.int_rem({0}, {1})")}),
    t.sqrt_p: ElementwiseLowering(DIVISION, triton={
        "f32": "fm.square_root({0})", "f64": "fm.sqrt({0})"}),
    t.rsqrt_p: _function("rsqrt", DIVISION),
    t.exp_p: _function("exp", _T), t.exp2_p: _function("exp2", _T),
    t.expm1_p: _function("expm1", _T), a.log_p: _function("log", _T),
    t.log1p_p: _function("log1p", _T), t.sin_p: _function("sin", _T), t.cos_p: _function("cos", _T),
    t.tan_p: _function("tan", _T), t.asin_p: _function("asin", _T),
    t.acos_p: _function("acos", _T), t.atan_p: _function("atan", _T),
    t.atan2_p: _function("atan2", _T, 2), t.sinh_p: _function("sinh", _T),
    t.cosh_p: _function("cosh", _T), t.tanh_p: _function("tanh", _T),
    t.asinh_p: _function("asinh", _T), t.acosh_p: _function("acosh", _T),
    t.atanh_p: _function("atanh", _T), t.logistic_p: _function("logistic", _T),
    t.erf_p: _function("erf", _T), t.erfc_p: _function("erfc", _T),
    t.erf_inv_p: _function("erfinv", _T), a.pow_p: _function("pow", _T, 2),
    t.cbrt_p: _function("cbrt", _T),
    t.lgamma_p: _function("lgamma", SPECIAL), t.digamma_p: _function("digamma", SPECIAL),
    bessel_i0e_p: ElementwiseLowering(SERIES, expression=special.bessel_i0e),
    bessel_i1e_p: ElementwiseLowering(SERIES, expression=special.bessel_i1e),
    igamma_p: _function("igamma", SERIES, 2), igammac_p: _function("igammac", SERIES, 2),
    random_gamma_grad_p: _function("random_gamma_grad", SERIES, 2),
    zeta_p: _function("zeta", SERIES, 2),
}, without={
    a.integer_pow_p: "its exponent decides how many products it is",
    t.polygamma_p: "its order decides how many terms it is",
    **dict.fromkeys((a.real_p, a.imag_p, a.complex_p, a.conj_p),
                    "of complex numbers kernels see the parts"),
    **BY_PASSES,
})


# --- rules: each element from the elements of the operands at the same index

Rule = Callable[[Equation, list[Tensor]], "list[Tensor] | None"]
"""The tensors of an equation's results, or None where compiled code does not know how."""

def pointwise(eqn: Equation, xs: list[Tensor], weight: int,
              define: Callable[..., Expr]) -> list[Tensor]:
    """The result of an equation as `define(builder, *elements of the operands)`."""
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    return [_at_each_index(eqn, xs, dtype, weight, lambda s, i: define(s, *s.elements(xs, i)))]


def _operation(eqn: Equation, xs: list[Tensor], weight: int, op: str,
               is_test: bool = False) -> list[Tensor]:
    """The result of an equation as one operation on the elements of the operands."""
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    return [_at_each_index(eqn, xs, dtype, weight,
                           operation(op, xs, "bool" if is_test else None))]


def _at_each_index(eqn: Equation, xs: list[Tensor], dtype: str, weight: int,
                   define: Define) -> Map:
    out = Map(eqn.outvars[0].aval.shape, dtype, xs, define, weight=weight, source=eqn.source)
    out.pointwise = True
    return out


def rule_of(primitive: Primitive) -> Rule:
    """The rule of a primitive that has an entry in `ELEMENTWISE`."""
    lowering = ELEMENTWISE[primitive]
    op = lowering.op or primitive.name
    dtype = "bool" if lowering.is_test else None

    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        if lowering.expression is not None:
            return pointwise(eqn, xs, lowering.weight, lowering.expression)
        if dtype and any(x.compute != x.dtype for x in xs):
            return pointwise(eqn, xs, lowering.weight, lambda s, *e: s.op(
                op, *[rounded(s, v, x.dtype) for v, x in zip(e, xs)], dtype=dtype))
        return _operation(eqn, xs, lowering.weight, op, lowering.is_test)

    return rule


def rounded(s: ExprBuilder, x: Expr, dtype: str, depth: int = 3) -> Expr:
    """A value as memory has it: of a half it is not that of registers, which has more digits.

    What is compared is rounded first. Whether x is the maximum that another kernel has stored, or
    one of two equal values, is else decided by digits that memory does not have.
    """
    return x if compute_dtype(dtype) == dtype or _is_rounded(x, dtype, depth) else \
        s.op("round_to", x, aux=dtype)


def _is_rounded(x: Expr, dtype: str, depth: int) -> bool:
    if x.op in ("const", "round_to"):
        return x.op == "const" or x.aux == dtype
    if x.op == "load":
        return bool(x.aux[0].dtype == dtype)
    if depth and x.op in ("max", "min", "neg", "abs", "select"):
        return all(_is_rounded(a, dtype, depth - 1) for a in x.args[x.op == "select":])
    return False


def _integer_pow(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    exponent = eqn.params["y"]
    if (xs[0].dtype[0] != "f" and xs[0].dtype != "bf16" and exponent < 0) or abs(exponent) > 64:
        return None

    def define(s: ExprBuilder, x: Expr) -> Expr:
        one = s.const(np.ones((), np.int64), x.dtype)
        power, square, n = one, x, abs(exponent)
        while n:
            if n & 1:
                power = square if power is one else s.op("mul", power, square)
            n >>= 1
            if n:
                square = s.op("mul", square, square)
        return s.op("div", one, power) if exponent < 0 else power

    return pointwise(eqn, xs, 2, define)


def _polygamma(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    n: int = eqn.params["n"]
    if n > special.MOST_ORDER:
        return None
    return pointwise(eqn, xs, SERIES + 8 * n, special.polygamma(n))


def convert(s: ExprBuilder, x: Expr, dtype: str) -> Expr:
    """An element converted to `dtype` (of memory: halves are rounded)."""
    target = compute_dtype(dtype)
    if x.dtype != target:
        x = s.op("convert", x, dtype=target)
    return s.op("round_to", x, aux=dtype) if target != dtype else x


def _convert(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    assert dtype is not None
    (out,) = found = pointwise(eqn, xs, 1, lambda s, x: convert(s, x, dtype))
    if isinstance(out, Map):
        out.converts = True
    return found


def _select_n(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    which, *cases = xs
    if len(cases) == 1:
        return [cases[0]]
    if len(cases) == 2 and which.dtype == "bool":
        return pointwise(eqn, xs, 1, lambda s, w, a, b: s.op("select", w, b, a, dtype=a.dtype))

    def define(s: ExprBuilder, w: Expr, *values: Expr) -> Expr:
        out = values[-1]
        for k in range(len(values) - 2, -1, -1):  # numbers out of range choose the nearest case
            here = s.op("le", w, s.const(np.int32(k), w.dtype), dtype="bool")
            out = s.op("select", here, values[k], out, dtype=out.dtype)
        return out

    return pointwise(eqn, xs, len(cases), define)


def _clamp(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    return pointwise(eqn, xs, 2, lambda s, lo, x, hi: s.op("min", s.op("max", x, lo), hi))


def _same(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    return list(xs)


def _barrier(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    """Where the last operand comes first the others are views, which tell that."""
    if not eqn.params.get("last_first"):
        return list(xs)
    return [*[Later(x, xs[-1]) for x in xs[:-1]], xs[-1]]


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def _threefry2x32(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    def pair(s: ExprBuilder, index: tuple[Index, ...]) -> tuple[Expr, Expr]:
        k0, k1, x0, x1 = s.elements(xs, index)
        parity = s.const(np.uint32(PARITY), "u32")
        keys = (k0, k1, s.op("xor", s.op("xor", k0, k1), parity))
        x0, x1 = s.op("add", x0, k0), s.op("add", x1, k1)
        for i in range(5):
            for r in ROTATIONS[i % 2]:
                x0 = s.op("add", x0, x1)
                x1 = s.op("xor", s.op("rotate_left", x1, aux=r), x0)
            x0 = s.op("add", x0, keys[(i + 1) % 3])
            x1 = s.op("add", s.op("add", x1, keys[(i + 2) % 3]), s.const(np.uint32(i + 1), "u32"))
        return x0, x1

    shape = eqn.outvars[0].aval.shape
    repeats = bool(shape)
    return [Map(shape, "u32", xs, lambda s, i: pair(s, i)[0], weight=80, repeats=repeats,
                source=eqn.source),
            Map(shape, "u32", xs, lambda s, i: pair(s, i)[1], weight=80, repeats=repeats,
                source=eqn.source)]


MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)


def _philox4x32(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    def block(s: ExprBuilder, index: tuple[Index, ...]) -> tuple[Expr, ...]:
        *keys, a, b, c, d = s.elements(xs, index)
        factors = [s.const(np.uint32(m), "u32") for m in MULTIPLIERS]
        steps = [s.const(np.uint32(w), "u32") for w in WEYL]
        for i in range(10):
            if i:
                keys = [s.op("add", k, step) for k, step in zip(keys, steps, strict=True)]
            first, second = ((s.op("mul_high", x, f), s.op("mul_low", x, f))
                             for x, f in zip((a, c), factors, strict=True))
            a, b = s.op("xor", s.op("xor", second[0], b), keys[0]), second[1]
            c, d = s.op("xor", s.op("xor", first[0], d), keys[1]), first[1]
        return a, b, c, d

    def word(k: int) -> Map:  # of a block of 80, which readers of all four share
        shape = eqn.outvars[0].aval.shape
        return Map(shape, "u32", xs, lambda s, i: block(s, i)[k], weight=20, repeats=bool(shape),
                   source=eqn.source)

    return [word(k) for k in range(4)]


def _real_only(eqn: Equation, xs: list[Tensor]) -> Any:
    return [xs[0]]  # of a real operand: complex ones go to the host


RULES: dict[Primitive, Rule] = {
    **{p: rule_of(p) for p in ELEMENTWISE},
    integer_pow_p: _integer_pow,
    t.polygamma_p: _polygamma,
    convert_element_type_p: _convert,
    select_n_p: _select_n,
    clamp_p: _clamp,
    copy_p: _same,
    stop_gradient_p: _same,
    checkpoint_name_p: _same,
    optimization_barrier_p: _barrier,
    real_p: _real_only,
    conj_p: _real_only,
    threefry2x32_p: _threefry2x32,
    philox4x32_p: _philox4x32,
}
