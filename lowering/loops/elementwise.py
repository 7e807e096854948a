"""What kernels need to know of each elementwise primitive, in one entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from functrans.core.primitive import Primitive
from functrans.core.table import Table
from functrans.primitives import arithmetic as a
from functrans.primitives import compare as c
from functrans.primitives import transcendental as t
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    igamma_p,
    igammac_p,
    random_gamma_grad_p,
    zeta_p,
)

__all__ = ["BY_PASSES", "CHEAP", "DIVISION", "ELEMENTWISE", "ON_HOST", "SPECIAL", "TRANSCENDENTAL",
           "ElementwiseLowering", "ElementwiseTable"]

# What one element costs, in additions of a vector: measured on AVX-512 in float32.
CHEAP, DIVISION, TRANSCENDENTAL, SPECIAL = 1, 4, 12, 40


@dataclass(frozen=True)
class ElementwiseLowering:
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

ON_HOST: Mapping[Primitive, str] = dict.fromkeys(
    (igamma_p, igammac_p, random_gamma_grad_p, zeta_p, bessel_i0e_p, bessel_i1e_p, t.polygamma_p),
    "NumPy computes it on the host: no kernel has its series")
"""Elementwise primitives without a kernel, and why."""
BY_PASSES: Mapping[Primitive, str] = dict.fromkeys(
    (masked_mul_p, masked_div_p), "a pass writes it as a selection")

ELEMENTWISE = ElementwiseTable({
    add_any_p: _operator("+", op="add"),
    a.add_p: _operator("+"), a.sub_p: _operator("-"), a.mul_p: _operator("*"),
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
        "f32": "tl.div_rn({0}, {1})", "f64": "({0} / {1})",
        **dict.fromkeys("iub", "fm.int_div({0}, {1})")}),
    a.rem_p: ElementwiseLowering(DIVISION, triton={
        "f": "fm.fmod({0}, {1})", **dict.fromkeys("iub", "fm.int_rem({0}, {1})")}),
    t.sqrt_p: ElementwiseLowering(DIVISION, triton={
        "f32": "tl.sqrt_rn({0})", "f64": "fm.sqrt({0})"}),
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
}, without={
    a.integer_pow_p: "its exponent decides how many products it is",
    **dict.fromkeys((a.real_p, a.imag_p, a.complex_p, a.conj_p),
                    "of complex numbers kernels see the parts"),
    **BY_PASSES, **ON_HOST,
})
