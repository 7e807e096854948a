"""What kernels need to know of each elementwise primitive, in one entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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

__all__ = ["BY_PASSES", "CHEAP", "ELEMENTWISE", "ON_HOST", "ElementwiseLowering", "weight_of"]

# What one element costs, in additions of a vector: measured on AVX-512 in float32.
CHEAP, DIVISION, TRANSCENDENTAL, SPECIAL = 1, 4, 12, 40

ON_HOST: Mapping[Primitive, str] = dict.fromkeys(
    (igamma_p, igammac_p, random_gamma_grad_p, zeta_p, bessel_i0e_p, bessel_i1e_p, t.polygamma_p),
    "NumPy computes it on the host: no kernel has its series")
"""Elementwise primitives without a kernel, and why."""
BY_PASSES: Mapping[Primitive, str] = dict.fromkeys(
    (masked_mul_p, masked_div_p), "a pass writes it as a selection")


@dataclass(frozen=True)
class ElementwiseLowering:
    """How an elementwise primitive is computed: as one operation of the loop language.

    `weight`: what one element costs, in additions. `op`: the operation, by default of the
    primitive's name. `is_test`: the result is a boolean, told from operands as memory has them.
    """

    weight: int = CHEAP
    op: str = ""
    is_test: bool = False


_TEST = ElementwiseLowering(is_test=True)
_SIMPLE = ElementwiseLowering()
_DIVISION = ElementwiseLowering(DIVISION)
_TRANSCENDENTAL = ElementwiseLowering(TRANSCENDENTAL)
_SPECIAL = ElementwiseLowering(SPECIAL)

ELEMENTWISE: Table[ElementwiseLowering] = Table({
    **dict.fromkeys((
        a.add_p, a.sub_p, a.mul_p, a.neg_p, a.abs_p, a.max_p, a.min_p, a.sign_p, a.floor_p,
        a.ceil_p, a.trunc_p, a.nextafter_p, c.and_p, c.or_p, c.xor_p, c.not_p, c.shift_left_p,
        c.shift_right_logical_p, c.shift_right_arithmetic_p, c.population_count_p, c.clz_p),
        _SIMPLE),
    add_any_p: ElementwiseLowering(op="add"),
    a.round_p: ElementwiseLowering(op="round_even"),
    **dict.fromkeys((c.eq_p, c.ne_p, c.lt_p, c.le_p, c.gt_p, c.ge_p, c.is_finite_p), _TEST),
    **dict.fromkeys((a.div_p, a.rem_p, t.sqrt_p, t.rsqrt_p), _DIVISION),
    **dict.fromkeys((
        t.exp_p, t.exp2_p, t.expm1_p, a.log_p, t.log1p_p, t.sin_p, t.cos_p, t.tan_p, t.asin_p,
        t.acos_p, t.atan_p, t.atan2_p, t.sinh_p, t.cosh_p, t.tanh_p, t.asinh_p, t.acosh_p,
        t.atanh_p, t.logistic_p, t.erf_p, t.erfc_p, t.erf_inv_p, a.pow_p, t.cbrt_p),
        _TRANSCENDENTAL),
    **dict.fromkeys((t.lgamma_p, t.digamma_p), _SPECIAL),
}, of=Elementwise, without={
    a.integer_pow_p: "its exponent decides how many products it is",
    **dict.fromkeys((a.real_p, a.imag_p, a.complex_p, a.conj_p),
                    "of complex numbers kernels see the parts"),
    **BY_PASSES, **ON_HOST,
})

OPERATIONS: Mapping[str, ElementwiseLowering] = {
    lowering.op or p.name: lowering for p, lowering in ELEMENTWISE.items()}


def weight_of(op: str) -> int:
    """What an operation of the loop language costs, in additions."""
    found = OPERATIONS.get(op)
    return CHEAP if found is None else found.weight
