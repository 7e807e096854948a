"""What type rules leave to those who make equations: operands of calls fit the program called, and
parameters are such as the functions of functrans give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.errors import JaxprError
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.primitive import HigherOrder
from functrans.primitives.check import CHECK, INDEX
from functrans.primitives.control_flow.bodies import check_operands
from functrans.primitives.window import window_take_p
from functrans.transforms.custom_call import LazyJaxpr, differentiable_flags
from functrans.transforms.tangents import tangent_aval

__all__ = ["check_rules", "has_rules"]


def check_rules(eqn: Equation) -> None:
    """Raise JaxprError unless parameters are in range, and the operands of a call and of its rules
    have the types of theirs.
    """
    primitive, params = eqn.primitive, eqn.params
    operands = [a.aval for a in eqn.invars]
    _check_parameters(eqn, operands)
    if primitive.name in ("custom_jvp_call", "custom_vjp_call"):
        counts = params["num_consts"]
        groups = 2 if primitive.name == "custom_jvp_call" else 3
        if not isinstance(counts, tuple) or len(counts) != groups \
                or any(type(n) is not int or n < 0 for n in counts) or sum(counts) > len(operands):
            raise JaxprError(f"num_consts={counts} does not divide {len(operands)} operands.")
        _check_rule(eqn, operands)
    if isinstance(primitive, HigherOrder) and primitive.called is not None:
        body, given = primitive.called(operands, **params)
        check_operands(primitive.name, body.in_avals, given)


def has_rules(jaxpr: Jaxpr) -> bool:
    """Whether every function with rules of its own that a program calls has them there."""
    waiting, seen = [jaxpr], {jaxpr}
    while waiting:
        for eqn in waiting.pop().eqns:
            params = eqn.params
            if any(isinstance(params.get(key), LazyJaxpr) for key in _RULES):
                return False
            bodies = {params["call_jaxpr"]} if "call_jaxpr" in params else {*subjaxprs(eqn)}
            waiting += bodies - seen
            seen |= bodies
    return True


_RULES = ("rule_jaxpr", "fwd_jaxpr", "bwd_jaxpr")
_POSITIVE = ("window_dimensions", "window_strides", "base_dilation", "window_dilation",
             "lhs_dilation", "rhs_dilation", "strides")
_DISTINCT = ("axes", "dimensions", "permutation", "broadcast_dimensions")
_COUNTS = (("num_consts", "num_carry"), ("cond_nconsts", "body_nconsts"))


def _check_parameters(eqn: Equation, operands: Sequence[ShapedArray]) -> None:
    name, params = eqn.primitive.name, eqn.params

    def need(holds: bool, key: str) -> None:
        if not holds:
            raise JaxprError(f"{key}={params[key]} is out of range.")

    for key in params.keys() & _POSITIVE:
        need(isinstance(params[key], tuple) and all(
            n > 0 for n in params[key] if isinstance(n, int)), key)
    for key in params.keys() & _DISTINCT:
        need(len({*params[key]}) == len(params[key]) and all(
            type(n) is int and n >= 0 for n in params[key]), key)
    for first, second in _COUNTS:
        if first in params and second in params:
            need(params[first] + params[second] <= len(operands), second)
    if name == "conv_general_dilated":
        groups = params.get("group_axes") or ((),) * 3
        specs = [[*spec, *(g if isinstance(g, tuple) else (g,))]
                 for spec, g in zip(params["dimension_numbers"], groups, strict=True)]
        ranks = [a.ndim for a in (*operands, *(v.aval for v in eqn.outvars))]
        need([sorted(spec) for spec in specs] == [list(range(n)) for n in ranks],
             "dimension_numbers")
    elif name == "pad":
        need(all(type(interior) is int and interior >= 0
                 for _, _, interior in params["padding_config"]), "padding_config")
    elif name == "check":
        need(params["kind"] in (CHECK, INDEX), "kind")
        need(len(params["names"]) == len(operands) - 1, "names")
        need(all(params["lanes"] <= len(a.shape) for a in operands), "lanes")
    elif name == "sort":
        need(1 <= params["num_keys"] <= len(operands), "num_keys")
    elif name == "polygamma":
        need(params["n"] >= 1, "n")
    elif name == "window_put":
        window = {k: v for k, v in params.items() if k != "shape"}
        image = operands[0].with_shape(params["shape"])
        need(window_take_p.type(image, operands[1], **window).matches(operands[0]), "shape")


def _check_rule(eqn: Equation, operands: Sequence[ShapedArray]) -> None:
    params, counts = eqn.params, eqn.params["num_consts"]
    args, outs = operands[sum(counts):], params["call_jaxpr"].out_avals
    first = operands[counts[0]:counts[0] + counts[1]]
    if "rule_jaxpr" in params:
        if not isinstance(params["rule_jaxpr"], LazyJaxpr):
            _check(eqn, params["rule_jaxpr"], [*first, *args, *_tangents(args)],
                   [*outs, *_tangents(outs)])
        return
    forward, backward = params["fwd_jaxpr"], params["bwd_jaxpr"]
    if isinstance(forward, LazyJaxpr) or isinstance(backward, LazyJaxpr):
        return
    residuals = forward.out_avals[len(outs):]
    _check(eqn, forward, [*first, *args], [*outs, *residuals])
    second = operands[counts[0] + counts[1]:sum(counts)]
    _check(eqn, backward, [*second, *residuals, *_tangents(outs)], _tangents(args))


def _check(eqn: Equation, rule: Jaxpr, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    name = f"the rule of {eqn.primitive.name}"
    check_operands(name, rule.in_avals, ins)
    check_operands(f"{name}, its results", rule.out_avals, outs)


def _tangents(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of the tangents of the differentiable ones."""
    return [tangent_aval(a) for a, f in zip(avals, differentiable_flags(avals), strict=True) if f]
