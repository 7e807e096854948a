"""What primitives do with NaN and infinities: which they make, which they hand on, which they hide.

A value is seen through three bits: it has a NaN, +infinity or -infinity somewhere. What is handed
on to a value that is checked need not be checked itself, so most values of a program are not.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.core.table import Table
from functrans.primitives.arithmetic import (
    abs_p,
    add_p,
    ceil_p,
    complex_p,
    conj_p,
    div_p,
    floor_p,
    imag_p,
    integer_pow_p,
    log_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    real_p,
    rem_p,
    round_p,
    sign_p,
    sub_p,
    trunc_p,
)
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.fused import fma_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.reduce import reduce_max_p, reduce_min_p, reduce_prod_p
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)
from functrans.primitives.sort import sort_p, top_k_p
from functrans.primitives.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cbrt_p,
    cos_p,
    cosh_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    logistic_p,
    rsqrt_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)

__all__ = ["ALL", "INFINITE", "NAN", "NEGATIVE", "NOTHING", "POSITIVE", "NonfinitePropagation",
           "bits_of",
           "constant_bits", "is_barrier", "is_floating", "keeps_nan",
           "literal_bits", "moves", "propagation_of"]

NOTHING, NAN, POSITIVE, NEGATIVE = 0, 1, 2, 4
INFINITE: Final = POSITIVE | NEGATIVE
ALL: Final = NAN | INFINITE
_LETTERS: Final = {"n": NAN, "p": POSITIVE, "m": NEGATIVE}


class BitTransfer(NamedTuple):
    """What becomes of each bit of an operand: the bits it may become, and which may vanish."""

    nan: int
    positive: int
    negative: int
    vanishing: int

    def may_become(self, bits: int) -> int:
        """The bits that a result may have because an operand has these."""
        return ((self.nan if bits & NAN else 0) | (self.positive if bits & POSITIVE else 0)
                | (self.negative if bits & NEGATIVE else 0))

    def covered(self, cover: int) -> int:
        """The bits of an operand that are sure to be seen where those of the result are."""
        seen = NOTHING
        for bit, becomes in ((NAN, self.nan), (POSITIVE, self.positive),
                             (NEGATIVE, self.negative)):
            if not self.vanishing & bit and not becomes & ~cover:
                seen |= bit
        return seen


class NonfinitePropagation(NamedTuple):
    """What an operation makes of finite operands, and what it does with each operand's bits."""

    makes: int
    operands: tuple[BitTransfer, ...]

    def operand(self, i: int) -> BitTransfer:
        return self.operands[min(i, len(self.operands) - 1)]


def _transfer_function(text: str) -> BitTransfer:
    """Read `n>n p>pn m>?`: NaN stays, +inf stays or becomes NaN, -inf may vanish."""
    becomes = dict.fromkeys("npm", 0)
    vanishing = 0
    for item in text.split():
        bit, _, result = item.partition(">")
        if result.endswith("?"):
            vanishing |= _LETTERS[bit]
        for letter in result.rstrip("?"):
            becomes[bit] |= _LETTERS[letter]
    return BitTransfer(becomes["n"], becomes["p"], becomes["m"], vanishing)


def _propagation(makes: str, *operands: str) -> NonfinitePropagation:
    return NonfinitePropagation(sum([_LETTERS[c] for c in makes]),
                                tuple(map(_transfer_function, operands)))


_SAME = "n>n p>p m>m"
_PART = "n>n? p>p? m>m?"
_SUM = "n>n p>pn m>mn"
_DIFFERENCE = "n>n p>mn m>pn"
_PRODUCT = "n>n p>pmn m>pmn"
_BOUNDED = "n>n p>? m>?"
_PERIODIC = "n>n p>n m>n"
_UNKNOWN = "n>npm? p>npm? m>npm?"
_HIDDEN = "n>? p>? m>?"

_MOVEMENT: Final = frozenset((
    reshape_p, transpose_p, broadcast_in_dim_p, rev_p, concatenate_p,
    copy_p, checkpoint_name_p, stop_gradient_p, sort_p, optimization_barrier_p, slice_p,
    dynamic_slice_p, gather_p, pad_p, select_n_p, dynamic_update_slice_p, scatter_p, top_k_p,
    constant_p, full_p, iota_p, real_p, imag_p, complex_p, conj_p))

_TABLE: Table[NonfinitePropagation] = Table({
    **dict.fromkeys((reshape_p, transpose_p, broadcast_in_dim_p, rev_p,
                     concatenate_p, copy_p, checkpoint_name_p, stop_gradient_p, sort_p,
                     floor_p, ceil_p, trunc_p, round_p, cbrt_p, asinh_p), _propagation("", _SAME)),
    **dict.fromkeys((slice_p, dynamic_slice_p, gather_p, top_k_p), _propagation("", _PART)),
    pad_p: _propagation("", _PART, _PART),
    select_n_p: _propagation("", _HIDDEN, _PART),
    dynamic_update_slice_p: _propagation("", _PART, _SAME, _HIDDEN),
    scatter_p: _propagation("", _PART, _HIDDEN, _PART),
    scatter_add_p: _propagation("pm", _SUM, _HIDDEN, "n>n? p>pn? m>mn?"),
    **dict.fromkeys((constant_p, full_p, iota_p), _propagation("")),
    neg_p: _propagation("", "n>n p>m m>p"),
    abs_p: _propagation("", "n>n p>p m>p"),
    **dict.fromkeys((add_p, add_any_p, reduce_sum_p, cumsum_p), _propagation("pm", _SUM)),
    sub_p: _propagation("pm", _SUM, _DIFFERENCE),
    fma_p: _propagation("pm", _PRODUCT, _PRODUCT, _SUM),
    **dict.fromkeys((mul_p, reduce_prod_p, cumprod_p), _propagation("pm", _PRODUCT)),
    dot_general_p: _propagation("npm", _PRODUCT),
    div_p: _propagation("npm", _PRODUCT, _BOUNDED),
    rem_p: _propagation("n", _PERIODIC, _BOUNDED),
    masked_mul_p: _propagation("pm", _PRODUCT, "n>n? p>pmn? m>pmn?"),
    masked_div_p: _propagation("pm", _PRODUCT, "n>n? p>? m>?"),
    **dict.fromkeys((max_p, reduce_max_p, cummax_p), _propagation("", "n>n p>pn m>mn?")),
    **dict.fromkeys((min_p, reduce_min_p, cummin_p), _propagation("", "n>n p>pn? m>mn")),
    clamp_p: _propagation("", _PART, "n>n p>p? m>m?", _PART),
    **dict.fromkeys((sign_p, atan_p, tanh_p, logistic_p, erf_p, erfc_p, atan2_p),
                    _propagation("", _BOUNDED)),
    **dict.fromkeys((exp_p, exp2_p, expm1_p), _propagation("p", "n>n p>p m>?")),
    **dict.fromkeys((log_p, log1p_p), _propagation("nm", "n>n p>p m>n")),
    sqrt_p: _propagation("n", "n>n p>p m>n"),
    rsqrt_p: _propagation("np", "n>n p>? m>n"),
    **dict.fromkeys((sin_p, cos_p, tan_p), _propagation("", _PERIODIC)),
    **dict.fromkeys((asin_p, acos_p), _propagation("n", _PERIODIC)),
    **dict.fromkeys((atanh_p, erf_inv_p), _propagation("npm", _PERIODIC)),
    sinh_p: _propagation("pm", _SAME),
    cosh_p: _propagation("p", "n>n p>p m>p"),
    acosh_p: _propagation("n", "n>n p>p m>n"),
}, otherwise="it may make, hand on and hide NaN and infinities")
_OTHER = _propagation("npm", _UNKNOWN)
_MOVING, _SPREADING, _HIDING = _propagation("", _SAME), _propagation("pm", _SAME), _propagation(
    "", _HIDDEN)
_POWERS = {True: _propagation("pm", "n>n p>p m>pm"), False: _propagation("pm", _BOUNDED)}


def is_floating(atom: Atom) -> bool:
    """Whether a value has NaN and infinities."""
    return dtypes.kind(atom.aval.dtype) in "fc"


def moves(eqn: Equation) -> bool:
    """Whether an equation only rearranges, chooses or writes down values."""
    return eqn.primitive in _MOVEMENT


def keeps_nan(eqn: Equation) -> bool:
    """Whether a NaN of an operand is no NaN that the equation computes."""
    return moves(eqn) or eqn.primitive is convert_element_type_p


def propagation_of(eqn: Equation) -> NonfinitePropagation:
    """What an equation does with NaN and infinities; the worst where that is not known."""
    primitive = eqn.primitive
    if primitive is integer_pow_p:
        exponent = eqn.params["y"]
        return _POWERS[exponent > 0] if exponent else _HIDING
    if any(dtypes.kind(v.aval.dtype) == "c" for v in (*eqn.invars, *eqn.outvars)) \
            or any(isinstance(n, int) and n == 0 for v in eqn.outvars for n in v.aval.shape):
        return _OTHER
    if primitive is convert_element_type_p:
        return _conversion(eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype)
    return _TABLE.get(primitive, _OTHER)


def _conversion(old: np.dtype[Any], new: np.dtype[Any]) -> NonfinitePropagation:
    if dtypes.kind(new) in "biu":
        return _HIDING
    if new.itemsize == 1 or (old.itemsize == 1 and dtypes.kind(old) == "f"):
        return _OTHER  # 8-bit floats, some of which have no infinities
    if dtypes.kind(old) in "biu":
        return _SPREADING if new == np.float16 else _MOVING
    return _MOVING if dtypes.finfo(new).max >= dtypes.finfo(old).max else _SPREADING


def is_barrier(eqn: Equation) -> bool:
    """Whether the elements of result i are those of operand i, for all i."""
    return eqn.primitive is optimization_barrier_p or eqn.primitive is sort_p


def bits_of(x: np.ndarray[Any, Any]) -> int:
    """Which bits the elements of an array have."""
    kind = dtypes.kind(x.dtype)
    if kind not in "fc" or not x.size:
        return NOTHING
    if kind == "c":
        x = x.astype(dtypes.computed_dtype(x.dtype), copy=False)
        return bits_of(np.real(x)) | bits_of(np.imag(x))
    if x.dtype.kind != "f":  # of ml_dtypes
        x = x.astype(np.float32)
    if np.isfinite(x).all():
        return NOTHING
    return ((NAN if np.isnan(x).any() else 0) | (POSITIVE if (x == np.inf).any() else 0)
            | (NEGATIVE if (x == -np.inf).any() else 0))


def constant_bits(eqn: Equation) -> int:
    """The bits that a program writes down itself: those of its constants and fill values."""
    if eqn.primitive is full_p:
        return bits_of(np.asarray(eqn.params["value"]))
    if eqn.primitive is constant_p:
        return bits_of(np.asarray(eqn.params["value"].value))
    if eqn.primitive is gather_p and eqn.params["mode"] is GatherScatterMode.FILL_OR_DROP:
        fill = eqn.params.get("fill_value")
        return NAN if fill is None else bits_of(np.asarray(fill))
    return NOTHING


def literal_bits(atom: Literal) -> int:
    """The bits of a literal."""
    return bits_of(np.asarray(atom.value)) if is_floating(atom) else NOTHING
