"""Operations that say something to transforms only, or that are two simpler ones.

The loop language has every elementwise operation, so this table stays small.
"""

from __future__ import annotations

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.arithmetic import add_p, div_p, max_p, min_p, mul_p
from functrans.primitives.barrier import (
    checkpoint_name_p,
    optimization_barrier_p,
    stop_gradient_p,
)
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p
from functrans.primitives.compare import clamp_p, eq_p, select_n_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.shape import copy_p

DECOMPOSE = RewriteTable("decompose")
rule = DECOMPOSE.rule


@rule(copy_p, checkpoint_name_p, stop_gradient_p, law="an identity is its operand")
def identity(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x


@rule(add_any_p, of=(Literal, broadcast_in_dim_p),
      law="0 + x = x (the sign of a zero cotangent is not kept)")
def cotangent_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    for a, b in ((x, y), (y, x)):
        value = r.constant(a)
        if value is not None and value == 0:
            return b
    return None


@rule(add_any_p, law="a sum of cotangents is a sum")
def sum_of_cotangents(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return r(add_p, x, y)


@rule(clamp_p, law="clamp(lo, x, hi) = min(max(x, lo), hi)")
def limits(r: Rewriter, eqn: Equation, low: Atom, x: Atom, high: Atom) -> Results:
    return r.shaped(r(min_p, r(max_p, x, low), high), x.aval)


@rule(masked_mul_p, law="a masked product is a product, and 0 where its first factor is")
def masked_product(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return _masked(r, eqn, x, r(mul_p, x, y))


@rule(masked_div_p, law="a masked quotient is a quotient, and 0 where its dividend is")
def masked_quotient(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return _masked(r, eqn, x, r(div_p, x, y))


def _masked(r: Rewriter, eqn: Equation, x: Atom, result: Atom) -> Results:
    aval = eqn.outvars[0].aval
    nothing = r(full_p, shape=aval.shape, dtype=aval.dtype, value=0)
    zero = r.intern(Literal(x.aval.dtype.type(0), ShapedArray((), x.aval.dtype)))
    is_zero = r(eq_p, x, zero)
    return r(select_n_p, is_zero, result, nothing)


@rule(reduce_sum_p, law="a sum of booleans is true where any of them is")
def sum_of_booleans(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    if dtypes.kind(x.aval.dtype) != "b":
        return None
    return r(reduce_or_p, x, axes=eqn.params["axes"])


@rule(optimization_barrier_p, law="a literal needs no barrier")
def barrier_of_literals(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    rest = tuple(x for x in operands if type(x) is not Literal)
    if len(rest) == len(operands) and operands:
        return None
    outs = iter(r.emit(eqn.replace(
        invars=rest, outvars=tuple(v for x, v in zip(operands, eqn.outvars, strict=True)
                                   if type(x) is not Literal)))) if rest else iter(())
    return tuple([x if type(x) is Literal else next(outs) for x in operands])
