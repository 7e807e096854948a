"""Derivative rules of operations that users define, under the names of `jax.interpreters.ad`.

`primitive_jvps[p]` is `rule(primals, tangents, **params) -> (outs, out_tangents)`, in which a
tangent may be a `Zero`; `primitive_transposes[p]` is `rule(cotangent, *operands, **params)`, where
linear operands are `UndefinedPrimal`, and gives a cotangent for each of these and None for others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import get_aval
from functrans.core.errors import publish
from functrans.core.primitive import HigherOrder, Linear, Primitive
from functrans.extend.user_primitive import UndefinedPrimal, UserPrimitive, Zero
from functrans.interpreters.tables import RuleTable
from functrans.primitives.base import zeros
from functrans.primitives.differentiable import add_any as add_jaxvals
from functrans.primitives.differentiable import add_any_p as add_jaxvals_p
from functrans.transforms.jvp import JVPTrace, JVPTracer
from functrans.transforms.tangents import tangent_aval

__all__ = ["JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p",
           "add_tangents", "defbilinear", "defjvp", "defjvp2", "deflinear", "deflinear2",
           "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
           "primitive_jvps", "primitive_transposes", "zeros_like_aval"]

Rule = Callable[..., Any]


def is_undefined_primal(x: Any) -> bool:
    """Whether an operand is the linear one of a transposition, which has no value."""
    return isinstance(x, UndefinedPrimal)


def zeros_like_aval(aval: Any) -> Any:
    """Zeros of a type."""
    return zeros(aval)


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent as an array, also where it is a `Zero`."""
    return tangent.instantiate() if isinstance(tangent, Zero) else tangent


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, each of which may be a `Zero`."""
    if isinstance(x, Zero) or isinstance(y, Zero):
        return y if isinstance(x, Zero) else x
    return add_jaxvals(x, y)


def _jvp_of_ours(primitive: Primitive) -> Rule | None:
    if isinstance(primitive, HigherOrder):
        return None

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        given = [None if isinstance(t, Zero) else t for t in tangents]
        outs, found = primitive.jvp(list(primals), given, **params)
        if primitive.multiple_results:
            return outs, [_zero_for_none(t, o) for t, o in zip(found, outs, strict=True)]
        return outs, _zero_for_none(found, outs)

    return rule


def _transpose_of_ours(primitive: Primitive) -> Rule | None:
    if isinstance(primitive, HigherOrder) or primitive.transpose is None:
        return None

    def rule(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        if isinstance(ct, Zero):
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        given = [Linear(x.aval) if is_undefined_primal(x) else x for x in operands]
        found = primitive.transpose(ct, *given, **params)
        return [Zero(x.aval) if c is None and is_undefined_primal(x) else c
                for c, x in zip(found, operands, strict=False)]

    return rule


def _zero_for_none(tangent: Any, of: Any) -> Any:
    return Zero(tangent_aval(get_aval(of))) if tangent is None else tangent


primitive_jvps = RuleTable("ad.primitive_jvps", "jvp", _jvp_of_ours)
primitive_transposes = RuleTable("ad.primitive_transposes", "transpose", _transpose_of_ours)


def get_primitive_transpose(p: Primitive) -> Rule:
    """The transpose rule of a primitive; raises MissingRuleError where it has none."""
    return p.rule("transpose") if isinstance(p, UserPrimitive) else primitive_transposes[p]


def deflinear2(primitive: UserPrimitive, transpose_rule: Rule) -> None:
    """An operation linear in all operands together, with `rule(cotangent, *operands, **params)`.

    The rule gives a cotangent for each operand.
    """
    def push(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs = primitive.bind(*primals, **params)
        if all(isinstance(t, Zero) for t in tangents):
            return outs, _zeros_of(primitive, outs)
        return outs, primitive.bind(*map(instantiate_zeros, tangents), **params)

    def back(ct: Any, *operands: Any, **params: Any) -> Any:
        cts = ct if primitive.multiple_results else [ct]
        if all(isinstance(c, Zero) for c in cts):
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(ct, *operands, **params)

    primitive_jvps[primitive] = push
    primitive_transposes[primitive] = back


def deflinear(primitive: UserPrimitive, transpose_rule: Rule) -> None:
    """An operation linear in all operands together, with `rule(cotangent, **params)`."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def defjvp(primitive: UserPrimitive, *jvprules: Rule | None) -> None:
    """A rule `rule(tangent, *primals, **params)` for each operand; None where there is none."""
    defjvp2(primitive, *[rule and _without_result(rule) for rule in jvprules])


def _without_result(rule: Rule) -> Rule:
    return lambda t, out, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: UserPrimitive, *jvprules: Rule | None) -> None:
    """A rule `rule(tangent, result, *primals, **params)` for each operand, or None."""
    def push(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        terms = [rule(t, out, *primals, **params)
                 for rule, t in zip(jvprules, tangents, strict=False)
                 if rule is not None and not isinstance(t, Zero)]
        return out, functools.reduce(add_tangents, terms, Zero.from_primal_value(out))

    primitive_jvps[primitive] = push


def defbilinear(prim: UserPrimitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """An operation linear in each of two operands: rules `rule(cotangent, x, y, **params)`."""
    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params),
           lambda t, x, y, **params: prim.bind(x, t, **params))

    def back(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    primitive_transposes[prim] = back


def _zeros_of(primitive: UserPrimitive, outs: Any) -> Any:
    if primitive.multiple_results:
        return [Zero.from_primal_value(o) for o in outs]
    return Zero.from_primal_value(outs)


publish(globals(), __all__)
