"""Constant folding: a scalar operation on literals is the literal of its value.

Values come from the reference evaluation. Arrays are never made: what repeats or counts, such as
`broadcast_in_dim` of a literal and `iota`, stays an operation, which costs nothing where it is
read, and `full` becomes the first of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Literal
from functrans.core.primitive import Primitive
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.callback import pure_callback_p
from functrans.primitives.shape import iota_p

CONSTANT_FOLDING = RewriteTable("fold")


@CONSTANT_FOLDING.rule(full_p, law="full(c) = broadcast(c)")
def repeated_literal(r: Rewriter, eqn: Equation) -> Results:
    dtype, value = eqn.params["dtype"], eqn.params["value"]
    if dtypes.kind(dtype) == "0":
        return None
    scalar = np.full((), value, dtype)[()]
    literal = r.intern(Literal(scalar, ShapedArray((), dtype)))
    return r.shaped(literal, eqn.outvars[0].aval)


@CONSTANT_FOLDING.rule(constant_p, law="a constant of one element is a literal")
def scalar_constant(r: Rewriter, eqn: Equation) -> Results:
    value = np.asarray(eqn.params["value"].value)
    if value.shape or dtypes.kind(value.dtype) == "0":
        return None
    return r.intern(Literal(value[()], eqn.outvars[0].aval))


@CONSTANT_FOLDING.rule(iota_p, law="counting one element gives 0")
def count_of_one(r: Rewriter, eqn: Equation) -> Results:
    if eqn.params["shape"][eqn.params["dimension"]] != 1:
        return None
    return r.full(0, eqn.outvars[0].aval)


@CONSTANT_FOLDING.rule(Primitive, of=Literal, law="f(literals) = literal")
def value_of_literals(r: Rewriter, eqn: Equation, *operands: Any) -> Results:
    if not operands:
        return None
    for a in operands:
        if type(a) is not Literal:
            return None
    primitive = eqn.primitive
    if any(v.aval.shape or dtypes.kind(v.aval.dtype) == "0" for v in eqn.outvars) \
            or primitive.higher_order or primitive.collective or primitive is pure_callback_p:
        return None
    values = primitive.run(*[np.asarray(a.value) for a in operands], **eqn.params)
    values = values if primitive.multiple_results else [values]
    return tuple([r.intern(Literal(np.asarray(value, v.aval.dtype)[()], v.aval))
                  for value, v in zip(values, eqn.outvars, strict=True)])
